package server

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/driver"
)

// sweepUploads removes the uploads that nobody works on any more, because a server died or a client did not come back, again and again
// until ctx ends. Other servers of the same buckets do the same.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.cfg.AbandonedUploads
	if age == 0 {
		return
	}
	again(ctx, driver.SweepInterval(age), func() {
		ofAll(s.buckets, func(b *bucket) error {
			_, err := b.ledger.Sweep(ctx, age)
			if err != nil && ctx.Err() == nil {
				s.log.Warn("abandoned uploads could not be removed", "tenant", b.tenant, "err", err)
			}
			return err
		})
	})
}

// again does something at once, and after each interval until ctx ends.
func again(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		do()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
