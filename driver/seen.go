package driver

import (
	"io/fs"
	"iter"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// maxSeenFiles is how many files of listings are remembered: as many take a megabyte or two.
const maxSeenFiles = 5000

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
	bucket *s3api.Bucket
	key    string
}

type seenEntry struct {
	info *fileinfo.Info
	at   uint64 // by the writeLog, before S3 was asked
}

// NewSeen returns what a session has seen that has just begun. Files that listings show are remembered for so long, and
// [Fs.StatFile] tells of them what the listing has shown; 0 stands for not at all.
func NewSeen(files time.Duration) *Seen { return &Seen{remember: files} }

// file returns what a listing has shown of a file, or nil.
func (s *Seen) file(writes *clients.WriteLog, b *s3api.Bucket, key string) *fileinfo.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		return nil
	}
	entry, found := s.files.entries[seenKey{b, key}]
	if !found || writes.Since(b.Name, key, entry.at) {
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
			if file, ok := info.(*fileinfo.Info); ok && err == nil && !file.IsDir() {
				s.add(f.memory, seenKey{f.bucket, file.Key()}, seenEntry{file, at})
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
