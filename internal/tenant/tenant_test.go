package tenant

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/s3test"
	"github.com/babelftp/babelftp/internal/vfs"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// password is that of every user, and passwordHash its hash.
const password = "correct horse"

func passwordHash(t *testing.T) config.Secret {
	t.Helper()
	hash, err := HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	return config.NewSecret(hash)
}

// newConfig is a configuration with the tenant acme in a fresh bucket of an S3 server and the user alice.
func newConfig(t *testing.T, s *s3test.Server) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.S3 = config.S3{
		Endpoint: s.Endpoint, Region: s.Region, PathStyle: aws.Bool(true),
		AccessKeyID: s.AccessKeyID, SecretAccessKey: config.NewSecret(s.SecretAccessKey),
	}
	cfg.Tenants = map[string]*config.Tenant{"acme": {
		Hosts:  []string{"ftp.acme.example"},
		Bucket: s.Bucket(t),
		Prefix: "inbox/",
		Users:  map[string]*config.User{"alice": {PasswordHash: passwordHash(t), Home: "/alice"}},
	}}
	return cfg
}

// registryOf is the tenants of a configuration, with buckets that nothing reaches.
func registryOf(t *testing.T, cfg *config.Config) *Registry {
	t.Helper()
	buckets := map[string]*s3client.Bucket{}
	for name := range cfg.Tenants {
		buckets[name] = &s3client.Bucket{}
	}
	return registryWith(t, cfg, buckets)
}

// registryBefore is the tenants of a configuration, with their buckets at an S3 server.
func registryBefore(t *testing.T, cfg *config.Config, s *s3test.Server) *Registry {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	reach := s.AWSConfig()
	buckets, err := s3client.NewFactory(&reach, nil).Buckets(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return registryWith(t, cfg, buckets)
}

func registryWith(t *testing.T, cfg *config.Config, buckets map[string]*s3client.Bucket) *Registry {
	t.Helper()
	bundle, err := cfg.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRegistry(cfg, bundle, buckets, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// letters writes rights for short tables: l(ist) r(ead) w(rite) d(elete) n(ame, rename) m(kdir).
func letters(rights vfs.Rights) string {
	text := ""
	for i, right := range []bool{rights.List, rights.Read, rights.Write, rights.Delete, rights.Rename, rights.Mkdir} {
		if right {
			text += "lrwdnm"[i : i+1]
		}
	}
	return text
}
