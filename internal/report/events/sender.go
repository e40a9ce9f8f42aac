package events

import (
	"context"
	"sync"
)

// A Sender runs the queues of a server. The zero value has none.
type Sender struct {
	mu      sync.Mutex
	queues  map[string]*Queue
	ending  map[*Queue]string // what Replace has left out, while logins use it
	ctx     context.Context   // nil while nothing is sent
	cancel  context.CancelFunc
	sending sync.WaitGroup
}

// Start sends the events of all queues until End.
func (s *Sender) Start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.cancel = context.WithCancel(ctx)
	for _, q := range s.queues {
		s.run(q)
	}
}

// Replace sends the events of other queues, by the names of tenants. Those that are not among them end with the last
// login that uses them. Until then they send to the receiver that their tenant has.
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

func (s *Sender) run(q *Queue) {
	ctx := s.ctx
	s.sending.Go(func() {
		q.Run(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ending, q)
	})
}

// End leaves in S3 what was not sent.
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
