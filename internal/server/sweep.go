package server

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

// maxSweepInterval is the longest time between two sweeps.
const maxSweepInterval = time.Hour

// sweepUploads removes abandoned uploads, again and again until ctx ends. Their server died, or their client did not
// come back. Other servers of the same buckets do the same. The first sweep of a bucket is that of bucketUsable.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.active.Load().cfg.AbandonedUploads
	if age == 0 {
		return
	}
	repeat(ctx, min(maxSweepInterval, age), func() {
		forEach(s.buckets(), func(b *s3client.Bucket) {
			if b.Usable() {
				_ = s.sweepBucket(ctx, b) // logged
			}
		})
	})
}

func (s *Server) sweepBucket(ctx context.Context, b *s3client.Bucket) error {
	ctx = account.InTenant(ctx, b.Tenant)
	err := panics.Catch(func() error {
		_, err := b.Journal.Sweep(ctx, s.active.Load().cfg.AbandonedUploads)
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("abandoned uploads could not be removed; the next sweep tries again", "tenant", b.Tenant, "err", err)
	}
	return err
}
