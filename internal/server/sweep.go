package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
)

// sweepUploads removes the uploads that nobody works on any more, because a server died or a client did not come back: at once, and
// again and again until ctx ends. Other servers of the same buckets do the same.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.cfg.AbandonedUploads
	if age == 0 {
		return
	}
	ticker := time.NewTicker(driver.SweepInterval(age))
	defer ticker.Stop()
	for {
		var group errgroup.Group
		group.SetLimit(checksAtOnce)
		for _, b := range s.buckets {
			group.Go(func() error {
				if _, err := b.ledger.Sweep(ctx, age); err != nil && ctx.Err() == nil {
					s.log.Warn("abandoned uploads could not be removed", "tenant", b.tenant, "err", err)
				}
				return nil
			})
		}
		_ = group.Wait() // errors are in the log
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
