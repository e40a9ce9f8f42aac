package events

import (
	"context"
	"sync"
)

// A Sender runs the queues of a server. The zero value has no queues.
type Sender struct {
	mu      sync.Mutex
	queues  map[string]*Queue
	ending  map[*Queue]string // queues that Replace removed but logins still use, with their tenants
	ctx     context.Context   // nil if not running
	cancel  context.CancelFunc
	sending sync.WaitGroup
}

// Start runs all queues until End.
func (s *Sender) Start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, q := range s.queues {
		s.run(q)
	}
}

// Replace replaces the queues, by tenant. A removed queue ends with the last login that uses it. Until then it sends
// to the receiver of the tenant's new queue.
func (s *Sender) Replace(queues map[string]*Queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.queues
	s.queues = queues
	for name, q := range before {
		if queues[name] != q {
			if s.ending == nil {
				s.ending = map[*Queue]string{}
			}
			s.ending[q] = name
		}
	}
	for q, name := range s.ending {
		if next := queues[name]; next != nil {
			q.adoptReceiver(next)
		}
		q.Retire()
	}
	for name, q := range queues {
		if before[name] != q && s.ctx != nil {
			s.run(q)
		}
	}
}

// Failures returns the failures of the queues that do not deliver events, by tenant.
func (s *Sender) Failures() map[string]*Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	failures := map[string]*Failure{}
	for tenant, q := range s.queues {
		if f := q.Failure(); f != nil {
			failures[tenant] = f
		}
	}
	return failures
}

func (s *Sender) run(q *Queue) {
	ctx := s.ctx
	s.sending.Go(func() {
		q.Run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ending, q)
	})
}

// End stops sending. Unsent events stay in S3.
func (s *Sender) End() {
	s.mu.Lock()
	cancel := s.cancel
	s.ctx = nil
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		s.sending.Wait()
	}
}
