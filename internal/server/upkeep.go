package server

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

const (
	// maxParallel is the number of buckets or quotas that are processed at the same time.
	maxParallel = 16
	// maxSweepInterval is the maximum time between two sweeps.
	maxSweepInterval = time.Hour
	// removeEvery is the time between two removals of interrupted uploads to changed names.
	removeEvery = 10 * time.Second
	// recountEvery is the time between two counts of a quota. Between counts, a quota only includes what this process
	// stores and deletes. A count takes one request per 1,000 objects.
	recountEvery = time.Hour
	// dueEvery is the time between two checks for quotas that have to be counted.
	dueEvery = time.Minute
	// closeTimeout limits the last requests when the server ends. There are only some if files were stored during the
	// last seconds.
	closeTimeout = 5 * time.Second
)

// bucketUsable does what had to wait until a bucket was usable: it counts quotas and removes abandoned uploads.
func (s *Server) bucketUsable(ctx context.Context, b *s3client.Bucket) {
	s.tenants.CountQuotas()
	if s.active.Load().cfg.AbandonedUploads > 0 {
		s.inSlot(ctx, func() { s.sweepBucket(ctx, b) })
	}
}

// inSlot calls do when fewer than maxParallel others are running, unless ctx ends first.
func (s *Server) inSlot(ctx context.Context, do func()) {
	select {
	case s.upkeep <- struct{}{}:
		defer func() { <-s.upkeep }()
		do()
	case <-ctx.Done():
	}
}

// sweepUploads regularly removes abandoned uploads until ctx ends. Such uploads remain if a server crashed, or if a
// client did not return. Other servers with the same buckets also sweep. bucketUsable does the first sweep of a
// bucket.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.active.Load().cfg.AbandonedUploads
	if age == 0 {
		return
	}
	repeat(ctx, min(maxSweepInterval, age), func() {
		forEach(s.journaledBuckets(), func(b *s3client.Bucket) { s.sweepBucket(ctx, b) })
	})
}

// journaledBuckets returns the buckets with a journal, including those that reloads removed.
func (s *Server) journaledBuckets() []*s3client.Bucket {
	all := slices.DeleteFunc(slices.Clone(s.buckets()), func(b *s3client.Bucket) bool {
		return !b.Usable() || b.Journal == nil
	})
	s.retired.Range(func(b, _ any) bool {
		all = append(all, b.(*s3client.Bucket))
		return true
	})
	return all
}

// retire keeps sweeping the buckets that a reload removes, because no later process knows about them.
func (s *Server) retire(before, next []*s3client.Bucket) {
	for _, old := range before {
		stays := slices.ContainsFunc(next, func(b *s3client.Bucket) bool {
			return b.Prefix == old.Prefix && b.SamePlace(old)
		})
		if !stays && old.Usable() && old.Journal != nil {
			s.retired.Store(old, nil)
		}
	}
}

func (s *Server) sweepBucket(ctx context.Context, b *s3client.Bucket) {
	ctx = account.InTenant(ctx, b.Tenant)
	err := panics.Catch(func() error {
		_, err := b.Journal.Sweep(ctx, s.active.Load().cfg.AbandonedUploads)
		if _, retired := s.retired.Load(b); !retired || err != nil {
			return err
		}
		empty, err := b.Journal.IsEmpty(ctx)
		if empty {
			s.retired.Delete(b)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("removing abandoned uploads failed; the next sweep retries", "tenant", b.Tenant, "err", err)
	}
}

// removeChangedUploads removes interrupted uploads to names that sessions changed recently.
func (s *Server) removeChangedUploads(ctx context.Context) {
	forEach(s.journaledBuckets(), func(b *s3client.Bucket) {
		ctx := account.InTenant(ctx, b.Tenant)
		err := panics.Catch(func() error { return b.Journal.RemoveChanged(ctx) })
		if err != nil && ctx.Err() == nil {
			s.log.Warn("removing interrupted uploads to changed names failed; retrying",
				"tenant", b.Tenant, "err", err)
		}
	})
}

// countQuotas counts new quotas at once, and every quota every recountEvery, until ctx ends.
func (s *Server) countQuotas(ctx context.Context) {
	ticker := time.NewTicker(dueEvery)
	defer ticker.Stop()
	for {
		for _, q := range s.tenants.DueQuotas(recountEvery) {
			panics.Go(func() { s.inSlot(ctx, func() { s.countQuota(ctx, q) }) })
		}
		select {
		case <-s.tenants.Uncounted():
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) countQuota(ctx context.Context, q *account.Quota) {
	ctx = account.InTenant(ctx, q.Tenant)
	err := panics.Catch(func() error { return q.Count(ctx) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("counting the files of a quota failed; the next count retries",
			"tenant", q.Tenant, "user", q.User, "err", err)
	}
}

// repeat calls do after each interval until ctx ends.
func repeat(ctx context.Context, interval time.Duration, do func()) {
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

// forEach calls do for all items, maxParallel at the same time.
func forEach[T any](all []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, one := range all {
		group.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = group.Wait() // do returns no error
}
