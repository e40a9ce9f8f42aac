package view

import (
	"context"
	"errors"
	"io/fs"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// A Sink receives the changes of users before they are made.
type Sink interface {
	// Begin stores the event of a change durably. If it returns an error, the change must not be made.
	Begin(ctx context.Context, change FileChange) (Event, error)
}

// An Event describes a change in progress.
type Event interface {
	// End records how the change ended. etag is the ETag of an upload. It returns err, or an error if the change must
	// not be acknowledged.
	End(ctx context.Context, etag string, err error) error
}

// A FileChange is the content of an event.
type FileChange struct {
	Kind Kind
	User string
	// Path is the absolute pathname as the user sees it, and URI the address of the object.
	Path, URI string
	// ToPath and ToURI are the destination of a rename or a copy. For a refused file, ToURI is its place in the
	// quarantine.
	ToPath, ToURI string
	// Reason is the inspector's English text about a refused file.
	Reason string
	// Size is the size of an upload in bytes, if known.
	Size *int64
	// Steps reports whether the change may fail after a part of it is done.
	Steps bool
}

// A Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Upload Kind = "upload"
	Delete Kind = "delete"
	Rename Kind = "rename"
	Copy   Kind = "copy"
	// Restore is a copy of a file or a directory from the past.
	Restore Kind = "restore"
	// Refused is an upload that the inspector refused. It changes nothing.
	Refused Kind = "refused"
)

// change begins the event of a change, calls do to make the change, and ends the event.
func (f *Files) change(c FileChange, do func() error) error {
	return f.changeStored(c, do, func() string { return "" })
}

// changeStored is like change, and calls etag for the ETag of the stored object. A name that is invalid as a key gets
// no event, because the store refuses the change.
func (f *Files) changeStored(c FileChange, do func() error, etag func() string) error {
	if f.Events == nil || c.URI == "" || c.ToPath != "" && c.ToURI == "" {
		return do()
	}
	c.User = f.User
	event, err := f.Events.Begin(f.ctx, c)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return event.End(f.ctx, "", err)
	}
	return event.End(f.ctx, etag(), nil)
}

// move begins the event of a rename, a copy or a restore, and calls do to make the change.
//
// Files with skipped names do not exist for the receiver of the events. If a rename changes a skipped name to another
// one, the event is an upload; in the other direction it is a deletion. Names of directories are never skipped.
func (f *Files) move(kind Kind, from, to *target, do func() error) error {
	c := FileChange{Kind: kind, Path: from.name, URI: from.uri(), ToPath: to.name, ToURI: to.uri(), Steps: true}
	hidden, hides := f.Skip.match(from.canonical), f.Skip.match(to.canonical)
	if f.Events == nil || !hidden && !hides || c.URI == "" || c.ToURI == "" {
		return f.change(c, do)
	}
	info, err := from.mount.Store.StatFile(f.ctx, from.inner)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a directory, or nothing with this name
		return f.change(c, do)
	case err != nil:
		return from.replacePath(err)
	case hides && (hidden || kind != Rename):
		return do()
	case hides:
		return f.change(FileChange{Kind: Delete, Path: from.name, URI: c.URI, Steps: true}, do)
	}
	size := info.Size()
	return f.changeStored(FileChange{Kind: Upload, Path: to.name, URI: c.ToURI, Size: &size, Steps: true}, do,
		func() string {
			stored, err := to.mount.Store.StatFile(f.ctx, to.inner)
			if err != nil {
				return "" // the file is stored, only its ETag is unknown
			}
			return etagOf(stored)
		})
}

// etagOf returns the ETag of a file, empty if it is not known.
func etagOf(info fs.FileInfo) string {
	if stored, ok := info.(contract.Tagged); ok {
		return stored.ETag()
	}
	return ""
}
