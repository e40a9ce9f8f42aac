package tree

import (
	"context"
	"errors"
	"hash/maphash"
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

// replaced is how many bytes a copy replaces.
func (p mergeEntry) replaced() int64 {
	if p.copy == nil {
		return 0
	}
	return p.copy.Size
}

// isCopy tells whether one object is proven to be a copy of the other.
func (p mergeEntry) isCopy(ctx context.Context) (bool, error) {
	is, err := p.source.IsCopiedTo(ctx, p.copy)
	if errors.Is(err, syscall.ESTALE) {
		err = errChanged
	}
	return is, err
}

// fingerprints are those of the versions of a directory that have their copies. They take eight bytes each: there may be millions.
type fingerprints struct {
	seed maphash.Seed

	mu     sync.Mutex
	sums   []uint64
	sorted bool
}

func (f *fingerprints) add(v s3api.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums, f.sorted = append(f.sums, f.of(v)), false
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

// stampCopy puts a stamp into the attributes of a copy that a version will have, where nothing else will show for certain that it is one. The
// copy is made by one request, or by parts.
func stampCopy(v s3api.Version, a *attributes.Attributes, o *attributes.Objects, target *s3api.Bucket, to string, atOnce bool) {
	encryption := a.Encryption
	if encryption.Algorithm == "" {
		encryption = o.DefaultEncryption()
	}
	keepsETag := v.Bucket.Name == target.Name && v.Bucket.Profile.MD5ETags && checksums.MD5OfETag(v.ETag) != nil &&
		a.Encryption.KeepsMD5() && encryption.KeepsMD5() && atOnce
	if v.Size == 0 || keepsETag {
		return
	}
	value := v.Stamp(target, to)
	bytes := len(attributes.CopyStampKey) + len(value)
	for key, value := range a.Metadata {
		bytes += len(key) + len(value)
	}
	if bytes > attributes.MaxMetadata {
		return
	}
	a.SetMetadata(attributes.CopyStampKey, value)
}
