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

// A Pending describes an upload in the journal for administrators.
type Pending struct {
	ID      string // for [Journal.Abort]
	OwnerID string // see [Journal.OwnerID]
	Key     string
	Bytes   int64     // that the owner need not send again; negative unless the upload is interrupted
	Written time.Time // when the record was last written
	State   string    // live, stalled, interrupted or ending
}

// OwnerID returns the ID that the uploads of an owner share. It is a hash, so it does not reveal the owner's name.
func (*Journal) OwnerID(owner string) string { return hashPrefix(owner, ownerBytes) }

// idSeparator replaces the slashes of a record's name in an ID, because they would have to be escaped in a URL.
const idSeparator = "-"

// Pending returns up to limit uploads of the journal, the most recently written ones first, and the total number of
// uploads. Uploads that end during the call do not count. It takes one request for each 1,000 records and one for each
// returned upload.
func (j *Journal) Pending(ctx context.Context, limit int) (pending []Pending, all int, err error) {
	var found []s3api.Version
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return nil, 0, err
		}
		all++
		if found = append(found, v); len(found) >= 2*limit {
			found = newest(found, limit)
		}
	}
	found = newest(found, limit)
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

// newest returns the n most recently written records, or all if there are fewer.
func newest(records []s3api.Version, n int) []s3api.Version {
	slices.SortFunc(records, func(a, b s3api.Version) int { return b.ModTime.Compare(a.ModTime) })
	return records[:min(len(records), n)]
}

var (
	errInUse   = s3error.New(syscall.EBUSY, "upload is in use by a session, or was until recently")
	errChanged = s3error.New(syscall.EBUSY, "upload just changed: check it and try again")
)

// Abort removes an upload that no session works on, with its parts. The error is fs.ErrNotExist if the upload does not
// exist, and EBUSY if a session works on it. Abort never removes a file.
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
