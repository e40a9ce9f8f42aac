package driver

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"syscall"
)

// Rename moves a file or, where there is none of the name, a directory. S3 copies what is moved, with its attributes, and every
// object is deleted only after its copy was confirmed.
//
// A file replaces a file of the new name. A directory moves to a name that nothing has, or an empty directory: ENOTEMPTY keeps it
// from being mixed with another. When its move was interrupted some files have both names, none is lost, and the same Rename
// completes it.
//
// A directory in the place of the new file is EISDIR, a file in the place of the new directory ENOTDIR; a directory moved into
// itself is an fs.ErrInvalid. Nothing happens where both names are the same.
func (f *Fs) Rename(oldname, newname string) error {
	oldKey, err := f.keys.key(oldname)
	if err == nil {
		var newKey string
		if newKey, err = f.keys.key(newname); err == nil {
			err = f.rename(oldKey, newKey)
		}
	}
	return linkError("rename", oldname, newname, err)
}

func (f *Fs) rename(oldKey, newKey string) error {
	oldPrefix, newPrefix := f.keys.directory(oldKey), f.keys.directory(newKey)
	if f.keys.isRoot(oldKey) || f.keys.isRoot(newKey) {
		return errInvalid
	}
	v, _, err := f.bucket.head(f.ctx, oldKey)
	switch {
	case err == nil && oldKey == newKey:
		return nil
	case err == nil:
		return f.renameFile(v, newKey)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := f.statDir(oldKey); err != nil || oldKey == newKey {
		return err
	}
	if strings.HasPrefix(newPrefix, oldPrefix) {
		return errInvalid
	}
	if _, err := f.statFile(newKey); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = syscall.ENOTDIR
		}
		return err
	}
	m := &move{f: f, from: oldPrefix, to: newPrefix}
	for _, step := range []func() error{m.check, m.copy, m.delete} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fs) renameFile(v version, newKey string) error {
	switch _, err := f.statDir(newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := f.copy(f.ctx, v, newKey); err != nil {
		return err
	}
	return f.bucket.delete(f.ctx, v.key)
}

// A move is the rename of a directory from one prefix to another. Its steps hold no list of keys, of which there may be
// millions: each walks through the directories anew.
type move struct {
	f        *Fs
	from, to string
}

// A pair is what both directories have under the same name. One of them may have nothing.
type pair struct{ source, copy *version }

// check makes sure that nothing stands in the way. What the new directory holds must come from an attempt that was interrupted:
// of two files of a name both have the same size, and one directory holds all that the other does, the new one while files
// were being deleted, the old one before.
func (m *move) check() error {
	var onlySource, onlyCopy bool
	for p, err := range m.pairs(m.f.ctx) {
		switch {
		case err != nil:
			return err
		case p.source != nil && len(m.to)+len(p.source.key)-len(m.from) > maxKeyBytes:
			return syscall.ENAMETOOLONG
		case p.copy == nil:
			onlySource = true
		case p.copy.key == m.to: // a marker is of no weight
		case p.source == nil:
			onlyCopy = true
		case p.source.size != p.copy.size:
			return syscall.ENOTEMPTY
		}
		if onlySource && onlyCopy {
			return syscall.ENOTEMPTY
		}
	}
	return nil
}

// copy copies all files and markers.
func (m *move) copy() error {
	return inParallel(m.f.ctx, func(ctx context.Context, submit func(func() error)) error {
		for v, err := range m.f.bucket.walk(ctx, m.from) {
			if err != nil {
				return err
			}
			submit(func() error { return m.f.copyEntry(ctx, v, m.to+v.key[len(m.from):]) })
		}
		return nil
	})
}

// copyEntry copies a file, or makes a marker anew: versitygw does not copy them.
func (f *Fs) copyEntry(ctx context.Context, v version, to string) error {
	if v.size == 0 && strings.HasSuffix(v.key, separator) {
		return f.mark(ctx, to)
	}
	return f.copy(ctx, v, to)
}

// delete deletes what has its copy. A file that was added or replaced since stays; the error is then EAGAIN, because to move it
// takes another attempt.
func (m *move) delete() error {
	return inParallel(m.f.ctx, func(ctx context.Context, submit func(func() error)) error {
		var changed error
		for p, err := range m.pairs(ctx) {
			switch {
			case err != nil:
				return err
			case p.source == nil:
			case p.copy == nil, p.copy.size != p.source.size, p.copy.modTime.Before(p.source.modTime):
				changed = fault(syscall.EAGAIN, "directory changed while it was renamed")
			default:
				if err := m.f.bucket.deleteNext(ctx, p.source.key, submit); err != nil {
					return err
				}
			}
		}
		return changed
	})
}

// pairs walks through both directories at once, in the order of the keys.
func (m *move) pairs(ctx context.Context) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		sources, stop := iter.Pull2(m.f.bucket.walk(ctx, m.from))
		defer stop()
		copies, stop := iter.Pull2(m.f.bucket.walk(ctx, m.to))
		defer stop()
		advance := func(next func() (version, error, bool)) (*version, error) {
			v, err, more := next()
			if !more {
				return nil, nil
			}
			return &v, err
		}
		source, err := advance(sources)
		if err != nil {
			yield(pair{}, err)
			return
		}
		copied, err := advance(copies)
		for err == nil && (source != nil || copied != nil) {
			p := pair{source: source, copy: copied}
			if source != nil && copied != nil {
				switch strings.Compare(source.key[len(m.from):], copied.key[len(m.to):]) {
				case -1:
					p.copy = nil
				case +1:
					p.source = nil
				}
			}
			if !yield(p, nil) {
				return
			}
			if p.source != nil {
				source, err = advance(sources)
			}
			if p.copy != nil && err == nil {
				copied, err = advance(copies)
			}
		}
		if err != nil {
			yield(pair{}, err)
		}
	}
}
