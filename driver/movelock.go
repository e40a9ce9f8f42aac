package driver

import (
	"context"
	"strings"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A moveLock serializes the renames, copies and changes of modification times in one process. A move that shares a name
// with a running one waits until that one has ended, unless both are copies, because many sessions may copy the same
// file.
//
// So if two sessions rename the same file, only one succeeds. Between processes, [Fs.waitForRename] prevents two
// renames from deleting each other's copies.
//
// The zero value is ready to use. All file systems of an endpoint share one.
type moveLock struct {
	mu      sync.Mutex
	running map[*runningMove]bool
}

// A runningMove is a rename or a copy that is in progress, with its two names.
type runningMove struct {
	names  [2]string
	copies bool          // it deletes nothing
	done   chan struct{} // closed when the move has ended
}

// begin waits until no other move uses the names, which begin with the name of the bucket. The caller must call end
// when the move has ended. The error is the error of ctx.
func (m *moveLock) begin(ctx context.Context, names [2]string, copies bool) (end func(), err error) {
	next := &runningMove{names: names, copies: copies, done: make(chan struct{})}
	for {
		other := m.acquire(next)
		if other == nil {
			return func() { m.release(next) }, nil
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// acquire begins a move, or returns a running move to wait for.
func (m *moveLock) acquire(next *runningMove) (other *runningMove) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.running {
		if other.touches(next) {
			return other
		}
	}
	if m.running == nil {
		m.running = map[*runningMove]bool{}
	}
	m.running[next] = true
	return nil
}

func (m *moveLock) release(ended *runningMove) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, ended)
	close(ended.done)
}

// touches reports whether two moves share a file or a directory that one of them may delete.
func (m *runningMove) touches(other *runningMove) bool {
	if m.copies && other.copies {
		return false
	}
	for _, a := range m.names {
		for _, b := range other.names {
			if a == b || strings.HasPrefix(a, b+s3object.Separator) || strings.HasPrefix(b, a+s3object.Separator) {
				return true
			}
		}
	}
	return false
}
