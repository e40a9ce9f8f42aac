// Package upkeep repeats work, and does it for many things in parallel.
package upkeep

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// MaxParallel is for how many things [Each] does something at the same time.
const MaxParallel = 16

// Every does something at once, and after each interval until ctx ends.
func Every(ctx context.Context, interval time.Duration, do func()) {
	do()
	After(ctx, interval, do)
}

// After does something after each interval until ctx ends.
func After(ctx context.Context, interval time.Duration, do func()) {
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

// Each does something with all, MaxParallel at once.
func Each[T any](all []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(MaxParallel)
	for _, one := range all {
		group.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = group.Wait() // none returns an error
}
