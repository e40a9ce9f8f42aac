package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxParallel is for how many buckets or quotas the server works at the same time.
const maxParallel = 16

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
