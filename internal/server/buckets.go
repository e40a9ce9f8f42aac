package server

import (
	"context"

	"github.com/babelftp/babelftp/internal/storage/access"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// bucketUsable does for a bucket what waits until it can be used: it removes abandoned uploads and counts quotas.
func (s *Server) bucketUsable(ctx context.Context, b *s3client.Bucket) {
	select {
	case s.upkeep <- struct{}{}:
		defer func() { <-s.upkeep }()
	case <-ctx.Done():
		return
	}
	if s.active.Load().cfg.AbandonedUploads > 0 {
		_ = s.sweepBucket(ctx, b) // logged
	}
	for _, q := range s.tenants.Quotas() {
		if q.In(b) {
			_ = s.countQuota(ctx, q) // logged
		}
	}
}

// countBuckets tells how many buckets there are, and how many cannot be used.
func (s *Server) countBuckets() (all, down int) {
	buckets := s.buckets()
	for _, b := range buckets {
		if known, err := b.Up(); known && err != nil {
			down++
		}
	}
	return len(buckets), down
}

// ProbeBuckets tries what the server does in the buckets of all tenants: see [access.ProbeAll].
func (s *Server) ProbeBuckets(ctx context.Context, report func(*access.Report)) {
	access.ProbeAll(ctx, s.buckets(), s.log, report)
}
