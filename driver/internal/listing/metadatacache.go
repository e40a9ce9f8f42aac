package listing

import (
	"io/fs"
	"iter"
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// maxCachedFiles is how many files a session remembers: they take a megabyte or two.
const maxCachedFiles = 5000

// cachedFileBytes estimates how many bytes a remembered file takes.
const cachedFileBytes = 512

// A MetadataCache remembers the files that the listings of a session have shown, so that the session need not request
// them again. It returns no file that this process has written since, by a [clients.WriteLog]. Writes of other
// software make it out of date.
type MetadataCache struct {
	keepFor time.Duration // 0: not at all

	mu    sync.Mutex
	files *cachedFiles // nil where there are none
}

// cachedFiles are files of one period, which the cache drops together.
type cachedFiles struct {
	memory  *membudget.Budget
	entries map[cacheKey]cacheEntry
}

type cacheKey struct {
	bucket *s3api.Bucket
	key    string
}

type cacheEntry struct {
	info *fileinfo.Info
	at   uint64 // by the WriteLog, before S3 was asked
}

// NewMetadataCache returns an empty cache that keeps a file for this duration. With 0 it keeps none.
func NewMetadataCache(keep time.Duration) *MetadataCache { return &MetadataCache{keepFor: keep} }

// File returns a file as a listing has shown it, or nil.
func (c *MetadataCache) File(writes *clients.WriteLog, b *s3api.Bucket, key string) *fileinfo.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		return nil
	}
	entry, found := c.files.entries[cacheKey{b, key}]
	if !found || writes.Since(b.Name, key, entry.at) {
		return nil
	}
	return entry.info
}

// Remember remembers the files of a listing as the loop takes them. at is the time of the write log before the
// listing began.
func (c *MetadataCache) Remember(
	memory *membudget.Budget, b *s3api.Bucket, entries iter.Seq2[fs.FileInfo, error], at uint64,
) iter.Seq2[fs.FileInfo, error] {
	if c.keepFor == 0 {
		return entries
	}
	return func(yield func(fs.FileInfo, error) bool) {
		for info, err := range entries {
			if file, ok := info.(*fileinfo.Info); ok && err == nil && !file.IsDir() {
				c.add(memory, cacheKey{b, file.Key()}, cacheEntry{file, at})
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// add remembers a file, for no longer than the first of those that are remembered already, if there is memory.
func (c *MetadataCache) add(memory *membudget.Budget, key cacheKey, entry cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		files := &cachedFiles{memory: memory, entries: map[cacheKey]cacheEntry{}}
		c.files = files
		time.AfterFunc(c.keepFor, func() { c.dropFiles(files) })
	}
	if _, known := c.files.entries[key]; known || len(c.files.entries) < maxCachedFiles &&
		c.files.memory.Metadata.TryTake(cachedFileBytes) {
		c.files.entries[key] = entry
	}
}

func (c *MetadataCache) dropFiles(files *cachedFiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files = nil
	files.memory.Metadata.Return(int64(len(files.entries)) * cachedFileBytes)
}
