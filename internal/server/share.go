package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/babelftp/babelftp/internal/bans"
	"github.com/babelftp/babelftp/internal/bans/store"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/encryption"
)

// shareBans lets a list of bans use limits.store, if there is one. The function that it returns begins to share, and returns one that ends that.
func shareBans(cfg *config.Config, list *bans.List, m *metrics) (share func(context.Context) (end func()), err error) {
	configured := cfg.Limits.Store
	if configured.StoreURL.Empty() {
		return func(context.Context) func() { return func() {} }, nil
	}
	authorities, err := encryption.Authorities(configured.StoreCAFile)
	if err != nil {
		return nil, fmt.Errorf("limits.store_ca_file: %w", err)
	}
	s, err := store.New(configured.StoreURL.Reveal(), authorities)
	if err != nil {
		return nil, fmt.Errorf("limits.store: %w", err)
	}
	list.UseStore(s)
	m.registry.MustRegister(m.storeUp, m.storeErrors)
	return func(ctx context.Context) func() {
		ctx, cancel := context.WithCancel(ctx)
		var sharing sync.WaitGroup
		sharing.Go(func() { list.Share(ctx, m.storeAnswered) })
		return func() {
			cancel()
			sharing.Wait()
			_ = s.Close()
		}
	}, nil
}
