package s3client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// open creates the buckets of all tenants, each followed by the buckets of its folders. If reach is nil, it loads the
// environment of the SDK.
func open(ctx context.Context, cfg *config.Config, reach *aws.Config) (all []*Bucket, err error) {
	if reach == nil {
		if reach, err = LoadEnvironment(ctx, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	buckets, err := NewFactory(reach, nil, slog.New(slog.DiscardHandler)).Buckets(cfg)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		all = append(append(all, buckets[name]), buckets[name].Folders...)
	}
	for _, b := range all {
		b.AddOverwriteMode(cfg.Tenants[b.Tenant].OverwriteOf(&config.User{}))
	}
	return all, nil
}

// verify opens and verifies all buckets, and joins the errors.
func verify(ctx context.Context, cfg *config.Config, reach *aws.Config) ([]*Bucket, error) {
	all, err := open(ctx, cfg, reach)
	for _, b := range all {
		err = errors.Join(err, b.Verify(ctx, slog.New(slog.DiscardHandler)))
	}
	return all, err
}
