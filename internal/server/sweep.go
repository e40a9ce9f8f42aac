package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/s3client"
)

// maxSweepInterval is the longest time between two sweeps.
const maxSweepInterval = time.Hour

// sweepUploads removes abandoned uploads, again and again until ctx ends. Their server died, or their client did not come back. Other servers of
// the same buckets do the same. The first sweep of a bucket is that of bucketUsable.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.cfg.AbandonedUploads
	if age == 0 {
		return
	}
	runAfter(ctx, min(maxSweepInterval, age), func() {
		forEachLimit(s.buckets, func(b *s3client.Bucket) error {
			if !b.Usable() {
				return nil
			}
			return s.sweepBucket(ctx, b)
		})
	})
}

func (s *Server) sweepBucket(ctx context.Context, b *s3client.Bucket) error {
	err := panics.Catch(func() error {
		_, err := b.Journal.Sweep(ctx, s.cfg.AbandonedUploads)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("abandoned uploads could not be removed; the next sweep tries again", "tenant", b.Tenant, "err", err)
	}
	return err
}

// runEvery does something at once, and after each interval until ctx ends.
func runEvery(ctx context.Context, interval time.Duration, do func()) {
	do()
	runAfter(ctx, interval, do)
}

// runAfter does something after each interval until ctx ends.
func runAfter(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			do()
		case <-ctx.Done():
			return
		}
	}
}

// maxParallel is for how many buckets or quotas S3 is asked at once.
const maxParallel = 16

// forEachLimit does something with all, maxParallel at once, and returns the errors in their order.
func forEachLimit[T any](all []T, do func(T) error) []error {
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for i, one := range all {
		group.Go(func() error {
			errs[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errs
}
