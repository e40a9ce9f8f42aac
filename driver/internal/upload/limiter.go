package upload

import (
	"context"
	"sync"
	"time"
)

const (
	// farParts is the maximum number of parts in flight of one upload to a distant server. It hides the round trips.
	farParts = 20

	// nearParts is the maximum number of parts in flight of all uploads to a nearby server, in addition to one part of
	// each upload. More parts would only wait in the server and use memory here.
	nearParts = 6
)

// A Limiter limits the number of parts in flight to an S3 server. A part is in flight from the time when the upload
// begins to fill it until S3 has stored it, so the limit applies to memory too. It is safe for concurrent use.
type Limiter struct {
	far    func(time.Time) bool
	shared chan struct{} // holds a value for each shared slot in use
}

// NewLimiter returns a Limiter for a server. far reports whether the server is far away.
func NewLimiter(far func(time.Time) bool) *Limiter {
	return &Limiter{far: far, shared: make(chan struct{}, nearParts)}
}

// join returns the slots of a new upload.
func (l *Limiter) join() *slots {
	if l.far(time.Now()) {
		return newSlots(farParts, nil)
	}
	return newSlots(1, l.shared)
}

// slots limit the number of parts of an upload in flight. A part takes a slot of the upload itself if one is free, and
// otherwise a slot that all uploads share. Shared slots are returned first, so an upload with a single part in flight
// never holds one, and many slow clients cannot take them away from others. Only one goroutine may call acquire.
type slots struct {
	own    chan struct{} // holds a value for each slot in use
	shared chan struct{} // holds a value for each shared slot in use; may be nil

	reserved bool // a slot was acquired for the next part

	mu       sync.Mutex
	borrowed int // number of shared slots in use by this upload
}

func newSlots(own int, shared chan struct{}) *slots {
	return &slots{own: make(chan struct{}, own), shared: shared}
}

// acquire waits for a slot. It returns false if one of the contexts ends first. Waiting uploads get shared slots in the
// order of their arrival.
func (s *slots) acquire(ctx, until context.Context) bool {
	select {
	case s.own <- struct{}{}:
		return true
	default:
	}
	select {
	case s.own <- struct{}{}:
	case s.shared <- struct{}{}:
		s.borrow()
	case <-ctx.Done():
		return false
	case <-until.Done():
		return false
	}
	return true
}

// borrow counts a shared slot, or exchanges it for an own slot if one has become free.
func (s *slots) borrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.own <- struct{}{}:
		<-s.shared
	default:
		s.borrowed++
	}
}

// release returns a slot.
func (s *slots) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.borrowed > 0 {
		s.borrowed--
		<-s.shared
		return
	}
	<-s.own
}
