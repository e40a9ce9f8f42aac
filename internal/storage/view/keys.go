package view

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/babelftp/babelftp/driver"
)

// A mount can store each new file as an object with a name of its own, which Mount.Key returns, so that programs that
// read the bucket find files by date or user, for example. Users can neither list nor read there, and their names do
// not exist. Only the session that has stored a file finds it by the name that it sent, because it remembers the
// object; see unseen. Directories below exist without an object.

// objectFor returns the name from Mount.Key for a target, or "".
func (f *Files) objectFor(t *target, origin driver.Origin) string {
	if t.mount.Key == nil || t.past {
		return ""
	}
	_, inner := f.Mounts.find(t.today)
	return t.mount.Key(f.ctx, inner, origin)
}

// placeNew makes a target refer to the object of a new file with its name. A name with a final slash means no file.
func (f *Files) placeNew(t *target, origin driver.Origin) {
	if t.mount.Key == nil || t.past || strings.HasSuffix(t.inner, "/") {
		return
	}
	_, t.inner = f.Mounts.find(t.today) // not a file that the session has stored before
	if object := f.objectFor(t, origin); object != "" {
		t.sent, t.inner = t.inner, object
	}
}

// placeUpload is like placeNew for an upload. It refuses an upload that continues a file.
func (f *Files) placeUpload(t *target, continues bool) error {
	if continues && f.objectFor(t, driver.Uploaded) != "" {
		return t.fail("open", errOwnObject)
	}
	f.placeNew(t, driver.Uploaded)
	return nil
}

// errOwnObject reports an attempt to continue a file where each upload has an object of its own.
var errOwnObject = fmt.Errorf("%w: objects.rules give each upload a key of its own, so nothing can be continued or appended",
	fs.ErrPermission)
