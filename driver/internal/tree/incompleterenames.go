package tree

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// maxIncompleteRenames is how many renames a session remembers that are incomplete.
const maxIncompleteRenames = 1000

// incompleteRenames are the renames of a session whose files have both names, because S3 has not deleted the old one.
// Where no file is replaced, the same rename would find its own copy in its way.
//
// To look at the target does not tell: another client may have stored the same bytes there, as a lock for example. A
// rename must not take that for its own copy. Only the session that made the copy knows which version it is.
//
// It also remembers that S3 has refused to delete a file. From then on a rename looks whether there is a file of the
// new name before it makes one, so that it can be undone.
type incompleteRenames struct {
	refused atomic.Bool // S3 has refused to delete a file

	mu    sync.Mutex
	files map[string]mergeEntry // by the new key
}

// add remembers a rename.
func (i *incompleteRenames) add(source, made s3api.Version) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.files) < maxIncompleteRenames {
		i.files[made.Key] = mergeEntry{source: &source, copy: &made}
	}
}

// remove forgets a rename that has come to its end.
func (i *incompleteRenames) remove(newKey string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.files, newKey)
}

// has tells whether a rename is incomplete, and both files are as it left them.
func (i *incompleteRenames) has(ctx context.Context, source s3api.Version, newKey string, target *s3api.Bucket) bool {
	i.mu.Lock()
	e, found := i.files[newKey]
	i.mu.Unlock()
	if !found || !e.source.Is(source) {
		return false
	}
	made, _, err := target.Head(ctx, newKey)
	return err == nil && e.copy.Is(made)
}
