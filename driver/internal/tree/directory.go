package tree

import (
	"bytes"
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

// errChanged reports that another client has changed something in a directory meanwhile.
var errChanged = s3error.New(syscall.EAGAIN, "another client changed the directory during the operation; try again")

// maxEntries is how many entries are held between the check and the copies: as many as one request lists.
const maxEntries = 1000

// directory takes a directory from one prefix to another. Its steps hold no list of the keys of a large directory, of
// which there may be millions: each walks through the directories again.
func (r *treeMove) directory(ctx context.Context) error {
	end, err := r.source.BeginOperation()
	if err != nil {
		return err
	}
	defer end()
	requests := make(s3api.Slots, maxRequests)
	r.source, r.target = r.source.limited(requests), r.target.limited(requests)
	r.copied = newFingerprints()
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.copy(ctx); err != nil {
		return err
	}
	if r.copied.empty() { // another client has removed all that was there
		return errChanged
	}
	if r.keepsSource {
		return nil
	}
	return r.delete(ctx)
}

// check makes sure that nothing stands in the way. What the new directory holds must come from an attempt that was
// interrupted. So each file in it is a copy of the one of its name, and one directory holds all that the other does.
// That is the old one, unless the attempt had begun to delete files.
func (r *treeMove) check(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		var onlySource, onlyCopy bool
		all := make([]mergeEntry, 0, 1)
		for e, err := range r.walk(ctx, true) {
			if err != nil {
				return err
			}
			if len(all) <= maxEntries {
				all = append(all, e)
			}
			switch {
			case e.source != nil && len(r.to)+len(e.source.Key)-len(r.from) > s3object.MaxKeyBytes:
				return syscall.ENAMETOOLONG
			case e.copy == nil:
				onlySource = true
			case e.copy.Key == r.to && e.copy.Size == 0: // a marker does not count
			case e.source == nil:
				onlyCopy = true
			case !e.source.ShowsCopy(e.copy):
				submit(func() error { return e.mustBeCopy(ctx) })
			}
			if onlySource && onlyCopy {
				return syscall.ENOTEMPTY
			}
		}
		if len(all) <= maxEntries {
			r.checked = all
		}
		return nil
	})
}

// checkedEntries are those of a small directory as they were checked. What has changed since, the copies notice, and
// the deletes. A large directory is walked through again.
func (r *treeMove) checkedEntries(ctx context.Context) iter.Seq2[mergeEntry, error] {
	if r.checked == nil {
		return r.walk(ctx, false)
	}
	return func(yield func(mergeEntry, error) bool) {
		for _, e := range r.checked {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// copy copies all files and markers that an attempt before has not.
func (r *treeMove) copy(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		for e, err := range r.checkedEntries(ctx) {
			switch {
			case err != nil:
				return err
			case e.source == nil:
			case e.copy == nil:
				submit(func() error { return r.copyEntry(ctx, e, s3api.Condition{Absent: true}) })
			default:
				submit(func() error { return r.complete(ctx, e) })
			}
		}
		return nil
	})
}

// complete handles a file that has its copy. One whose attributes may have changed since, because the copy is not
// younger than the file, is copied again.
func (r *treeMove) complete(ctx context.Context, e mergeEntry) error {
	if err := e.mustBeCopy(ctx); err != nil {
		return err
	}
	younger := e.copy.ModTime.After(e.source.ModTime)
	if r.target.NoOverwrite && !younger && !isMarker(*e.source) { // otherwise copyEntry looks
		v, _, age, err := r.source.Bucket.HeadExact(ctx, *e.source)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = checkRenamed(&v, age, e.copy)
		}
		if err != nil {
			return err
		}
	}
	if isMarker(*e.source) || r.target.NoOverwrite || younger {
		r.copied.add(*e.source)
		return nil
	}
	made, a, err := r.target.Bucket.Head(ctx, e.copy.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	case e.copy.ListedOtherwise(made, a.Encryption.CustomerKey), e.copy.IsStill(made):
		e.copy = &made
	}
	return r.copyEntry(ctx, e, e.copy.Unchanged())
}

// isMarker tells whether an object is nothing but the marker of a directory.
func isMarker(v s3api.Version) bool {
	return v.Size == 0 && strings.HasSuffix(v.Key, s3object.Separator)
}

// copyEntry copies a file or a marker, if what has the new name is still what was seen there. What is no longer there
// needs no copy.
func (r *treeMove) copyEntry(ctx context.Context, e mergeEntry, c s3api.Condition) error {
	v, a, age, err := r.source.Bucket.HeadExact(ctx, *e.source)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if e.copy != nil {
		if err := checkRenamed(&v, age, e.copy); err != nil {
			return err
		}
	}
	to, customer, marker := r.to+v.Key[len(r.from):], a.Encryption.CustomerKey, isMarker(v)
	if marker {
		err = r.copyMarker(ctx, v, &a, to)
	} else {
		err = r.copyFile(ctx, v, &a, to, c, e.copy)
	}
	switch {
	case err == nil:
		r.copied.addLooked(v, age)
		// KMS encrypts the marker, and MinIO lists another ETag
		if e.source.ListedOtherwise(v, customer) || marker && isMarker(*e.source) {
			r.copied.add(*e.source)
		}
	case errors.Is(err, fs.ErrNotExist) && c.Absent: // removed since the look
		return nil
	case errors.Is(err, fs.ErrExist) && !marker:
		return r.takeCopy(ctx, v, *e.source, to)
	case errors.Is(err, fs.ErrExist):
		return syscall.ENOTEMPTY // another client has stored something there
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESTALE): // of the file or of its copy
		return errChanged
	}
	return err
}

// takeCopy handles a file whose new name something has got since the directories were listed. S3 may have completed a
// request of an attempt that was interrupted: then it is the copy. Otherwise another client has stored it.
func (r *treeMove) takeCopy(ctx context.Context, v, listed s3api.Version, to string) error {
	made, _, err := r.target.Bucket.Head(ctx, to)
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	if err == nil {
		err = r.complete(ctx, mergeEntry{source: &v, copy: &made})
	}
	if err == nil {
		r.copied.add(listed)
	}
	return err
}

// copyFile copies a file over the old one, nil for none. A condition that would take several requests more, because
// CopyObject does not know it, is looked at right before: directories hold many files.
func (r *treeMove) copyFile(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, old *s3api.Version,
) error {
	if r.target.copiesAtOnce(v) && !r.target.Bucket.Profile.ConditionalCopy && !r.target.NoOverwrite {
		if err := r.target.Bucket.CheckCondition(ctx, to, c); err != nil {
			return err
		}
		c = s3api.Condition{}
	}
	r.stampCopy(v, a, to)
	change := r.target.Quotas.Change(to)
	if old == nil {
		change.Saw(s3api.Version{})
	} else {
		change.Saw(*old)
	}
	made, err := r.copyVersion(ctx, v, a, to, c, change)
	if old == nil {
		r.removeWrongCopy(ctx, to, made, err)
	}
	return err
}

// copyMarker makes a new marker: versitygw does not copy them. One that is there already is as good.
func (r *treeMove) copyMarker(ctx context.Context, v s3api.Version, a *s3object.Attributes, to string) error {
	r.target.Objects.Inherit(a)
	if err := r.source.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return err
	}
	c := s3api.Condition{Absent: true}
	_, err := r.target.Bucket.Put(ctx, to, a, c, bytes.NewReader(nil), nil)
	err = c.Failed(err)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	made, _, headErr := r.target.Bucket.Head(ctx, to)
	if headErr == nil && made.Size == 0 {
		return nil
	}
	return err
}

// delete deletes the versions that were copied. A file that was added or replaced since stays, and so does one whose
// copy is gone. The error is then EAGAIN where that is known, because to move such a file takes another attempt.
//
// It lists both directories once more. Another session may have moved the copies back, so that the files are the only
// ones again. And a file may have been replaced by one with the same ETag, whose time tells.
func (r *treeMove) delete(ctx context.Context) error {
	deleted := batch{tree: r.source, exact: true, prefix: r.from, listed: true}
	if deleted.takesMany() {
		if err := r.lookAgain(ctx); err != nil {
			return err
		}
	}
	err := inParallel(ctx, func(walk context.Context, submit func(func() error)) error { // as in RemoveAll
		deleted.submit = submit
		walked := 0
		for e, err := range r.walk(walk, false) {
			if walked++; walked > maxEntries {
				deleted.listed = false
			}
			if err == nil {
				err = walk.Err()
			}
			if err != nil {
				return err
			}
			if e.source == nil {
				continue
			}
			v, copied := r.copied.find(*e.source)
			if !copied || e.copy == nil {
				deleted.replaced.Store(true)
				continue
			}
			if err := deleted.add(ctx, v); err != nil {
				return err
			}
		}
		deleted.send(ctx)
		return nil
	})
	if err == nil && deleted.replaced.Load() {
		err = errChanged
	}
	return err
}

// lookAgain looks at the files whose times would not tell that they were replaced since they were copied: they had
// just been stored. Files that are deleted one by one are looked at then.
func (r *treeMove) lookAgain(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		for key, v := range r.copied.young {
			submit(func() error {
				now, _, err := r.source.Bucket.Head(ctx, key)
				switch {
				case errors.Is(err, fs.ErrNotExist):
					return nil
				case err == nil && !v.IsStill(now):
					r.copied.replaced(key)
				}
				return err
			})
		}
		return nil
	})
}

// walk walks through both directories in parallel, in the order of the keys. The first walk fails with fs.ErrNotExist
// where there is no source. It does not list a target that did not exist a moment ago. The sources are listed last:
// where S3 compares no versions, this list is the check right before a small directory is deleted.
func (r *treeMove) walk(ctx context.Context, first bool) iter.Seq2[mergeEntry, error] {
	return func(yield func(mergeEntry, error) bool) {
		advance := func(next func() (s3api.Version, error, bool)) (*s3api.Version, error) {
			v, err, more := next()
			if !more {
				return nil, nil
			}
			return &v, err
		}
		sources, stop := iter.Pull2(stored(r.source.Bucket.WalkInOrder(ctx, r.from)))
		defer stop()
		copies, stop := iter.Pull2(stored(r.target.Bucket.WalkInOrder(ctx, r.to)))
		defer stop()
		var copied *s3api.Version
		var copyErr error
		if !first || !r.toIsNew {
			copied, copyErr = advance(copies)
		}
		source, err := advance(sources)
		if err == nil && first && source == nil {
			err = fs.ErrNotExist
		}
		if err == nil {
			err = copyErr
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

// limited returns the tree whose requests stay within the slots of an operation. All parts that it copies share as
// many slots, so that no queue of them keeps other requests waiting.
func (t *Tree) limited(requests s3api.Slots) *Tree {
	limited := *t
	limited.Bucket = t.Bucket.Wrap(func(c s3api.Client) s3api.Client { return s3api.Limited(c, requests) })
	limited.Uploads = t.Uploads.WithCopySlots(limited.Bucket, cap(requests))
	return &limited
}
