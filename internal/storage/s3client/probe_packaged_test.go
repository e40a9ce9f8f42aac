package s3client_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A probe names what a profile promises that Ceph or Swift does not do, and nothing where the profile is right. It also
// says where Ceph loses tags.
func TestProbePackaged(t *testing.T) {
	wrong := map[string]map[config.Profile]string{
		"ceph": {
			"auto": "", "minio": "the ETag in the answer to CompleteMultipartUpload", "aws": "checksums in requests",
			"r2": "PutObject with If-Match", // the ETag has quotes
		},
		"swift": {"auto": "", "ceph": "listings with the ETag of a copy of parts", "gcs": "10,000 parts"},
	}
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) {
		probe := func(t *testing.T, cfg *config.Config) *s3client.Report {
			t.Helper()
			must.OK(t, cfg.Validate())
			log := slog.New(slog.DiscardHandler)
			buckets, err := s3client.NewFactory(s.AWSConfig(), nil, log).Buckets(cfg)
			must.OK(t, err)
			b := buckets["acme"]
			b.AddUse(s3client.Use{Write: true, Delete: true}) // of users who may do everything
			return s3client.Probe(t.Context(), b, log)
		}
		for profile, want := range wrong[s.Name] {
			t.Run(string(profile), func(t *testing.T) {
				cfg := servicetest.NewConfig(t, s)
				cfg.S3.Profile = profile
				if r := probe(t, cfg); r.OK() != (want == "") || !strings.Contains(r.String(), want) {
					t.Errorf("the probe reports %s; want %q", r, want)
				}
			})
		}
		if s.Name != "ceph" {
			return
		}
		t.Run("tags", func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.Tenants["acme"].Objects = config.Objects{Tags: map[string]string{"owner": "acme"}}
			r := probe(t, cfg)
			const lost = "its S3 server loses objects.tags: "
			if want := []string{lost + "a copy with other attributes, as MFMT and some renames make it, has none",
				lost + "an upload by parts has none"}; !r.OK() || !slices.Equal(r.Notes, want) {
				t.Errorf("the probe reports %s", r)
			}
		})
	})
}
