package view

import (
	"context"
	"sync"
	"time"
)

// Endings are the uploads of a process that are ending: their client is gone or has sent everything, and the server
// stores the rest. Until that is done no session can resume such an upload, and no size of it is known. A client
// whose connection was lost comes back within milliseconds, and believes the reply that it gets then.
//
// Sessions of one process share Endings. The zero value is ready.
type Endings struct {
	mu      sync.Mutex
	uploads map[string]*ending // by owner and object
}

// An ending is what waits for the uploads of one owner to one object.
type ending struct {
	uploads int
	done    chan struct{} // closed when there is none left
}

// maxEnding is how long a command waits for an upload to end. Within that time the driver stores the rest of an
// upload that has lost its client, or gives up. S3 may take longer to put together many parts. Then the command gets
// what there is.
const maxEnding = 20 * time.Second

// begin notes that an upload ends. The caller calls done once, when it has ended.
func (e *Endings) begin(key string) (done func()) {
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

// await waits until no upload is ending.
func (e *Endings) await(ctx context.Context, key string) {
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
