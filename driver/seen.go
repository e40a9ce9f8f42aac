package driver

import (
	"context"
	"hash/maphash"
	"io/fs"
	"iter"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

const (
	// maxSeenFiles is how many files of listings are remembered: as many take a megabyte or two.
	maxSeenFiles = 5000

	// writeSlots is how many groups of keys a writeLog tells apart. A write makes sessions ask again for the other files of its group too.
	writeSlots = 4096
)

// Seen is what a session has lately seen of its buckets and need not ask for again, if it is told to remember: the files that listings have
// shown. What other software writes makes it out of date. What any file system writes that has the same [Route] does not: such files
// are asked for again.
type Seen struct {
	remember time.Duration // for how long files are; 0: not at all

	mu    sync.Mutex
	files *seenFiles // nil where there are none
}

// seenFiles are remembered, and forgotten, together.
type seenFiles struct {
	memory  *Budget
	entries map[seenKey]seenEntry
}

type seenKey struct {
	bucket *bucket
	key    string
}

type seenEntry struct {
	info *fileInfo
	at   uint64 // by the writeLog, before S3 was asked
}

// NewSeen returns what a session has seen that has just begun. Files that listings show are remembered for so long, and
// [Fs.StatFile] tells of them what the listing has shown; 0 stands for not at all.
func NewSeen(files time.Duration) *Seen { return &Seen{remember: files} }

// file returns what a listing has shown of a file, or nil.
func (s *Seen) file(b *bucket, key string) *fileInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		return nil
	}
	entry, found := s.files.entries[seenKey{b, key}]
	if !found || b.route.writes.since(b.name, key, entry.at) {
		return nil
	}
	return entry.info
}

// listed remembers the files of a listing as they are shown, which was asked for at some time or later.
func (s *Seen) listed(f *Fs, entries iter.Seq2[fs.FileInfo, error], at uint64) iter.Seq2[fs.FileInfo, error] {
	if s.remember == 0 {
		return entries
	}
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if file, ok := info.(*fileInfo); ok && err == nil && !file.IsDir() {
				s.add(f.memory, seenKey{f.bucket, file.object.Key}, seenEntry{file, at})
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// add remembers a file, for no longer than the first of those that are remembered already, if there is memory.
func (s *Seen) add(memory *Budget, key seenKey, entry seenEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		files := &seenFiles{memory: memory, entries: map[seenKey]seenEntry{}}
		s.files = files
		time.AfterFunc(s.remember, func() { s.dropFiles(files) })
	}
	if _, known := s.files.entries[key]; known || len(s.files.entries) < maxSeenFiles && s.files.memory.Metadata.TryTake(seenMemory) {
		s.files.entries[key] = entry
	}
}

func (s *Seen) dropFiles(files *seenFiles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = nil
	files.memory.Metadata.Return(int64(len(files.entries)) * seenMemory)
}

// A writeLog knows when keys were written last by this process. It counts writes in place of time.
type writeLog struct {
	seed maphash.Seed

	mu    sync.Mutex
	count uint64
	last  []uint64 // by a hash of bucket and key; nil before the first write
}

// now is the time of a look that begins.
func (l *writeLog) now() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// note says that a key is about to be written, or was.
func (l *writeLog) note(bucket, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make([]uint64, writeSlots)
	}
	l.count++
	l.last[l.slot(bucket, key)] = l.count
}

// since tells whether a key may have been written since some time.
func (l *writeLog) since(bucket, key string, at uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last != nil && l.last[l.slot(bucket, key)] > at
}

func (l *writeLog) slot(bucket, key string) uint64 {
	return maphash.Comparable(l.seed, [...]string{bucket, key}) % writeSlots
}

// A noter is a client that notes everything that is written, before and after: what was seen meanwhile may be either version.
type noter struct {
	Client
	log *writeLog
}

// PutObject implements [Client].
func (n noter) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	defer n.note(in.Bucket, in.Key)()
	return n.Client.PutObject(ctx, in, opts...)
}

// DeleteObject implements [Client].
func (n noter) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	defer n.note(in.Bucket, in.Key)()
	return n.Client.DeleteObject(ctx, in, opts...)
}

// DeleteObjects implements [Client].
func (n noter) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	defer n.note(in.Bucket, keysOf(in.Delete)...)()
	return n.Client.DeleteObjects(ctx, in, opts...)
}

// CopyObject implements [Client].
func (n noter) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	defer n.note(in.Bucket, in.Key)()
	return n.Client.CopyObject(ctx, in, opts...)
}

// CompleteMultipartUpload implements [Client].
func (n noter) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	defer n.note(in.Bucket, in.Key)()
	return n.Client.CompleteMultipartUpload(ctx, in, opts...)
}

// note notes that keys are about to be written, and returns what notes it again.
func (n noter) note(bucket *string, keys ...*string) func() {
	each := func() {
		for _, key := range keys {
			n.log.note(aws.ToString(bucket), aws.ToString(key))
		}
	}
	each()
	return each
}

func keysOf(d *types.Delete) []*string {
	keys := make([]*string, len(d.Objects))
	for i := range keys {
		keys[i] = d.Objects[i].Key
	}
	return keys
}
