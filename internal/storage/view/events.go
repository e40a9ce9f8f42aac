package view

import (
	"context"
	"errors"
	"io/fs"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// A Sink gets the changes that users make, before they are made.
type Sink interface {
	// Begin makes the event of a change durable. After an error the change must not be made.
	Begin(ctx context.Context, change Change) (Event, error)
}

// An Event is that of a change which is being made.
type Event interface {
	// End says how the change has ended. The ETag is that of an upload. The error that it returns is that of the
	// change, or says that the change must not be acknowledged.
	End(ctx context.Context, etag string, err error) error
}

// A Change is what an event tells.
type Change struct {
	Kind Kind
	User string
	// Path is absolute, as the user sees it, and URI that of the object.
	Path, URI string
	// ToPath and ToURI are those of a rename or a copy. ToURI is also where a refused file is in the quarantine.
	ToPath, ToURI string
	// Reason is why a file was refused, as the inspector says it to readers of English.
	Reason string
	// Size is that of an upload, in bytes, where it is known.
	Size *int64
	// Steps says that the change may fail when a part of it is done.
	Steps bool
}

// A Kind is the kind of a change.
type Kind string

// The kinds of changes that events tell.
const (
	Upload Kind = "upload"
	Delete Kind = "delete"
	Rename Kind = "rename"
	Copy   Kind = "copy"
	// Restore is a copy of a file or a directory from the past.
	Restore Kind = "restore"
	// Refused is an upload that the inspector has refused. It changes nothing.
	Refused Kind = "refused"
)

// change makes the event of a change, lets do make the change, and ends the event.
func (f *Files) change(c Change, do func() error) error {
	return f.changeStored(c, do, func() string { return "" })
}

// changeStored is change, and asks for the ETag of what the change has stored. A name that no object can have makes no
// event, because the store refuses it.
func (f *Files) changeStored(c Change, do func() error, etag func() string) error {
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

// move makes the event of a rename, a copy or a restore, and lets do make the change.
//
// Files of skipped names do not exist for the receiver of the events. So a file that gets another name than such a one
// is an upload, and one that gets such a name is deleted. Directories have no skipped names.
func (f *Files) move(kind Kind, from, to *target, do func() error) error {
	c := Change{Kind: kind, Path: from.name, URI: from.uri(), ToPath: to.name, ToURI: to.uri(), Steps: true}
	hidden, hides := f.Skip.match(from.canonical), f.Skip.match(to.canonical)
	if f.Events == nil || !hidden && !hides || c.URI == "" || c.ToURI == "" {
		return f.change(c, do)
	}
	info, err := from.mount.Store.StatFile(f.ctx, from.inner)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a directory, or nothing
		return f.change(c, do)
	case err != nil:
		return from.named(err)
	case hides && (hidden || kind != Rename):
		return do()
	case hides:
		return f.change(Change{Kind: Delete, Path: from.name, URI: c.URI, Steps: true}, do)
	}
	size := info.Size()
	return f.changeStored(Change{Kind: Upload, Path: to.name, URI: c.ToURI, Size: &size, Steps: true}, do,
		func() string {
			stored, err := to.mount.Store.StatFile(f.ctx, to.inner)
			if err != nil {
				return "" // it is stored all the same
			}
			return etagOf(stored)
		})
}

// etagOf is the ETag of a file, empty where it is not known.
func etagOf(info fs.FileInfo) string {
	if stored, ok := info.(contract.Tagged); ok {
		return stored.ETag()
	}
	return ""
}
