package server

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/users/account"
)

// recountEvery is how long the counts of quotas, which know what this process stores and deletes, may go without what
// others do. A count takes a request for each 1,000 objects.
const recountEvery = time.Hour

// countQuotas counts what is stored, again and again until ctx ends. The first count of a bucket is that of
// bucketUsable. It counts the quota of a user whom a service brought at once.
func (s *Server) countQuotas(ctx context.Context) {
	panics.Go(func() {
		for {
			select {
			case q := <-s.tenants.NewQuotas():
				_ = s.countQuota(ctx, q) // logged
			case <-ctx.Done():
				return
			}
		}
	})
	repeat(ctx, recountEvery, func() {
		forEach(s.tenants.Quotas(), func(q *account.Quota) {
			if q.Countable() {
				_ = s.countQuota(ctx, q) // logged
			}
		})
	})
}

func (s *Server) countQuota(ctx context.Context, q *account.Quota) error {
	ctx = account.InTenant(ctx, q.Tenant)
	err := panics.Catch(func() error { return q.Count(ctx) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("files of a quota could not be counted; the next count tries again",
			"tenant", q.Tenant, "user", q.User, "err", err)
	}
	return err
}
