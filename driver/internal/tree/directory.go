package tree

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"iter"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// errChanged is about a directory in which another client has changed something meanwhile.
var errChanged = s3errors.New(syscall.EAGAIN, "directory changed meanwhile")

// maxPairs is how many pairs are held between the check and the copies: as many as one request lists.
const maxPairs = 1000

// directory takes a directory from one prefix to another. Its steps hold no list of the keys of a large directory, of which there may be
// millions: each walks through the directories anew.
func (r *treeMove) directory(ctx context.Context) error {
	requests := make(clients.Slots, treeConcurrency)
	r.f, r.target = r.f.limited(requests), r.target.limited(requests)
	r.copied = &fingerprints{seed: maphash.MakeSeed()}
	if err := r.check(ctx); err != nil {
		return err
	}
	if err := r.copy(ctx); err != nil || r.keepsSource {
		return err
	}
	return r.delete(ctx)
}

// check makes sure that nothing stands in the way. What the new directory holds must come from an attempt that was interrupted: each file
// in it is a copy of the one of its name, and one directory holds all that the other does, the new one while files were being deleted,
// the old one before.
func (r *treeMove) check(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		var onlySource, onlyCopy bool
		all := make([]mergeEntry, 0, 1)
		for p, err := range r.checkPairs(ctx) {
			if err != nil {
				return err
			}
			if len(all) <= maxPairs {
				all = append(all, p)
			}
			switch {
			case p.source != nil && len(r.to)+len(p.source.Key)-len(r.from) > keys.MaxBytes:
				return syscall.ENAMETOOLONG
			case p.copy == nil:
				onlySource = true
			case p.copy.Key == r.to && p.copy.Size == 0: // a marker is of no weight
			case p.source == nil:
				onlyCopy = true
			case !p.source.ShowsCopy(p.copy):
				submit(func() error { return p.mustBeCopy(ctx) })
			}
			if onlySource && onlyCopy {
				return syscall.ENOTEMPTY
			}
		}
		if len(all) <= maxPairs {
			r.pairs = all
		}
		return nil
	})
}

func (p mergeEntry) mustBeCopy(ctx context.Context) error {
	is, err := p.isCopy(ctx)
	if err == nil && !is {
		err = syscall.ENOTEMPTY
	}
	return err
}

// checkPairs are all pairs, of which one at least must have a source.
func (r *treeMove) checkPairs(ctx context.Context) iter.Seq2[mergeEntry, error] {
	sources, copies := r.f.Bucket.WalkInOrder(ctx, r.from), r.target.Bucket.WalkInOrder(ctx, r.to)
	if r.toIsNew {
		copies = func(func(s3api.Version, error) bool) {}
	}
	return r.merge(mustHaveSome(sources), copies)
}

// mustHaveSome is a walk that ends with fs.ErrNotExist where there is nothing.
func mustHaveSome(walk iter.Seq2[s3api.Version, error]) iter.Seq2[s3api.Version, error] {
	return func(yield func(s3api.Version, error) bool) {
		some := false
		for v, err := range walk {
			some = true
			if !yield(v, err) {
				return
			}
		}
		if !some {
			yield(s3api.Version{}, fs.ErrNotExist)
		}
	}
}

// checkedPairs are those of a small directory as they were checked. What has changed since, the copies notice, and the deletes. A large
// directory is walked through again.
func (r *treeMove) checkedPairs(ctx context.Context) iter.Seq2[mergeEntry, error] {
	if r.pairs == nil {
		return r.merge(r.f.Bucket.WalkInOrder(ctx, r.from), r.target.Bucket.WalkInOrder(ctx, r.to))
	}
	return func(yield func(mergeEntry, error) bool) {
		for _, p := range r.pairs {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// copy copies all files and markers that an attempt before has not.
func (r *treeMove) copy(ctx context.Context) error {
	return inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		for p, err := range r.checkedPairs(ctx) {
			switch {
			case err != nil:
				return err
			case p.source == nil:
			case p.copy == nil:
				submit(func() error { return r.copyEntry(ctx, p, s3api.Condition{Absent: true}) })
			default:
				submit(func() error { return r.complete(ctx, p) })
			}
		}
		return nil
	})
}

// complete sees to a file that has its copy. One whose attributes may have changed since, because the file is younger, is copied anew.
func (r *treeMove) complete(ctx context.Context, p mergeEntry) error {
	if err := p.mustBeCopy(ctx); err != nil {
		return err
	}
	if isMarker(*p.source) || r.target.NoOverwrite || !p.copy.ModTime.Before(p.source.ModTime) {
		r.copied.add(*p.source)
		return nil
	}
	return r.copyEntry(ctx, p, s3api.Condition{ETag: p.copy.ETag})
}

// isMarker tells whether an object is nothing but the marker of a directory.
func isMarker(v s3api.Version) bool { return v.Size == 0 && strings.HasSuffix(v.Key, keys.Separator) }

// copyEntry copies a file or a marker, if what has the new name is still what was seen there. What is no longer there needs no copy.
func (r *treeMove) copyEntry(ctx context.Context, p mergeEntry, c s3api.Condition) error {
	key := p.source.Key
	v, a, err := r.f.Bucket.Head(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	to, customer := r.to+key[len(r.from):], a.HasCustomerKey()
	if isMarker(v) {
		err = r.copyMarker(ctx, v, &a, to)
	} else {
		err = r.copyFile(ctx, v, &a, to, c, p.replaced)
	}
	switch {
	case err == nil:
		r.copied.add(v)
		if customer { // MinIO lists another ETag, because listings do not have the key
			r.copied.add(*p.source)
		}
	case errors.Is(err, fs.ErrExist) && !isMarker(v):
		return r.takeCopy(ctx, mergeEntry{source: &v}, *p.source, to)
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ESTALE) && !c.Absent:
		return syscall.ENOTEMPTY // another client has stored something there
	case errors.Is(err, syscall.ESTALE):
		return errChanged
	}
	return err
}

// takeCopy sees to a file whose new name something has got since the directories were listed. S3 may have completed a request of an attempt
// that was interrupted: then it is the copy. Otherwise another client has stored it.
func (r *treeMove) takeCopy(ctx context.Context, p mergeEntry, listed s3api.Version, to string) error {
	made, _, err := r.target.Bucket.Head(ctx, to)
	if errors.Is(err, fs.ErrNotExist) {
		return errChanged
	}
	if err != nil {
		return err
	}
	p.copy = &made
	if err := r.complete(ctx, p); err != nil {
		return err
	}
	r.copied.add(listed)
	return nil
}

// copyFile copies a file. A condition that would take several requests more, because CopyObject does not know it, is looked at right before:
// directories hold many files.
func (r *treeMove) copyFile(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string, c s3api.Condition, replaced func() int64) error {
	if r.target.copiesAtOnce(v) && !r.target.Bucket.Profile.ConditionalCopy && !r.target.NoOverwrite {
		if err := r.target.Bucket.CheckCondition(ctx, to, c); err != nil {
			return err
		}
		c = s3api.Condition{}
	}
	stampCopy(v, a, &r.target.Objects, r.target.Bucket, to, r.target.copiesAtOnce(v))
	_, err := r.copyVersion(ctx, v, a, to, c, replaced)
	return err
}

// copyMarker makes a marker anew: versitygw does not copy them. One that is there already is as good.
func (r *treeMove) copyMarker(ctx context.Context, v s3api.Version, a *attributes.Attributes, to string) error {
	r.target.Objects.Inherit(a)
	if err := r.f.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return err
	}
	c := s3api.Condition{Absent: true}
	known, err := r.target.Bucket.Precondition(ctx, to, c, r.target.Bucket.Profile.ConditionalPut) // to S3
	if err == nil {
		_, err = r.target.Bucket.Put(ctx, to, a, known, bytes.NewReader(nil), nil)
	}
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

// delete deletes the versions that were copied. A file that was added or replaced since stays, and so does one whose copy is gone; the error
// is then EAGAIN, because to move it takes another attempt.
func (r *treeMove) delete(ctx context.Context) error {
	deleted := batch{f: r.f, exact: true, prefix: r.from, listed: true}
	err := inParallel(ctx, func(ctx context.Context, submit func(func() error)) error {
		deleted.submit = submit
		walked := 0
		for p, err := range r.merge(r.f.Bucket.WalkInOrder(ctx, r.from), r.target.Bucket.WalkInOrder(ctx, r.to)) {
			if walked++; walked > maxPairs {
				deleted.listed = false
			}
			switch {
			case err != nil:
				return err
			case p.source == nil:
			case p.copy == nil, !r.copied.has(*p.source):
				deleted.replaced.Store(true)
			default:
				if err := deleted.add(ctx, *p.source); err != nil {
					return err
				}
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

// merge walks through both directories at once, in the order of the keys. The sources are listed last: where S3 compares no versions, that is the
// look right before a small directory is deleted.
func (r *treeMove) merge(sourceWalk, copyWalk iter.Seq2[s3api.Version, error]) iter.Seq2[mergeEntry, error] {
	return func(yield func(mergeEntry, error) bool) {
		sources, stop := iter.Pull2(sourceWalk)
		defer stop()
		copies, stop := iter.Pull2(copyWalk)
		defer stop()
		advance := func(next func() (s3api.Version, error, bool)) (*s3api.Version, error) {
			v, err, more := next()
			if !more {
				return nil, nil
			}
			return &v, err
		}
		copied, copyErr := advance(copies)
		source, err := advance(sources)
		if err == nil {
			err = copyErr
		}
		for err == nil && (source != nil || copied != nil) {
			p := mergeEntry{source: source, copy: copied}
			if source != nil && copied != nil {
				switch strings.Compare(source.Key[len(r.from):], copied.Key[len(r.to):]) {
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
			yield(mergeEntry{}, err)
		}
	}
}

// limited is the file system by whose requests an operation stays within its slots. All parts that it copies share as many slots, so that
// no queue of them keeps other requests waiting.
func (f *Tree) limited(requests clients.Slots) *Tree {
	g := *f
	g.Bucket = f.Bucket.Wrap(func(c s3api.Client) s3api.Client { return clients.Limited{Client: c, Slots: requests} })
	g.Uploads = f.Uploads.WithCopySlots(g.Bucket, cap(requests))
	return &g
}
