package driver

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A mergeEntry is what both directories have under the same name. One of them may have nothing.
type mergeEntry struct{ source, copy *s3api.Version }

// fingerprints identify the versions of a directory that have their copies, as HeadObject describes them. They take
// eight bytes each, because there may be millions.
type fingerprints struct {
	seed maphash.Seed

	mu     sync.Mutex
	sums   []uint64
	sorted bool
}

func newFingerprints() *fingerprints { return &fingerprints{seed: maphash.MakeSeed()} }

func (f *fingerprints) add(v s3api.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums, f.sorted = append(f.sums, f.of(v)), false
}

// empty reports whether nothing has its copy.
func (f *fingerprints) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sums) == 0
}

// has reports whether a version is among them. Among a million, it takes a missing one for one of them as often as once
// in 10¹³ times.
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
	return maphash.String(f.seed, v.Key+" "+v.ID+" "+strconv.FormatInt(v.Size, 10)+" "+v.Identity())
}

// stampCopy adds a stamp to the attributes of a future copy of a version. It is the proof for an attempt that completes
// this one.
func (r *treeMove) stampCopy(v s3api.Version, a *s3object.Attributes, to string) {
	if value := v.Stamp(r.target.bucket, to); s3object.HasRoom(a.Metadata, s3object.CopyStampKey, value) {
		a.SetMetadata(s3object.CopyStampKey, value)
	}
}

// renameTime is how long a rename waits for another replica that may be about to delete the original of a copy.
const renameTime = 5 * time.Second

// waitForRename returns the file at a key. If an object of this age is the copy that a rename made of that very file,
// the rename runs on another replica, or it was interrupted. waitForRename then waits until the file is gone, or the
// copy is renameTime old.
//
// Without that, two replicas could both complete one rename, or one could rename the file back just before the delete
// of the other reaches S3. S3 compares only ETags, so it would delete the file that has come back.
func (f *Fs) waitForRename(
	ctx context.Context, made *s3api.Version, age time.Duration, key string,
) (s3api.Version, error) {
	for pause := firstPause; ; pause *= 2 {
		v, _, err := f.bucket.Head(ctx, key)
		if err != nil || age >= renameTime || !made.IsStampedCopyOf(&v) {
			return v, err
		}
		if err := s3api.Sleep(ctx, pause); err != nil {
			return v, err
		}
		age += pause
	}
}

// firstPause is the first pause of [Fs.waitForRename]. Each further one is twice as long.
const firstPause = 50 * time.Millisecond
