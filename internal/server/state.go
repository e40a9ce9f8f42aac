package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// stateCopy is the name of the file with a copy of the shared state.
const stateCopy = "state.json"

// sharedState is what the server shares with other replicas. Methods of nil do nothing.
type sharedState struct {
	store  *state.Store
	bucket *s3client.Bucket
	bans   *bans.Sharing
	users  *usersfile.Stored
	log    *slog.Logger
}

// OpenState returns the shared state of a configuration for a command: it reads items from S3 when they are needed, and
// uses no copy. The bucket is verified first.
func OpenState(ctx context.Context, cfg *config.Config) (*state.Store, error) {
	log := slog.New(slog.DiscardHandler)
	environment, err := s3client.LoadEnvironment(ctx, log)
	if err != nil {
		return nil, err
	}
	bucket, store, err := newStore(cfg, s3client.NewFactory(environment, nil, log), "", log)
	if err != nil {
		return nil, err
	}
	if err := bucket.Verify(ctx, log); err != nil {
		return nil, fmt.Errorf("state %s: %w", store, err)
	}
	return store, nil
}

// newStore returns the bucket and the store of a configuration with a state section. It sends no request.
func newStore(
	cfg *config.Config, clients *s3client.Factory, file string, log *slog.Logger,
) (*s3client.Bucket, *state.Store, error) {
	bucket, err := clients.StateBucket(cfg)
	if err != nil {
		return nil, nil, err
	}
	ring, err := cfg.State.Ring()
	if err != nil {
		return nil, nil, err
	}
	return bucket, state.New(state.Options{
		Client: bucket.Client, Bucket: bucket.Name, Prefix: bucket.Prefix, Keys: ring, File: file, Log: log,
	}), nil
}

// newState returns the shared state, or nil if the configuration has no state section. It sends no request.
func newState(cfg *config.Config, clients *s3client.Factory, log *slog.Logger) (*sharedState, error) {
	if !cfg.State.IsSet() {
		return nil, nil
	}
	bucket, store, err := newStore(cfg, clients, filepath.Join(cfg.State.Folder, stateCopy), log)
	if err != nil {
		return nil, err
	}
	return &sharedState{store: store, bucket: bucket, users: usersfile.NewStored(store), log: log}, nil
}

// items returns the store of the items, or nil.
func (s *sharedState) items() *state.Store {
	if s == nil {
		return nil
	}
	return s.store
}

// shareBans lets replicas exchange the bans in a list.
func (s *sharedState) shareBans(cfg *config.Config, list *bans.List) error {
	if s == nil {
		return nil
	}
	ring, err := cfg.State.Ring()
	if err != nil {
		return err
	}
	key, err := ring.Derive("unknown users")
	if err != nil {
		return err
	}
	s.bans = list.Share(s.store, key, s.log)
	return nil
}

// run exchanges the state with other replicas until ctx ends. It calls use with the keys of TLS session tickets.
func (s *sharedState) run(ctx context.Context, users *account.Registry, use func(keys [][32]byte)) {
	if s == nil {
		return
	}
	panics.Go(func() { users.ShareLogins(ctx, s.store) })
	panics.Go(func() { s.store.Run(ctx, func(ctx context.Context) error { return s.bucket.Verify(ctx, s.log) }) })
	panics.Go(func() { s.bans.Run(ctx) })
	panics.Go(func() { s.shareTickets(ctx, use) })
}

// save saves the copy of the state before the server ends.
func (s *sharedState) save() {
	if s != nil {
		s.store.Save()
	}
}

// ProbeState tries what the server does with the shared state. place is its URL, such as
// "s3://bucket/.babelftp/state/", or empty if the configuration has no state section.
func (s *Server) ProbeState(ctx context.Context) (place string, err error) {
	if s.state == nil {
		return "", nil
	}
	return s.state.store.String(), s.state.probe(ctx)
}

// probeTimeout limits the probe of the shared state.
const probeTimeout = time.Minute

func (s *sharedState) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := s.bucket.Verify(ctx, s.log); err != nil {
		return err
	}
	return s.store.Probe(ctx)
}

// StatePolicy returns the minimal IAM policy for the shared state, or an error if the configuration has no state
// section.
func (s *Server) StatePolicy() (s3client.Policy, error) {
	if s.state == nil {
		return s3client.Policy{}, errors.New("state is missing in the configuration")
	}
	return s3client.PolicyForState(s.state.bucket), nil
}
