package view

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/inspect"
)

// OpenReader opens a file for a download that starts at offset bytes.
func (f *Files) OpenReader(name string, offset int64) (Reader, error) {
	t := f.resolve(name)
	file, err := f.openReader(t, offset)
	return file, f.report(t, err)
}

func (f *Files) openReader(t *target, offset int64) (Reader, error) {
	if !t.rights.Read {
		return nil, t.deniedError("open")
	}
	file, err := t.mount.Store.OpenReader(f.ctx, t.inner, offset)
	if err != nil {
		return nil, t.replacePath(err)
	}
	f.Directories.seeParent(t.name)
	return &download{Reader: file, target: t}, nil
}

// A download is a file whose errors name the path that the user sees.
type download struct {
	Reader
	target *target
}

func (d *download) Read(b []byte) (int, error) {
	n, err := d.Reader.Read(b)
	return n, d.target.replacePath(err)
}

func (d *download) WriteTo(w io.Writer) (int64, error) {
	n, err := d.Reader.WriteTo(w)
	return n, d.target.replacePath(err)
}

func (d *download) Close() error { return d.target.replacePath(d.Reader.Close()) }

// OpenWriter opens a file for an upload that starts at offset bytes. flag contains os.O_CREATE, os.O_APPEND and
// os.O_TRUNC as needed.
func (f *Files) OpenWriter(name string, flag int, offset int64) (Writer, error) {
	t := f.resolve(name)
	file, err := f.openWriter(t, flag, offset)
	return file, f.report(t, err)
}

func (f *Files) openWriter(t *target, flag int, offset int64) (Writer, error) {
	seen, appends := f.canSee(t), flag&os.O_APPEND != 0
	if !t.rights.Write || offset > 0 && !seen && !f.unseen.resumesAt(t.canonical, offset) {
		return nil, t.deniedChange("open")
	}
	if err := f.placeUpload(t, offset > 0 || appends); err != nil {
		return nil, err
	}
	if flag&os.O_CREATE != 0 {
		if err := f.printable("open", t); err != nil {
			return nil, err
		}
	}
	if err := f.mayStore("open", t); err != nil {
		return nil, err
	}
	if err := f.CheckSize(max(offset, f.Announced)); err != nil { // the bytes of the file that stay count too
		return nil, t.fail("open", err)
	}
	if offset > 0 || appends { // the upload keeps bytes of the file, so it must wait for other uploads to it
		f.await(t)
	}
	// Do not remember a file to which the session appends: it may hold bytes of other users, and its size would reveal
	// how many. An interrupted upload of the user holds none.
	remember := !seen && (!appends || f.unseen.hasReported(t.canonical))
	file, err := f.openStore(t, flag, offset)
	if err != nil {
		return nil, t.replacePath(err)
	}
	u := &upload{Writer: file, files: f, target: t, remember: remember, bound: bound{most: f.MaxSize, size: offset}}
	if !appends || f.MaxSize == 0 {
		return u, nil
	}
	if info, err := file.Stat(); err == nil {
		u.bound.size = info.Size()
	}
	if err := f.CheckSize(u.bound.size); err != nil { // the file is already too large
		u.Abort(err)
		_ = u.Writer.Close() // returns the cause
		return nil, t.fail("open", err)
	}
	return u, nil
}

// openStore opens a file of the store for an upload.
func (f *Files) openStore(t *target, flag int, offset int64) (Writer, error) {
	if t.sent != "" {
		return t.mount.Store.Create(f.ctx, t.sent, t.inner, f.SHA256)
	}
	return t.mount.Store.OpenWriter(f.ctx, t.inner, flag, offset, f.SHA256)
}

// An upload is a file open for writing. The change happens in Close. The upload counts as ending from Abort or Close
// until the store has closed the file.
type upload struct {
	Writer
	files    *Files
	target   *target
	remember bool // record the file as stored by the session, because the user cannot see it otherwise
	aborted  atomic.Bool
	refusal  error // error of the inspector before Close
	bound    bound

	mu    sync.Mutex
	ended func() // nil until the upload is ending
}

func (u *upload) Write(b []byte) (int, error) {
	if len(b) == 0 {
		n, err := u.Writer.Write(b)
		return n, u.target.replacePath(err)
	}
	n, err := u.ReadFrom(bytes.NewReader(b))
	return int(n), err
}

func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	n, err := u.Writer.ReadFrom(u.bound.reader(r))
	if errors.Is(err, inspect.ErrRefused) {
		u.refusal = err
	}
	return n, u.target.replacePath(err)
}

// Abort ends the upload without a change.
func (u *upload) Abort(cause error) {
	u.aborted.Store(true)
	u.end()
	u.Writer.Abort(cause)
}

// end makes other sessions wait for the upload. Call the returned function when the upload has ended.
func (u *upload) end() (ended func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended == nil {
		u.ended = func() {}
		if endings := u.files.EndingUploads; endings != nil {
			u.ended = sync.OnceFunc(endings.begin(u.files.endingKey(u.target)))
		}
	}
	return u.ended
}

// Close makes the file visible, after its event.
func (u *upload) Close() error {
	err := u.publish()
	if err == nil && (u.target.sent != "" || u.remember && !u.files.canSee(u.target)) {
		u.files.unseen.store(u.target)
	}
	return err
}

func (u *upload) publish() error {
	defer u.end()()
	sink := u.files.Events
	if sink == nil || u.aborted.Load() || u.files.Skip.match(u.target.canonical) {
		return u.target.replacePath(u.reportRefusal(u.Writer.Close()))
	}
	change := FileChange{Kind: Upload, User: u.files.User, Path: u.target.name, URI: u.target.uri()}
	if info, err := u.Stat(); err == nil {
		size := info.Size()
		change.Size = &size
	}
	event, err := sink.Begin(u.files.ctx, change)
	if err != nil {
		u.Abort(err)
		_ = u.Writer.Close() // returns the cause, or the cause of an earlier abort
		return err
	}
	err = u.target.replacePath(u.Writer.Close())
	u.end()()
	return u.reportRefusal(event.End(u.files.ctx, u.etag(err), err))
}

// reportRefusal sends an event if the inspector rejected the file, even if its name is skipped. It returns the error of
// Close, joined with an error of the event.
func (u *upload) reportRefusal(err error) error {
	why := cmp.Or(u.refusal, err)
	if u.files.Events == nil || !errors.Is(why, inspect.ErrRefused) {
		return err
	}
	c := FileChange{Kind: Refused, User: u.files.User, Path: u.target.name, URI: u.target.uri()}
	if refusal, ok := errors.AsType[*inspect.Refusal](why); ok {
		c.Reason = refusal.Text(language.English)
	}
	if kept, ok := errors.AsType[contract.QuarantinedError](why); ok {
		c.ToURI = kept.QuarantineURI()
	}
	event, failed := u.files.Events.Begin(u.files.ctx, c)
	if failed == nil {
		failed = event.End(u.files.ctx, "", nil)
	}
	return errors.Join(err, failed)
}

// etag returns the ETag of the stored file, empty if the upload failed or the ETag is not known.
func (u *upload) etag(failed error) string {
	info, err := u.Stat()
	if err != nil || failed != nil {
		return ""
	}
	return etagOf(info)
}
