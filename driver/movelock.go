package driver

import (
	"context"
	"strings"
	"sync"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// A moveLock serializes the renames, copies and changes of time of one process. A move that has a name in common with
// a running one waits until that has ended, unless both are copies: many sessions may copy the same file.
//
// So of two sessions that rename one file, only one succeeds. Between processes, [Fs.waitForRename] keeps two renames
// from deleting each other's copies.
//
// The zero value is ready. All file systems of an endpoint share one.
type moveLock struct {
	mu      sync.Mutex
	running map[*runningMove]bool
}

// A runningMove is a rename or a copy, by its two names.
type runningMove struct {
	names  [2]string
	copies bool          // deletes nothing
	done   chan struct{} // closed when it has ended
}

// begin waits until no other move touches the names, which begin with that of the bucket. The caller calls end when
// the move has ended. The error is that of ctx.
func (m *moveLock) begin(ctx context.Context, names [2]string, copies bool) (end func(), err error) {
	next := &runningMove{names: names, copies: copies, done: make(chan struct{})}
	for {
		other := m.enter(next)
		if other == nil {
			return func() { m.leave(next) }, nil
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// enter begins a move, or returns one that it must wait for.
func (m *moveLock) enter(next *runningMove) (other *runningMove) {
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

func (m *moveLock) leave(ended *runningMove) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.running, ended)
	close(ended.done)
}

// touches reports whether two moves have a file or a directory in common that one of them may delete.
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
