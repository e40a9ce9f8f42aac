package journal

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Pending is an upload in the journal.
type Pending struct {
	ID      string // of [Journal.Abort]
	OwnerID string // of [Journal.OwnerID]
	Key     string
	Bytes   int64 // that its owner need not send again; known for an interrupted upload only, else negative
	Written time.Time
	State   string // live, stalled, interrupted or ending
}

// OwnerID is what the uploads of an owner have in common. An owner's name cannot be read from it.
func (*Journal) OwnerID(owner string) string { return hashPrefix(owner, ownerBytes) }

// idSeparator stands in an ID for the slashes of a record's name, which would have to be escaped in a URL.
const idSeparator = "-"

// Pending returns the uploads of the journal, those written last first, most of them at most, and how many there are.
// Those that end meanwhile do not count. It takes one request for each 1,000 records, and one for each that it
// returns.
func (j *Journal) Pending(ctx context.Context, most int) (pending []Pending, all int, err error) {
	var found []s3api.Version
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return nil, 0, err
		}
		all++
		if found = append(found, v); len(found) >= 2*most {
			found = newest(found, most)
		}
	}
	found = newest(found, most)
	records, err := j.readAll(ctx, found)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range records {
		p := Pending{ID: strings.ReplaceAll(strings.TrimPrefix(r.Name, j.prefix), s3object.Separator, idSeparator),
			Key: r.Key, Bytes: -1, Written: r.ModTime, State: string(r.state)}
		if p.OwnerID, _ = ownerOf(r.Name); r.TailOffset != unknownOffset {
			p.Bytes = r.TailOffset + r.TailSize
		}
		pending = append(pending, p)
	}
	return pending, all - (len(found) - len(records)), nil
}

// newest returns the records that were written last, most of them at most.
func newest(records []s3api.Version, most int) []s3api.Version {
	slices.SortFunc(records, func(a, b s3api.Version) int { return b.ModTime.Compare(a.ModTime) })
	return records[:min(len(records), most)]
}

// errInUse and errChanged are why an upload cannot be aborted now.
var (
	errInUse   = s3error.New(syscall.EBUSY, "a session works on the upload, or did so until a moment ago")
	errChanged = s3error.New(syscall.EBUSY, "the upload has changed in this moment: look at it again")
)

// Abort removes an upload on which no session works, with its parts. The error is fs.ErrNotExist if there is none of
// this ID, and EBUSY if a session works on it. Abort never removes a file.
func (j *Journal) Abort(ctx context.Context, id string) error {
	name := j.prefix + strings.ReplaceAll(id, idSeparator, s3object.Separator)
	last := strings.LastIndex(name, s3object.Separator)
	if !strings.Contains(id, idSeparator) || strings.Contains(id, s3object.Separator) {
		return fs.ErrNotExist
	}
	name = name[:last] + nameSeparator + name[last+1:]
	r, err := j.Read(ctx, s3api.Version{Key: name})
	switch {
	case err != nil:
		return err
	case j.isOpen(name), !r.silent() && r.state != interrupted:
		return errInUse
	}
	if err = j.Delete(ctx, r); errors.Is(err, ErrTakenOver) {
		return errChanged
	}
	return err
}
