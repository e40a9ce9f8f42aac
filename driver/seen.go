package driver

import (
	"context"
	"io/fs"
	"iter"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// keepPage is how long the first page of a directory is kept for whoever lists it: a client that goes into a directory mostly
	// does that next, and needs a few times to and fro for its data connection before.
	keepPage = 3 * time.Second

	// maxSeenFiles is how many files of listings are remembered: as many take a megabyte or two.
	maxSeenFiles = 5000
)

// Seen is what a session has lately seen of its buckets and need not ask for again: the first page of a directory, until it is listed,
// and, if it is told to, the files that listings have shown. It may be out of date by what others write; the session's own writes make
// it forget everything.
type Seen struct {
	remember time.Duration // for how long files are; 0: not at all

	mu     sync.Mutex
	writes int // that have begun or ended
	page   *seenPage
	files  *seenFiles // nil where there are none
}

// A seenPage is the first of a directory.
type seenPage struct {
	bucket *bucket
	prefix string
	page   *page
}

// seenFiles are remembered, and forgotten, together.
type seenFiles struct{ infos map[seenKey]*fileInfo }

type seenKey struct {
	bucket *bucket
	key    string
}

// NewSeen returns what a session has seen that has just begun. Files that listings show are remembered for so long, and
// [Fs.StatFile] tells of them what the listing has shown; 0 stands for not at all.
func NewSeen(files time.Duration) *Seen { return &Seen{remember: files} }

// now returns what keeps something that was asked for now from being taken for what is there after a write.
func (s *Seen) now() (writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// forget is called when something is written, before and after.
func (s *Seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	s.page, s.files = nil, nil
}

// firstPage returns the first page of a directory, if it is kept.
func (s *Seen) firstPage(b *bucket, prefix string) *page {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page == nil || s.page.bucket != b || s.page.prefix != prefix {
		return nil
	}
	return s.page.page
}

// keep keeps the first page of a directory for a while.
func (s *Seen) keep(b *bucket, prefix string, p *page, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes != writes {
		return
	}
	s.page = &seenPage{b, prefix, p}
	time.AfterFunc(keepPage, func() { s.drop(p) })
}

// drop ends that a page is kept.
func (s *Seen) drop(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.page != nil && s.page.page == p {
		s.page = nil
	}
}

// file returns what a listing has shown of a file, or nil.
func (s *Seen) file(b *bucket, key string) *fileInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		return nil
	}
	return s.files.infos[seenKey{b, key}]
}

// listed remembers the files of a listing as they are shown.
func (s *Seen) listed(b *bucket, entries iter.Seq2[fs.FileInfo, error], writes int) iter.Seq2[fs.FileInfo, error] {
	if s.remember == 0 {
		return entries
	}
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if file, ok := info.(*fileInfo); ok && err == nil && !file.IsDir() {
				s.add(seenKey{b, file.object.Key}, file, writes)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// add remembers a file, for no longer than the first of those that are remembered already.
func (s *Seen) add(key seenKey, file *fileInfo, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes != writes {
		return
	}
	if s.files == nil {
		files := &seenFiles{infos: map[seenKey]*fileInfo{}}
		s.files = files
		time.AfterFunc(s.remember, func() { s.dropFiles(files) })
	}
	if len(s.files.infos) < maxSeenFiles {
		s.files.infos[key] = file
	}
}

func (s *Seen) dropFiles(files *seenFiles) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == files {
		s.files = nil
	}
}

// A forgetter is a client by which everything that is written makes a session forget what it has seen.
type forgetter struct {
	Client
	seen *Seen
}

// PutObject implements [Client].
func (f forgetter) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return forgetting(ctx, f.seen, in, f.Client.PutObject, opts)
}

// DeleteObject implements [Client].
func (f forgetter) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return forgetting(ctx, f.seen, in, f.Client.DeleteObject, opts)
}

// DeleteObjects implements [Client].
func (f forgetter) DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return forgetting(ctx, f.seen, in, f.Client.DeleteObjects, opts)
}

// CopyObject implements [Client].
func (f forgetter) CopyObject(ctx context.Context, in *s3.CopyObjectInput, opts ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	return forgetting(ctx, f.seen, in, f.Client.CopyObject, opts)
}

// CompleteMultipartUpload implements [Client].
func (f forgetter) CompleteMultipartUpload(
	ctx context.Context, in *s3.CompleteMultipartUploadInput, opts ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	return forgetting(ctx, f.seen, in, f.Client.CompleteMultipartUpload, opts)
}

// forgetting is what all that writes has in common.
func forgetting[In, Out any](
	ctx context.Context, seen *Seen, in *In, write func(context.Context, *In, ...func(*s3.Options)) (*Out, error), opts []func(*s3.Options),
) (*Out, error) {
	seen.forget()
	defer seen.forget()
	return write(ctx, in, opts...)
}
