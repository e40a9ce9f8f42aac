package upload

import (
	"context"
	"sync"
	"time"
)

const (
	// farParts is how many parts an upload may have under way to a distant server, where one part after another would
	// wait for round trips.
	farParts = 20

	// nearParts is how many parts all uploads to a near server may have under way, besides one of each. More would
	// only wait in the server, and take memory here.
	nearParts = 6
)

// A Limiter bounds how many parts of uploads are under way to an S3 server. A part is under way from the moment the
// upload begins to fill it until S3 has stored it, so the limit bounds memory too. It is safe for concurrent use.
type Limiter struct {
	far    func(time.Time) bool
	shared chan struct{} // holds a value for each part besides the first of its upload
}

// NewLimiter returns a limiter for a server. The function reports whether the server is far away.
func NewLimiter(far func(time.Time) bool) *Limiter {
	return &Limiter{far: far, shared: make(chan struct{}, nearParts)}
}

// join returns the slots for the parts of one more upload.
func (l *Limiter) join() *slots {
	if l.far(time.Now()) {
		return newSlots(farParts, nil)
	}
	return newSlots(1, l.shared)
}

// slots bound how many parts of an upload are under way. A part takes a slot of the upload itself if one is free, and
// else one of those that uploads share. Shared slots are returned first. So an upload with one part under way holds no
// shared slot, and needs none: one slow client after another cannot take them from others. Only one goroutine may take
// slots.
type slots struct {
	own    chan struct{} // holds a value for each slot in use
	shared chan struct{} // likewise, by all uploads; nil if none are shared

	reserved bool // a slot is taken for the part that begins next

	mu       sync.Mutex
	borrowed int // shared slots that this upload uses
}

func newSlots(own int, shared chan struct{}) *slots {
	return &slots{own: make(chan struct{}, own), shared: shared}
}

// take waits for a slot. It returns false if one of the contexts ends first. Waiting uploads get shared slots in the
// order in which they came.
func (s *slots) take(ctx, until context.Context) bool {
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

// borrow counts a shared slot, unless the upload's own slot has become free in the meantime.
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

// leave returns a slot.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.borrowed > 0 {
		s.borrowed--
		<-s.shared
		return
	}
	<-s.own
}
