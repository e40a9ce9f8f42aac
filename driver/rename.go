package driver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Rename moves a file or, where there is none of the name, a directory. S3 copies what is moved, with its metadata, its tags, its storage
// class and its encryption, and an object is deleted only after all copies were confirmed. The time of a file that none was set for is
// that of the copy. Where S3 refuses to delete a file its copy is removed again, if it is known that nothing had the new name before: under
// [Options.NoOverwrite], and from the second such Rename on. Otherwise, and where S3 does not answer, the file may have both names; none is
// lost, and the same Rename completes it.
//
// A file replaces a file of the new name. A directory moves to a name that nothing has, or an empty directory: ENOTEMPTY keeps it
// from being mixed with another. When its move was interrupted some files have both names, none is lost, and the same Rename
// completes it. Under [Options.NoOverwrite] a file is not replaced either, and what was uploaded by parts cannot be told from another of
// its size, so that such a Rename is completed by whoever removes the copies that there are.
//
// A directory in the place of the new file is EISDIR, a file in the place of the new directory ENOTDIR; a directory moved into
// itself is an fs.ErrInvalid. Nothing happens where both names are the same.
func (f *Fs) Rename(oldname, newname string) error { return f.RenameTo(f, oldname, newname) }

// RenameTo is [Fs.Rename] to a name in another file system, which must be of the same account of the same S3 server.
func (f *Fs) RenameTo(target *Fs, oldname, newname string) error {
	return relocate("rename", oldname, newname, relocation{f: f, target: target})
}

// relocate does what r says, from one name to another.
func relocate(op, oldname, newname string, r relocation) error {
	oldKey, err := r.f.keys.key(oldname)
	if err == nil {
		var newKey string
		if newKey, err = r.target.keys.key(newname); err == nil {
			err = r.run(oldKey, newKey)
		}
	}
	return linkError(op, oldname, newname, err)
}

// A relocation is a rename or, where it keeps the source, a copy.
type relocation struct {
	f           *Fs // where it begins
	target      *Fs // where it ends, perhaps the same
	keepsSource bool
	from, to    string // the prefixes of a directory
}

func (r *relocation) run(oldKey, newKey string) error {
	f, target := r.f, r.target
	if f.keys.isRoot(oldKey) || target.keys.isRoot(newKey) {
		return errInvalid
	}
	oneBucket := f.bucket.name == target.bucket.name
	v, a, err := f.bucket.head(r.f.ctx, oldKey)
	switch {
	case err == nil && oneBucket && oldKey == newKey:
		return nil
	case err == nil:
		return r.file(v, &a, newKey)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := f.statDir(oldKey); err != nil || oneBucket && oldKey == newKey {
		return err
	}
	r.from, r.to = f.keys.directory(oldKey), target.keys.directory(newKey)
	switch {
	case oneBucket && strings.HasPrefix(r.to, r.from):
		return errInvalid
	case oneBucket && strings.HasPrefix(r.from, r.to):
		return syscall.ENOTEMPTY
	}
	if _, err := target.statFile(newKey); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = syscall.ENOTDIR
		}
		return err
	}
	return r.directory()
}

func (r *relocation) file(v version, a *attributes, newKey string) error {
	switch _, err := r.target.statDir(newKey); {
	case err == nil:
		return syscall.EISDIR
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	there := true // for all that is known
	if r.target.opts.NoOverwrite || r.f.halfway.wasRefused() {
		switch _, err := r.target.statFile(newKey); {
		case errors.Is(err, fs.ErrNotExist):
			there = false
		case err != nil:
			return err
		}
	}
	if there && r.target.opts.NoOverwrite {
		if r.keepsSource || !r.target.halfway.has(r.f.ctx, v, newKey, r.target.bucket) {
			return fs.ErrExist
		}
		err := r.f.delete(r.f.ctx, v.key, v.size)
		if err == nil {
			r.target.halfway.remove(newKey)
		}
		return err
	}
	etag, err := r.copyVersion(r.f.ctx, v, a, newKey, r.target.sizeOf(r.f.ctx, newKey))
	if err != nil || r.keepsSource {
		return err
	}
	return r.deleteSource(v, newKey, etag, there)
}

// copyVersion copies a version to a key, where it replaces so many bytes. It returns the ETag of the copy.
//
// What is renamed takes no more room than it did, but in the quotas that it comes to.
func (r *relocation) copyVersion(ctx context.Context, v version, a *attributes, to string, replaced func() int64) (etag string, err error) {
	added := addition{quotas: r.target.opts.Quotas, replaced: replaced}
	if !r.keepsSource {
		added.exempt = r.f.opts.Quotas
	}
	if err := added.claim(ctx, v.size); err != nil {
		return "", err
	}
	etag, err = r.target.copy(ctx, v, a, to)
	added.end(v.size, err == nil)
	return etag, err
}

// deleteSource deletes a file that has a copy, and where that fails sees to what becomes of the copy. It may be removed where there was
// nothing of its name.
func (r *relocation) deleteSource(v version, newKey, etag string, there bool) error {
	var tries attempts
	err := r.f.bucket.deleteBy(r.f.ctx, v.key, &tries)
	if err == nil {
		r.f.opts.Quotas.add(-v.size)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	made, _, headErr := r.target.bucket.head(r.f.ctx, newKey)
	refused := tries.count < 2 && !errors.Is(err, syscall.EAGAIN)
	if refused {
		r.f.halfway.refuse()
	}
	switch {
	case headErr != nil || strings.Trim(made.etag, `"`) != strings.Trim(etag, `"`): // it is not the copy any more
	case refused && !there && r.undo(v, made):
	case r.target.opts.NoOverwrite:
		r.target.halfway.add(v, made)
	}
	return err
}

// undo removes the copy of a file that S3 has refused to delete, so that it is not there twice, and tells whether it could. The file
// must be as it was, so that the copy is not the last one. Where S3 may yet delete the file, because no answer came, nothing is undone.
func (r *relocation) undo(v, made version) bool {
	source, _, err := r.f.bucket.head(r.f.ctx, v.key)
	return err == nil && source.is(v) && r.target.delete(r.f.ctx, made.key, made.size) == nil
}

// directory takes a directory from one prefix to another. Its steps hold no list of keys, of which there may be millions: each walks
// through the directories anew.
func (r *relocation) directory() error {
	if err := r.check(); err != nil {
		return err
	}
	if err := r.copy(); err != nil || r.keepsSource {
		return err
	}
	return r.delete()
}

// A pair is what both directories have under the same name. One of them may have nothing.
type pair struct{ source, copy *version }

// replaced is how many bytes a copy replaces.
func (p pair) replaced() int64 {
	if p.copy == nil {
		return 0
	}
	return p.copy.size
}

// check makes sure that nothing stands in the way. What the new directory holds must come from an attempt that was interrupted: each file
// in it can be a copy of the one of its name, and one directory holds all that the other does, the new one while files were being
// deleted, the old one before.
func (r *relocation) check() error {
	return inParallel(r.f.ctx, func(ctx context.Context, submit func(func() error)) error {
		var onlySource, onlyCopy bool
		for p, err := range r.pairs(ctx) {
			switch {
			case err != nil:
				return err
			case p.source != nil && len(r.to)+len(p.source.key)-len(r.from) > maxKeyBytes:
				return syscall.ENAMETOOLONG
			case p.copy == nil:
				onlySource = true
			case p.copy.key == r.to: // a marker is of no weight
			case p.source == nil:
				onlyCopy = true
			case p.source.size != p.copy.size:
				return syscall.ENOTEMPTY
			case p.source.etag != p.copy.etag:
				submit(func() error { return r.checkETag(ctx, p) })
			}
			if onlySource && onlyCopy {
				return syscall.ENOTEMPTY
			}
		}
		return nil
	})
}

// checkETag tells apart two files of one size whose ETags differ. An ETag is the MD5 of the bytes, unless they were stored by parts or
// encrypted otherwise than with S3's own key. Where it is not, what is older than the source is no copy of it.
func (r *relocation) checkETag(ctx context.Context, p pair) error {
	if md5OfETag(p.source.etag) != nil && md5OfETag(p.copy.etag) != nil {
		_, a, err := r.target.bucket.head(ctx, p.copy.key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case a.encryption.keepsMD5():
			return syscall.ENOTEMPTY
		}
	}
	if p.copy.modTime.Before(p.source.modTime) {
		return syscall.ENOTEMPTY
	}
	return nil
}

// copy copies all files and markers that an attempt before has not.
func (r *relocation) copy() error {
	return inParallel(r.f.ctx, func(ctx context.Context, submit func(func() error)) error {
		for p, err := range r.pairs(ctx) {
			switch {
			case err != nil:
				return err
			case p.source == nil:
			case p.copy != nil && p.source.etag == p.copy.etag && p.copy.modTime.After(p.source.modTime): // it is as it shall be
			case p.copy != nil && r.target.opts.NoOverwrite:
				if !p.isCopy() {
					return fs.ErrExist
				}
			default:
				submit(func() error { return r.copyEntry(ctx, p) })
			}
		}
		return nil
	})
}

// copyEntry copies a file, or makes a marker anew: versitygw does not copy them. What is no longer there needs no copy.
func (r *relocation) copyEntry(ctx context.Context, p pair) error {
	key := p.source.key
	v, a, err := r.f.bucket.head(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to := r.to + key[len(r.from):]
	if v.size > 0 || !strings.HasSuffix(key, separator) {
		_, err := r.copyVersion(ctx, v, &a, to, p.replaced)
		return err
	}
	r.target.carry(&a)
	if err := r.f.bucket.readTags(ctx, key, &a); err != nil {
		return err
	}
	in := &s3.PutObjectInput{}
	a.put(in)
	_, err = r.target.bucket.put(ctx, to, in, bytes.NewReader(nil))
	return err
}

// delete deletes what has its copy. A file that was added or replaced since stays; the error is then EAGAIN, because to move it
// takes another attempt.
func (r *relocation) delete() error {
	return inParallel(r.f.ctx, func(ctx context.Context, submit func(func() error)) error {
		deleted := batch{f: r.f, submit: submit}
		var changed error
		for p, err := range r.pairs(ctx) {
			switch {
			case err != nil:
				return err
			case p.source == nil:
			case p.copy == nil, p.copy.size != p.source.size, p.copy.modTime.Before(p.source.modTime):
				changed = fault(syscall.EAGAIN, "directory changed while it was renamed")
			default:
				if err := deleted.add(ctx, *p.source); err != nil {
					return err
				}
			}
		}
		deleted.send(ctx)
		return changed
	})
}

// pairs walks through both directories at once, in the order of the keys.
func (r *relocation) pairs(ctx context.Context) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		sources, stop := iter.Pull2(r.f.bucket.walk(ctx, r.from))
		defer stop()
		copies, stop := iter.Pull2(r.target.bucket.walk(ctx, r.to))
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
				switch strings.Compare(source.key[len(r.from):], copied.key[len(r.to):]) {
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
