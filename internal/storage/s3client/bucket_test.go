package s3client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Errors about a bucket are one line that names the tenant, the bucket and the change to make.
func TestCheckBuckets(t *testing.T) {
	if testing.Short() {
		t.Skip("-short has simulators only, which accept any credentials")
	}
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		unknownKey := "InvalidAccessKeyId"
		if s.Name != "minio" {
			unknownKey = "XAdminUserNotFound"
		}
		for _, tc := range []struct {
			name   string
			change func(*config.Config)
			want   string // follows the tenant and the bucket; %s is the endpoint, * the message of S3
		}{
			{"fine", func(*config.Config) {}, ""},
			{
				"missing", func(c *config.Config) { c.Tenants["acme"].Bucket = "no-such-bucket" },
				"does not exist at %s (NoSuchBucket: *): create it, or correct tenants.acme.bucket",
			},
			{
				"wrong-secret", func(c *config.Config) { c.S3.SecretAccessKey = value.NewSecret("wrong") },
				"%s returned 403 for ListObjectsV2 (SignatureDoesNotMatch: *): compare s3.secret_access_key; if a proxy is in " +
					"front of that server, let it pass on the header Host as it is (proxy_set_header Host $http_host for nginx)",
			},
			{
				"wrong-key-of-the-tenant", func(c *config.Config) {
					c.Tenants["acme"].S3 = config.S3{AccessKeyID: "nobody", SecretAccessKey: value.NewSecret("wrong")}
				},
				"%s refuses the credentials (" + unknownKey +
					": *): correct tenants.acme.s3.access_key_id and tenants.acme.s3.secret_access_key",
			},
		} {
			t.Run(tc.name, func(t *testing.T) {
				cfg := servicetest.NewConfig(t, s)
				tc.change(cfg)
				want := ""
				if tc.want != "" {
					want = fmt.Sprintf("tenant acme: bucket %q: ", cfg.Tenants["acme"].Bucket) +
						strings.ReplaceAll(tc.want, "%s", s.Endpoint)
				}
				got := ""
				if _, err := verify(t.Context(), cfg, s.AWSConfig()); err != nil {
					got = err.Error()
				}
				before, after, _ := strings.Cut(want, "*")
				if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || want == "" && got != "" {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	})
}

func TestCheckBucketsUnreachable(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1") // a second attempt would fail in the same way
	address := ftptest.FreeAddresses(t, 1)[0]
	cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
	cfg.S3.Endpoint = "http://" + address
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: "umbrella"}
	want := ""
	for _, tenant := range []string{"acme", "umbrella"} {
		want += fmt.Sprintf(
			"tenant %s: bucket %q: cannot reach S3 at http://%s: dial tcp %[3]s: connect: connection refused: "+
				"start that server, or correct s3.endpoint\n", tenant, cfg.Tenants[tenant].Bucket, address)
	}
	if _, err := verify(t.Context(), cfg, nil); err == nil || err.Error()+"\n" != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// If the bucket is in another region, a header names the region. Not every server sends it.
func TestCheckBucketsOfAnotherRegion(t *testing.T) {
	for header, want := range map[string]string{
		"eu-central-1": "is in another region than eu-west-1 (PermanentRedirect): set s3.region: eu-central-1",
		"":             "%s returned 301 for ListObjectsV2 (PermanentRedirect): compare s3.region and s3.endpoint",
	} {
		moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if header != "" {
				w.Header().Set("X-Amz-Bucket-Region", header)
			}
			w.WriteHeader(http.StatusMovedPermanently)
			_, _ = w.Write([]byte("<Error><Code>PermanentRedirect</Code></Error>"))
		}))
		defer moved.Close()
		cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
		cfg.S3.Endpoint, cfg.S3.Region = moved.URL, "eu-west-1"
		want := fmt.Sprintf("tenant acme: bucket %q: ", cfg.Tenants["acme"].Bucket) +
			strings.ReplaceAll(want, "%s", moved.URL)
		if _, err := verify(t.Context(), cfg, nil); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Without path_style, the bucket name becomes part of the host name, which few servers except AWS support.
func TestCheckBucketsWithoutPathStyle(t *testing.T) {
	cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
	cfg.S3.Endpoint, cfg.S3.PathStyle = "http://s3.invalid", nil // reserved by RFC 2606
	const want = ": set s3.path_style: true if the server has no host name for each bucket"
	if _, err := verify(t.Context(), cfg, nil); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Values that are missing in the configuration come from the environment and the files of the SDK.
func TestAccountFromTheSDK(t *testing.T) {
	for _, name := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "")
	}
	nowhere := t.TempDir() + "/none"
	t.Setenv("AWS_CONFIG_FILE", nowhere)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", nowhere)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	place := fmt.Sprintf("tenant acme: bucket %q: ", cfg.Tenants["acme"].Bucket)
	account := cfg.S3

	check := func() string {
		_, err := verify(t.Context(), cfg, nil)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	cfg.S3 = config.S3{}
	if got, want := check(), place+"its region is unknown: set s3.region or AWS_REGION"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	cfg.S3 = config.S3{Endpoint: account.Endpoint, PathStyle: account.PathStyle}
	want := place +
		"no credentials for S3 were found (the instance role (IMDS): GetMetadata: access disabled to EC2 IMDS via client " +
		"option, or \"AWS_EC2_METADATA_DISABLED\" environment variable): set s3.access_key_id and its secret, or give the process credentials that " +
		"the AWS SDK finds (environment, profile, IRSA, instance role)"
	if got := check(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", account.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", account.SecretAccessKey.Reveal())
	if got := check(); got != "" {
		t.Errorf("with credentials in the environment: got %s", got)
	}
}

// Tenants with the same server and credentials share a client, and therefore its connections.
func TestClientsAreShared(t *testing.T) {
	cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: "umbrella", S3: config.S3{Region: cfg.S3.Region}}
	cfg.Tenants["zebra"] = &config.Tenant{Bucket: "zebra", S3: config.S3{Region: "eu-west-1"}}
	all, err := open(t.Context(), cfg, nil)
	must.OK(t, err)
	acme, umbrella, zebra := all[0], all[1], all[2]
	if acme.Client != umbrella.Client || acme.Client == zebra.Client {
		t.Error("buckets of one account do not share the client")
	}
}
