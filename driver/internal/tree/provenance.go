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
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
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

// fingerprints are those of the versions of a directory that have their copies. They take eight bytes each: there may
// be millions.
type fingerprints struct {
	seed maphash.Seed

	mu     sync.Mutex
	sums   []uint64
	sorted bool
	looked map[string]s3api.Version // as S3 has described them, by key; at most maxEntries
	young  map[string]s3api.Version // that were stored within the second in which they were looked at
	others map[string]bool          // the keys of those that have been replaced since
}

func newFingerprints() *fingerprints {
	return &fingerprints{
		seed: maphash.MakeSeed(), looked: map[string]s3api.Version{}, young: map[string]s3api.Version{},
		others: map[string]bool{},
	}
}

func (f *fingerprints) add(v s3api.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sums, f.sorted = append(f.sums, f.of(v, v.ModTime.Unix())), false
	if v.Looked && len(f.looked) < maxEntries {
		f.looked[v.Key] = v
	}
}

// addLooked adds a version that S3 was asked for, and which had an age then.
func (f *fingerprints) addLooked(v s3api.Version, age time.Duration) {
	f.add(v)
	if age > clockStep {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.young[v.Key] = v
}

// clockStep is by how much an age may be wrong that is the difference of two times in whole seconds.
const clockStep = time.Second

// replaced notes that another version has the key of one that was added.
func (f *fingerprints) replaced(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.others[key] = true
}

// empty tells whether nothing has its copy.
func (f *fingerprints) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sums) == 0
}

// find tells whether a version that was listed is among them, by its ETag, size and time. It returns the version with
// all that is known of it. One that is not among them is taken for one of a million as often as once in 10¹³ times.
func (f *fingerprints) find(listed s3api.Version) (s3api.Version, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.sorted {
		slices.Sort(f.sums)
		f.sorted = true
	}
	second := listed.ModTime.Unix()
	_, found := slices.BinarySearch(f.sums, f.of(listed, second))
	if !found { // HeadObject may round up
		_, found = slices.BinarySearch(f.sums, f.of(listed, second+1))
	}
	if v, known := f.looked[listed.Key]; known && v.IsStill(listed) {
		v.Seen = listed.Seen
		listed = v
	}
	return listed, found && !f.others[listed.Key]
}

func (f *fingerprints) of(v s3api.Version, second int64) uint64 {
	return maphash.String(
		f.seed, strings.Trim(v.ETag, `"`)+" "+strconv.FormatInt(v.Size, 10)+" "+strconv.FormatInt(second, 10)+" "+v.Key)
}

// stampCopy puts a stamp into the attributes of a future copy of a version. What is renamed always gets one, see
// checkRenamed. Another copy gets one where its ETag will not prove that it is one: S3 makes it by one request, or by
// parts.
func (r *treeMove) stampCopy(v s3api.Version, a *s3object.Attributes, to string) {
	t := r.target
	encryption := a.Encryption
	if encryption.Algorithm == "" {
		encryption = t.Objects.DefaultEncryption()
	}
	keepsETag := v.Bucket.Name == t.Bucket.Name && v.Bucket.Profile.MD5ETags && s3object.MD5OfETag(v.ETag) != nil &&
		a.Encryption.KeepsMD5() && encryption.KeepsMD5() && t.copiesAtOnce(v)
	if r.keepsSource && (v.Size == 0 || keepsETag) {
		return
	}
	if value := v.Stamp(t.Bucket, to); s3object.HasRoom(a.Metadata, s3object.CopyStampKey, value) {
		a.SetMetadata(s3object.CopyStampKey, value)
	}
}

// renameTime is how long after its copy a rename may yet delete the old name.
const renameTime = 5 * time.Minute

// errBeingRenamed reports what checkRenamed has found.
var errBeingRenamed = s3error.New(syscall.EAGAIN,
	"another session is renaming this file, and may yet delete its old name; try again in five minutes")

// checkRenamed fails with EAGAIN where a file is to come back to the old name of a rename that another process has not
// ended. The file has its age, and is the copy that the rename has made. What is under the old name has the same ETag,
// and so would the file: the rename would delete it there.
func checkRenamed(v *s3api.Version, age time.Duration, old *s3api.Version) error {
	if age < renameTime && v.IsStampedCopyOf(old) {
		return errBeingRenamed
	}
	return nil
}
