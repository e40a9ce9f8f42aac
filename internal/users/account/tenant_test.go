package account

import (
	"log/slog"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/users/bans"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// registryOf returns a registry with the tenants of a configuration and buckets without a server.
func registryOf(t *testing.T, cfg *config.Config) *Registry {
	t.Helper()
	buckets := map[string]*s3client.Bucket{}
	for name := range cfg.Tenants {
		buckets[name] = &s3client.Bucket{}
	}
	return registryWith(t, cfg, buckets)
}

// registryBefore returns a registry with the tenants of a configuration and their buckets on an S3 server.
func registryBefore(t *testing.T, cfg *config.Config, s *s3test.Server) *Registry {
	t.Helper()
	must.OK(t, cfg.Validate())
	buckets, err := s3client.NewFactory(s.AWSConfig(), nil, slog.New(slog.DiscardHandler)).Buckets(cfg)
	must.OK(t, err)
	return registryWith(t, cfg, buckets)
}

func registryWith(t *testing.T, cfg *config.Config, buckets map[string]*s3client.Bucket) *Registry {
	t.Helper()
	bundle, err := cfg.Bundle()
	must.OK(t, err)
	withEndpoint(buckets)
	log := slog.New(slog.DiscardHandler)
	r := NewRegistry(log, bans.New(config.Bans{}, config.Networks{}, log, func(bans.Ban) {}))
	c, err := r.Prepare(cfg, bundle, buckets, nil, driver.Options{})
	must.OK(t, err)
	c.Apply()
	return r
}

// withEndpoint gives all buckets that were not created by a factory the same endpoint.
func withEndpoint(buckets map[string]*s3client.Bucket) {
	for _, b := range buckets {
		if b.Endpoint == nil {
			b.Endpoint = endpoint
		}
	}
}

var endpoint = driver.NewEndpoint()

// letters abbreviates rights for test tables: l(ist) r(ead) w(rite) d(elete) n(ame, rename) m(kdir).
func letters(rights view.Rights) string {
	text := ""
	for i, right := range []bool{rights.List, rights.Read, rights.Write, rights.Delete, rights.Rename, rights.Mkdir} {
		if right {
			text += "lrwdnm"[i : i+1]
		}
	}
	return text
}
