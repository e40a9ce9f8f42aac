package view

import (
	"context"
	"sync"
	"time"
)

// EndingUploads tracks the uploads of a process that are ending: the client has disconnected or sent everything, and
// the server is storing the rest. Until that is done, no session can resume such an upload, and its size is unknown. A
// client that lost its connection comes back within milliseconds, and relies on the reply that it gets.
//
// The sessions of one process share EndingUploads. The zero value is ready to use.
type EndingUploads struct {
	mu      sync.Mutex
	uploads map[string]*ending // by owner and object
}

// An ending represents all ending uploads of one owner to one object.
type ending struct {
	uploads int
	done    chan struct{} // closed when uploads is 0
}

// maxEnding limits how long a command waits for an upload to end. The driver stores the rest of an upload without a
// client within this time, or gives up. S3 may take longer to complete an upload of many parts. In that case the
// command continues with the current state.
const maxEnding = 20 * time.Second

// begin records that an upload is ending. The caller must call done once when it has ended.
func (e *EndingUploads) begin(key string) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.uploads == nil {
		e.uploads = make(map[string]*ending)
	}
	of := e.uploads[key]
	if of == nil {
		of = &ending{done: make(chan struct{})}
		e.uploads[key] = of
	}
	of.uploads++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if of.uploads--; of.uploads == 0 {
			delete(e.uploads, key)
			close(of.done)
		}
	}
}

// await waits until no upload with this key is ending.
func (e *EndingUploads) await(ctx context.Context, key string) {
	e.mu.Lock()
	of := e.uploads[key]
	e.mu.Unlock()
	if of == nil {
		return
	}
	timer := time.NewTimer(maxEnding)
	defer timer.Stop()
	select {
	case <-of.done:
	case <-ctx.Done():
	case <-timer.C:
	}
}
