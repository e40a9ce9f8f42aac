package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// directory moves a directory from one prefix to another in three steps: it checks both directories, copies what is
// missing, and deletes exactly the versions that were copied. Each request has a condition, or follows right after a
// check if the server does not support the condition. So a file with other bytes that another client stores at the same
// time stays. Calling the same operation again completes one that was interrupted.
//
// No step keeps a list of all keys, because there may be millions. Instead, each step lists the directories again.
func (r *treeMove) directory(ctx context.Context) error {
	end, err := r.source.opts.BeginOperation()
	if err != nil {
		return err
	}
	defer end()
	target := *r.target
	target.uploads = target.uploads.WithCopySlots(maxRequests) // shared by all files
	r.target = &target
	r.copied = newFingerprints()
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.copy(ctx); err != nil {
		return err
	}
	if r.copied.empty() {
		return s3error.New(syscall.ESTALE, "another client removed the content of the directory")
	}
	if r.keepsSource {
		return nil
	}
	return r.delete(ctx)
}

// check fails if the new directory has content that does not come from an interrupted attempt of the same operation.
// Each file in it must be a copy of the file with the same name in the old directory, and one of the two directories
// must contain every name that the other one has. That is the old directory, unless the attempt had begun to delete
// files. S3 cannot copy an archived file, so check also finds these before anything is copied.
func (r *treeMove) check(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		var hasSource, onlySource, onlyCopy bool
		for e, err := range r.walk(ctx) {
			if err != nil {
				return err
			}
			hasSource = hasSource || e.source != nil
			switch {
			case e.source != nil && len(r.to)+len(e.source.Key)-len(r.from) > s3object.MaxKeyBytes:
				return syscall.ENAMETOOLONG
			case e.copy == nil:
				onlySource = true
			case e.copy.Key == r.to && e.copy.Size == 0: // a marker does not count
			case e.source == nil:
				onlyCopy = true
			case !isMarker(*e.source) || !isMarker(*e.copy):
				submit(func() error { return r.addName(e, r.mustBeCopy(ctx, e)) })
			}
			if onlySource && onlyCopy {
				return syscall.ENOTEMPTY
			}
			if e.source != nil && e.source.IsArchived() {
				submit(func() error { return r.addName(e, r.source.bucket.CheckRestored(ctx, e.source.Key)) })
			}
		}
		if !hasSource {
			return fs.ErrNotExist
		}
		return nil
	})
}

// mustBeCopy fails with ENOTEMPTY unless one of the two files is a copy of the other one. Equal bytes do not prove
// that.
func (r *treeMove) mustBeCopy(ctx context.Context, e mergeEntry) error {
	v, _, err := r.source.bucket.Head(ctx, e.source.Key)
	if err == nil {
		var made s3api.Version
		made, _, err = r.target.bucket.Head(ctx, e.copy.Key)
		if err == nil && !v.SharesStamp(&made) {
			return syscall.ENOTEMPTY
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // removed after it was listed
		return nil
	}
	return err
}

// addName adds the name of an entry to an error.
func (r *treeMove) addName(e mergeEntry, err error) error {
	if err == nil {
		return nil
	}
	if e.source != nil {
		return &s3error.EntryError{Name: e.source.Key[len(r.from):], Err: err}
	}
	return &s3error.EntryError{Name: e.copy.Key[len(r.to):], Err: err}
}

// copy copies all files and markers that have no copy from an earlier attempt.
func (r *treeMove) copy(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		for e, err := range r.walk(ctx) {
			if err != nil {
				return err
			}
			if e.source != nil {
				submit(func() error { return r.addName(e, r.copyEntry(ctx, e)) })
			}
		}
		return nil
	})
}

// isMarker reports whether an object is an empty directory marker.
func isMarker(v s3api.Version) bool {
	return v.Size == 0 && strings.HasSuffix(v.Key, s3object.Separator)
}

// copyEntry makes sure that a file or a marker is copied. If the source no longer exists, it does nothing. The error is
// ENOTEMPTY if the new name has an object that is not a proven copy, and ESTALE if another client replaces one of the
// two objects.
func (r *treeMove) copyEntry(ctx context.Context, e mergeEntry) error {
	v, a, age, err := r.source.bucket.HeadExact(ctx, *e.source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to := r.to + v.Key[len(r.from):]
	if isMarker(v) {
		if err = r.copyMarker(ctx, v, &a, to); err == nil {
			r.copied.add(v)
		}
		return err
	}
	c := s3api.Condition{Absent: true}
	if e.copy != nil {
		old, err := r.target.waitForRename(ctx, &v, age, to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			e.copy = nil
		case err != nil:
			return err
		default:
			if !v.SharesStamp(&old) {
				return syscall.ENOTEMPTY
			}
			if r.noOverwrite || old.IsStampedCopyOf(&v) {
				r.copied.add(v)
				return nil
			}
			e.copy, c = &old, old.Unchanged()
		}
	}
	err = r.copyFile(ctx, v, &a, to, c, e.copy)
	switch {
	case err == nil:
		r.copied.add(v)
	case errors.Is(err, fs.ErrNotExist) && c.Absent: // removed since the check
		return nil
	case errors.Is(err, fs.ErrExist) && e.copy == nil:
		// An earlier, interrupted attempt may have taken effect since, or another client has stored a file.
		e.copy = &s3api.Version{Bucket: r.target.bucket, Key: to}
		return r.copyEntry(ctx, e)
	case errors.Is(err, fs.ErrNotExist):
		return &s3error.Error{Kind: syscall.ESTALE, Cause: err} // the file or its copy is gone
	}
	return err
}

// copyFile copies a file and replaces old, which is nil if the new name does not exist. If CopyObject does not support
// conditions, copyFile checks the condition right before the copy, because a real condition would take several more
// requests for each of the many files in a directory.
func (r *treeMove) copyFile(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, old *s3api.Version,
) error {
	if r.target.copiesAtOnce(v) && !r.target.bucket.Profile.ConditionalCopy && !r.noOverwrite {
		if err := r.target.bucket.CheckCondition(ctx, to, c); err != nil {
			return err
		}
		c = s3api.Condition{}
	}
	r.stampCopy(v, a, to)
	reservation := r.target.opts.Quotas.Begin(to)
	if old == nil {
		reservation.SetCurrent(s3api.Version{})
	} else {
		reservation.SetCurrent(*old)
	}
	return r.copyVersion(ctx, v, a, to, c, reservation)
}

// copyMarker creates a new marker, because versitygw does not copy markers. If a marker exists already, it stays.
func (r *treeMove) copyMarker(ctx context.Context, v s3api.Version, a *s3object.Attributes, to string) error {
	r.target.opts.Objects.Inherit(a)
	if err := r.source.bucket.ReadTags(ctx, v.Key, a); err != nil {
		return err
	}
	c := s3api.Condition{Absent: true}
	_, err := r.target.bucket.Put(ctx, to, a, c, bytes.NewReader(nil), s3api.Sums{})
	err = c.Failed(err)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	made, _, headErr := r.target.bucket.Head(ctx, to)
	if headErr == nil && made.Size == 0 {
		return nil
	}
	return syscall.ENOTEMPTY
}

// delete deletes the versions that were copied. If a file was added or replaced since, or its copy is gone, the file
// stays and the error is ESTALE.
//
// It lists both directories again, because another session may have moved the copies back, in which case the files are
// the only instances again.
func (r *treeMove) delete(ctx context.Context) error {
	// an error stops the walk, but does not cancel requests in flight, as in removeBelow
	err := inParallel(ctx, func(walk context.Context, submit func(func() error)) error {
		for e, err := range r.walk(walk) {
			if err == nil {
				err = walk.Err()
			}
			if err != nil {
				return err
			}
			if e.source == nil {
				continue
			}
			remove := func() error {
				return r.addName(e, r.stale.note(r.from, e.source.Key, r.deleteEntry(ctx, e)))
			}
			if r.source.bucket.Profile.BatchDeletesMarkers || !isMarker(*e.source) {
				submit(remove)
			} else if err := remove(); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(err, r.stale.cause())
}

// deleteEntry deletes a version that was copied. The error is ESTALE if the key has another version, or if the copy is
// gone.
func (r *treeMove) deleteEntry(ctx context.Context, e mergeEntry) error {
	if e.copy == nil {
		return s3error.New(syscall.ESTALE, "another client added the file, or removed its copy")
	}
	v, _, err := r.source.bucket.Head(ctx, e.source.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !r.copied.has(v):
		return s3error.New(syscall.ESTALE, "another client replaced the file after it was copied")
	case err != nil:
		return err
	}
	return r.source.deleteCurrent(ctx, v)
}

// walk walks through both directories in parallel, in the order of the keys.
func (r *treeMove) walk(ctx context.Context) iter.Seq2[mergeEntry, error] {
	return func(yield func(mergeEntry, error) bool) {
		advance := func(next func() (s3api.Version, error, bool)) (*s3api.Version, error) {
			v, err, more := next()
			if !more {
				return nil, nil
			}
			return &v, err
		}
		sources, stop := iter.Pull2(withoutReserved(r.source.bucket.WalkInOrder(ctx, r.from)))
		defer stop()
		copies, stop := iter.Pull2(withoutReserved(r.target.bucket.WalkInOrder(ctx, r.to)))
		defer stop()
		copied, err := advance(copies)
		var source *s3api.Version
		if err == nil {
			source, err = advance(sources)
		}
		for err == nil && (source != nil || copied != nil) {
			e := mergeEntry{source: source, copy: copied}
			if source != nil && copied != nil {
				switch strings.Compare(source.Key[len(r.from):], copied.Key[len(r.to):]) {
				case -1:
					e.copy = nil
				case +1:
					e.source = nil
				}
			}
			if !yield(e, nil) {
				return
			}
			if e.source != nil {
				source, err = advance(sources)
			}
			if e.copy != nil && err == nil {
				copied, err = advance(copies)
			}
		}
		if err != nil {
			yield(mergeEntry{}, err)
		}
	}
}

// withoutReserved skips the objects of the server itself, such as the upload journal and queued events. A directory
// contains such objects if it contains the root of another tenant or of a folder. They stay where they are, whatever
// happens to the directory.
func withoutReserved(versions iter.Seq2[s3api.Version, error]) iter.Seq2[s3api.Version, error] {
	return func(yield func(s3api.Version, error) bool) {
		for v, err := range versions {
			if !s3object.IsReserved(v.Key) && !yield(v, err) {
				return
			}
		}
	}
}
