package s3client_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A probe lists the promises of a profile that Ceph or Swift does not keep, and nothing if the profile is correct. It
// also notes where Ceph loses tags.
func TestProbePackaged(t *testing.T) {
	wrong := map[string]map[config.Profile]string{
		"ceph": {
			"auto": "", "minio": "the ETag in the response to CompleteMultipartUpload", "aws": "checksums in requests",
			"r2": "PutObject with If-Match", // the ETag has quotes
		},
		"swift": {"auto": "", "ceph": "multipart uploads that no longer exist once completed", "gcs": "10,000 parts"},
	}
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) {
		probe := func(t *testing.T, cfg *config.Config) *s3client.Report {
			t.Helper()
			must.OK(t, cfg.Validate())
			log := slog.New(slog.DiscardHandler)
			buckets, err := s3client.NewFactory(s.AWSConfig(), nil, log).Buckets(cfg)
			must.OK(t, err)
			b := buckets["acme"]
			b.AddUse(s3client.Use{Write: true, Delete: true}) // users with all permissions
			return s3client.Probe(t.Context(), b, log)
		}
		for profile, want := range wrong[s.Name] {
			t.Run(string(profile), func(t *testing.T) {
				cfg := servicetest.NewConfig(t, s)
				cfg.S3.Profile = profile
				if r := probe(t, cfg); r.OK() != (want == "") || !strings.Contains(r.String(), want) {
					t.Errorf("got report %s, want %q", r, want)
				}
			})
		}
		if s.Name != "ceph" {
			return
		}
		t.Run("policy", func(t *testing.T) { testPolicyOfPrefix(t, s) })
		t.Run("tags", func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.Tenants["acme"].Objects = config.Objects{Tags: map[string]string{"owner": "acme"}}
			// Ceph ignores tags of copies and of uploads by parts, and the driver adds them.
			if r := probe(t, cfg); !r.OK() || len(r.Notes) > 0 {
				t.Errorf("unexpected report of the probe: %s", r)
			}
		})
	})
}

// With the policy for a prefix, users of Ceph can work with names that do not exist, and list nothing else. The probe
// reports what another policy lacks.
// Reported for Ceph: ceph/ceph#68577
func testPolicyOfPrefix(t *testing.T, s *s3test.Server) {
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.Profile, cfg.Tenants["acme"].Prefix = "ceph", "inbox/"
	bucketFor := func(s *s3test.Server) *s3client.Bucket {
		cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = s.AccessKeyID, value.NewSecret(s.SecretAccessKey)
		log := slog.New(slog.DiscardHandler)
		buckets, err := s3client.NewFactory(s.AWSConfig(), nil, log).Buckets(cfg)
		must.OK(t, err)
		buckets["acme"].AddUse(s3client.Use{Write: true, Delete: true, Past: true})
		return buckets["acme"]
	}
	policy := s3client.PolicyFor(t.Context(), bucketFor(s))
	b := bucketFor(s.Restricted(t, policy))
	if r := s3client.Probe(t.Context(), b, slog.New(slog.DiscardHandler)); !r.OK() {
		t.Errorf("unexpected report of the probe: %s", r)
	}
	options := &driver.Options{Prefix: b.Prefix, Profile: b.Profile}
	files, err := driver.New(b.ObjectClient(), b.Name, options)
	must.OK(t, err)
	fsys := files.Afero(t.Context())
	must.OK(t, afero.WriteFile(fsys, "new", []byte("content"), 0))
	must.OK(t, fsys.Rename("new", "renamed"))
	if _, err := fsys.Stat("new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a missing file: %v", err)
	}
	if err := fsys.Remove("new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove of a missing file: %v", err)
	}
	for _, in := range []*s3.ListObjectsV2Input{
		{}, {MaxKeys: aws.Int32(1)}, {Prefix: aws.String("")}, {Prefix: aws.String("outbox/")},
		{Delimiter: aws.String("/")},
	} {
		in.Bucket = &b.Name
		if _, err := b.Client.ListObjectsV2(t.Context(), in); !s3error.HasCode(err, "AccessDenied") {
			t.Errorf("listing of other keys: %v", err)
		}
	}
	for i, statement := range policy.Statement {
		if _, lookup := statement.Condition["Null"]; !lookup {
			continue
		}
		policy.Statement = slices.Delete(policy.Statement, i, i+1)
		break
	}
	r := s3client.Probe(t.Context(), bucketFor(s.Restricted(t, policy)), slog.New(slog.DiscardHandler))
	want := s3client.Permission{Action: s3client.ListBucket, Resource: "arn:aws:s3:::" + b.Name, Lookup: true}
	if !slices.Equal(r.Missing, []s3client.Permission{want}) || len(r.Problems) > 0 {
		t.Errorf("got report %s, want only %v", r, want)
	}
}
