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
	// maxParallel is the number of buckets or quotas that the server works for at the same time.
	maxParallel = 16
	// maxSweepInterval is the longest time between two sweeps.
	maxSweepInterval = time.Hour
	// removeEvery is the time between two removals of interrupted uploads to changed names.
	removeEvery = 10 * time.Second
	// recountEvery is the time between two counts of a quota, which otherwise knows only what this process stores and
	// deletes. A count takes a request for each 1,000 objects.
	recountEvery = time.Hour
	// dueEvery is the time between two looks for quotas that have to be counted.
	dueEvery = time.Minute
	// closeTimeout bounds the last requests of a server that ends, which it makes only if it has stored files within
	// the last seconds.
	closeTimeout = 5 * time.Second
)

// bucketUsable does for a bucket what waits until it can be used: it counts quotas and removes abandoned uploads.
func (s *Server) bucketUsable(ctx context.Context, b *s3client.Bucket) {
	s.tenants.CountQuotas()
	if s.active.Load().cfg.AbandonedUploads > 0 {
		s.inSlot(ctx, func() { s.sweepBucket(ctx, b) })
	}
}

// inSlot does something as soon as less than maxParallel others are at work, unless ctx ends before.
func (s *Server) inSlot(ctx context.Context, do func()) {
	select {
	case s.upkeep <- struct{}{}:
		defer func() { <-s.upkeep }()
		do()
	case <-ctx.Done():
	}
}

// sweepUploads removes abandoned uploads, again and again until ctx ends. Their server died, or their client did not
// come back. Other servers of the same buckets do the same. The first sweep of a bucket is that of bucketUsable.
func (s *Server) sweepUploads(ctx context.Context) {
	age := s.active.Load().cfg.AbandonedUploads
	if age == 0 {
		return
	}
	repeat(ctx, min(maxSweepInterval, age), func() {
		forEach(s.journaled(), func(b *s3client.Bucket) { s.sweepBucket(ctx, b) })
	})
}

// journaled are the buckets that have a journal: those of all tenants, and those that reloads have removed.
func (s *Server) journaled() []*s3client.Bucket {
	all := slices.DeleteFunc(slices.Clone(s.buckets()), func(b *s3client.Bucket) bool {
		return !b.Usable() || b.Journal == nil
	})
	s.retired.Range(func(b, _ any) bool {
		all = append(all, b.(*s3client.Bucket))
		return true
	})
	return all
}

// retire keeps the buckets that a reload removes in the sweeps. No later process knows their places.
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
		s.log.Warn("abandoned uploads could not be removed; the next sweep tries again", "tenant", b.Tenant, "err", err)
	}
}

// removeChangedUploads removes the interrupted uploads to names that sessions have changed a moment ago.
func (s *Server) removeChangedUploads(ctx context.Context) {
	forEach(s.journaled(), func(b *s3client.Bucket) {
		ctx := account.InTenant(ctx, b.Tenant)
		err := panics.Catch(func() error { return b.Journal.RemoveChanged(ctx) })
		if err != nil && ctx.Err() == nil {
			s.log.Warn("interrupted uploads to changed names could not be removed; the server tries again",
				"tenant", b.Tenant, "err", err)
		}
	})
}

// countQuotas counts what is stored, each new quota at once and then every recountEvery, until ctx ends.
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
		s.log.Warn("files of a quota could not be counted; the next count tries again",
			"tenant", q.Tenant, "user", q.User, "err", err)
	}
}

// repeat does something after each interval until ctx ends.
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

// forEach does something with all, maxParallel at once.
func forEach[T any](all []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for _, one := range all {
		group.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = group.Wait() // none returns an error
}
