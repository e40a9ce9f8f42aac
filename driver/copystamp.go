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

// A mergeEntry is a name and the versions that the two directories have under this name. One of them may be nil.
type mergeEntry struct{ source, copy *s3api.Version }

// fingerprints is the set of source versions in a directory that have been copied, as HeadObject describes them. Each
// takes only eight bytes, because there may be millions.
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

// empty reports whether no version has been copied.
func (f *fingerprints) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sums) == 0
}

// has reports whether the set contains a version. With a million versions, it returns true for another version with a
// probability of about 1 in 10¹³.
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

// stampCopy adds a stamp to the attributes of the copy of a version, which proves the origin of the copy if a later
// attempt has to complete this one.
func (r *treeMove) stampCopy(v s3api.Version, a *s3object.Attributes, to string) {
	if value := v.Stamp(r.target.bucket, to); s3object.HasRoom(a.Metadata, s3object.CopyStampKey, value) {
		a.SetMetadata(s3object.CopyStampKey, value)
	}
}

// renameTime limits how long a rename waits for another replica that may be about to delete the source of a copy.
const renameTime = 5 * time.Second

// waitForRename returns the file at a key. If made, which was stored age ago, is a stamped copy of that file, then a
// rename of the file is running on another replica or was interrupted. In this case waitForRename waits until the file
// is gone or the copy is renameTime old.
//
// Without waiting, two replicas could both complete the same rename, or one could rename the file back just before the
// delete of the other one reaches S3. S3 compares only ETags, so it would delete the file that has come back.
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

// firstPause is the first pause of [Fs.waitForRename]. Each further pause is twice as long.
const firstPause = 50 * time.Millisecond
