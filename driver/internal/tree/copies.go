package tree

import (
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/checksums"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A mergeEntry is what both directories have under the same name. One of them may have nothing.
type mergeEntry struct{ source, copy *s3api.Version }

// mustBeCopy fails with ENOTEMPTY unless one object is proven to be a copy of the other.
func (e mergeEntry) mustBeCopy(ctx context.Context) error {
	is, err := e.source.IsCopiedTo(ctx, e.copy)
	switch {
	case errors.Is(err, syscall.ESTALE):
		return errChanged
	case err == nil && !is:
		return syscall.ENOTEMPTY
	}
	return err
}

// fingerprints are those of the versions of a directory that have their copies. They take eight bytes each: there may be millions.
type fingerprints struct {
	seed maphash.Seed

	mu     sync.Mutex
	sums   []uint64
	sorted bool
	first  map[string]s3api.Version // by key, at most maxEntries
}

func newFingerprints() *fingerprints {
	return &fingerprints{seed: maphash.MakeSeed(), first: make(map[string]s3api.Version)}
}

func (f *fingerprints) add(v s3api.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums, f.sorted = append(f.sums, f.of(v)), false
	if _, known := f.first[v.Key]; !known && len(f.first) < maxEntries {
		f.first[v.Key] = v
	}
}

// few are the versions of a small directory, in the order of their keys, each as it was first added.
func (f *fingerprints) few() []s3api.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(maps.Values(f.first), func(a, b s3api.Version) int { return strings.Compare(a.Key, b.Key) })
}

// has tells whether a version is among them. One that is not is taken for one of a million as often as once in 10¹³ times.
func (f *fingerprints) has(v s3api.Version) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sorted {
		slices.Sort(f.sums)
		f.sorted = true
	}
	_, found := slices.BinarySearch(f.sums, f.of(v))
	return found
}

func (f *fingerprints) of(v s3api.Version) uint64 {
	return maphash.String(f.seed, strings.Trim(v.ETag, `"`)+" "+strconv.FormatInt(v.Size, 10)+" "+v.Key)
}

// stampCopy puts a stamp into the attributes of a future copy of a version, where nothing else will prove that it is one. S3 makes the copy
// by one request, or by parts.
func (t *Tree) stampCopy(v s3api.Version, a *attributes.Attributes, to string) {
	encryption := a.Encryption
	if encryption.Algorithm == "" {
		encryption = t.Objects.DefaultEncryption()
	}
	keepsETag := v.Bucket.Name == t.Bucket.Name && v.Bucket.Profile.MD5ETags && checksums.MD5OfETag(v.ETag) != nil &&
		a.Encryption.KeepsMD5() && encryption.KeepsMD5() && t.copiesAtOnce(v)
	if v.Size == 0 || keepsETag {
		return
	}
	value := v.Stamp(t.Bucket, to)
	bytes := len(attributes.CopyStampKey) + len(value)
	for key, value := range a.Metadata {
		bytes += len(key) + len(value)
	}
	if bytes <= attributes.MaxMetadata {
		a.SetMetadata(attributes.CopyStampKey, value)
	}
}
