package s3client

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// mentionsChecksum returns the header or parameter of a request that concerns checksums, or "".
func mentionsChecksum(r *http.Request) string {
	for name := range r.Header {
		if strings.Contains(name, "Checksum") || name == "X-Amz-Trailer" {
			return name
		}
	}
	for name := range r.URL.Query() {
		if strings.Contains(strings.ToLower(name), "checksum") {
			return name
		}
	}
	return ""
}

// A client sends checksums if the profile supports them, even if the profile is found after the client was created.
// Otherwise it sends none.
//
// Reported for Backblaze B2: vatesfr/xen-orchestra#8358, diced/zipline#746
func TestChecksums(t *testing.T) {
	requests := map[string]func(context.Context, *Bucket) error{
		"put": func(ctx context.Context, b *Bucket) error {
			_, err := b.ObjectClient().PutObject(ctx, &s3.PutObjectInput{
				Bucket: &b.Name, Key: aws.String("a"), Body: strings.NewReader("content"),
			})
			return err
		},
		"get": func(ctx context.Context, b *Bucket) error {
			out, err := b.ObjectClient().GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: aws.String("a")})
			if err == nil {
				err = out.Body.Close()
			}
			return err
		},
		"delete-many": func(ctx context.Context, b *Bucket) error {
			_, err := b.ObjectClient().DeleteObjects(ctx, &s3.DeleteObjectsInput{
				Bucket: &b.Name, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("a")}}},
			}, s3.WithAPIOptions(addContentMD5))
			return err
		},
	}
	for _, tc := range []struct {
		server  string
		profile config.Profile
		found   string
		sends   bool
	}{
		{"sim-aws", "", "strict", false},
		{"sim-aws", "strict", "strict", false},
		{"sim-aws", "backblaze", "backblaze", false},
		{"sim-aws", "gcs", "gcs", false},
		{"sim-aws", "aws", "aws", true},
		{"minio", "", "minio", true},
		{"minio", "strict", "strict", false},
	} {
		t.Run(tc.server+"/"+cmp.Or(string(tc.profile), "auto"), func(t *testing.T) {
			s := s3test.Start(t, tc.server)
			cfg := servicetest.NewConfig(t, s)
			// makes Verify run the experiments
			cfg.S3.Profile, cfg.Tenants["acme"].Resume = tc.profile, config.KeepInterrupted
			reach := s.AWSConfig()
			seen := watch(reach)
			all, err := open(t.Context(), cfg, reach)
			must.OK(t, err)
			b := all[0]
			inUse := b.ObjectClient()
			must.OK(t, b.Verify(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil))))
			if b.Profile.Name != tc.found || inUse != b.ObjectClient() {
				t.Errorf("got profile %s, same client: %t", b.Profile.Name, inUse == b.ObjectClient())
			}
			for _, r := range seen.requests {
				if name := mentionsChecksum(r); name != "" && !tc.sends {
					t.Errorf("%s %s: unexpected header %s in a request that detects the profile", r.Method, r.URL, name)
				}
			}
			for _, name := range []string{"put", "get", "delete-many"} {
				seen.requests = nil
				must.OK(t, requests[name](t.Context(), b))
				if sent := mentionsChecksum(seen.requests[0]); (sent != "") != tc.sends {
					t.Errorf("%s: unexpected value %q", name, sent)
				}
			}
		})
	}
}

// If objects.checksum is set, the server has to prove that it keeps checksums, whatever its profile says.
func TestCheckChecksum(t *testing.T) {
	for name, tc := range map[string]struct {
		profile config.Profile
		refuses bool // requests with a checksum are refused
		writes  bool
		want    string // expected error
	}{
		"profile-with":    {"aws", false, true, ""},
		"shown":           {"ceph", false, true, ""},
		"unknown-refuses": {"", true, true, "its S3 server (strict) does not keep checksums, which objects.checksum requires"},
		"refuses": {"backblaze", true, true,
			"its S3 server (backblaze) does not keep checksums, which objects.checksum requires: remove objects.checksum"},
		"read-only": {"backblaze", true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile, cfg.Tenants["acme"].Objects.Checksum = tc.profile, "sha256"
			reach := s.AWSConfig()
			watch(reach).answer = func(response *http.Response) {
				if tc.refuses && mentionsChecksum(response.Request) != "" {
					response.StatusCode = http.StatusBadRequest
				}
			}
			all, err := open(t.Context(), cfg, reach)
			must.OK(t, err)
			all[0].AddUse(Use{Write: tc.writes})
			err = all[0].Verify(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if want := tc.writes && tc.want == ""; all[0].Profile.Checksums != want {
				t.Errorf("the profile has checksums: got %t, want %t", all[0].Profile.Checksums, want)
			}
		})
	}
}
