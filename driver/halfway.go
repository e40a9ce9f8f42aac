package driver

import (
	"context"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// maxHalfway is how many renames a session remembers that came halfway only.
const maxHalfway = 1000

// A halfway remembers the renames of a session whose files have both names, because S3 has not deleted the old one. Where no file is
// replaced, the same rename would find its own copy in its way. Nothing in S3 tells it from a file that somebody else has put there, the same
// bytes perhaps, which a client may take for a lock.
//
// It also remembers that S3 has refused to delete a file. From then on a rename looks whether there is a file of the new name before it makes one,
// so that it can be undone.
type halfway struct {
	mu      sync.Mutex
	files   map[string]pair // by the new key
	refused bool
}

func (h *halfway) refuse() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refused = true
}

func (h *halfway) wasRefused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.refused
}

// add remembers a rename.
func (h *halfway) add(source, made s3api.Version) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.files == nil {
		h.files = map[string]pair{}
	}
	if len(h.files) < maxHalfway {
		h.files[made.Key] = pair{source: &source, copy: &made}
	}
}

// remove forgets a rename that has come to its end.
func (h *halfway) remove(newKey string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.files, newKey)
}

// has tells whether a rename came halfway, and both files are as it left them.
func (h *halfway) has(ctx context.Context, source s3api.Version, newKey string, target *s3api.Bucket) bool {
	h.mu.Lock()
	p, found := h.files[newKey]
	h.mu.Unlock()
	if !found || !p.source.Is(source) {
		return false
	}
	made, _, err := target.Head(ctx, newKey)
	return err == nil && p.copy.Is(made)
}
