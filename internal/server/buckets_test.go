package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// metric waits until /metrics has a line.
func metric(t *testing.T, srv *Server, line string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		_, body := get(t, srv, "/metrics")
		if strings.Contains(body, line+"\n") {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			t.Fatalf("/metrics lacks %s:\n%s", line, body)
		}
	}
}

// createBucket also succeeds if the response was lost and the SDK repeated the request.
func createBucket(t *testing.T, s *s3test.Server, name string) {
	t.Helper()
	_, err := s.Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	if _, there := errors.AsType[*types.BucketAlreadyOwnedByYou](err); err != nil && !there {
		t.Fatal(err)
	}
}

// If a bucket is missing, only its own users are refused, in their language, until it exists. Other tenants are not
// affected.
func TestMissingBucket(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		missing := s.Bucket(t)
		if _, err := s.Client().DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &missing}); err != nil {
			t.Fatal(err)
		}
		cfg.Tenants["late"] = &config.Tenant{
			Bucket: missing, DefaultLanguage: language.French, Hosts: []string{"ftp.late.example"}, Quota: 1 << 20,
			Users: map[string]*config.User{"zoe": {PasswordHash: servicetest.PasswordHash()}},
		}
		log := &servicetest.Log{}
		srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
		session(t, srv, "alice").Store("f", "content")
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(220, "HOST ftp.late.example")
		c.Command(331, "USER zoe")
		c.Command(530, "PASS wrong")
		c.Command(331, "USER zoe")
		if got := c.Command(421, "PASS "+servicetest.Password); !strings.Contains(got, "authentification") {
			t.Errorf("unexpected reply %q", got)
		}
		withoutHost := ftptest.Dial(t, srv.Addr().String())
		withoutHost.Command(331, "USER zoe")
		if got := withoutHost.Command(421, "PASS "+servicetest.Password); !strings.Contains(got, "authentification") {
			t.Errorf("unexpected reply without HOST: %q", got)
		}
		var failed []string
		for _, line := range log.Take() {
			if strings.Contains(line, "login failed") {
				failed = append(failed, line)
			}
		}
		if len(failed) != 1 || !strings.Contains(failed[0], "level=INFO") { // the watcher has already logged the error
			t.Errorf("got log lines %q for two logins, want one line", failed)
		}
		wantMetrics(t, srv, `babelftp_logins_total{result="failed",tenant="late"} 2`)
		metric(t, srv, `babelftp_bucket_up{folder="",tenant="late"} 0`)
		metric(t, srv, `babelftp_bucket_up{folder="",tenant="acme"} 1`)
		if status, body := get(t, srv, "/readyz"); status != http.StatusOK ||
			!strings.HasPrefix(body, "ready\n1 of 2 buckets") {
			t.Errorf("/readyz: got %d %s", status, body)
		}
		createBucket(t, s, missing)
		metric(t, srv, `babelftp_bucket_up{folder="",tenant="late"} 1`)
		metric(t, srv, `babelftp_quota_used_bytes{tenant="late",user=""} 0`)
		c = ftptest.Dial(t, srv.Addr().String())
		c.Login("zoe", servicetest.Password)
		c.Store("f", "content")
		c.Want("content", "RETR f")
	})
}

// A missing bucket of a folder refuses no logins. Files in the folder get a temporary error.
func TestMissingBucketOfAFolder(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	missing := "missing-" + cfg.Tenants["acme"].Bucket
	cfg.Tenants["acme"].Folders = map[string]*config.Folder{"/archive": {Bucket: missing}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := session(t, srv, "alice")
	c.Store("/f", "content")
	for _, command := range []string{"SIZE /archive/f", "MKD /archive/dir"} {
		c.Command(451, command)
	}
	c.Command(350, "RNFR /f")
	c.Command(451, "RNTO /archive/f")
	c.Want("content", "RETR /f")
	metric(t, srv, `babelftp_bucket_up{folder="/archive",tenant="acme"} 0`)
	createBucket(t, s, missing)
	metric(t, srv, `babelftp_bucket_up{folder="/archive",tenant="acme"} 1`)
	c = session(t, srv, "alice")
	c.Store("/archive/f", "content")
	c.Want("content", "RETR /archive/f")
}

// Forty tenants of an S3 server that never responds do not delay the tenants of another server.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "minio")
	silent := silentServer(t)
	cfg := servicetest.NewConfig(t, s)
	for i := range 40 {
		cfg.Tenants[fmt.Sprintf("silent%d", i)] = &config.Tenant{
			Bucket: "bucket", S3: config.S3{Endpoint: silent, Region: "us-east-1", PathStyle: aws.Bool(true),
				AccessKeyID: "key", SecretAccessKey: value.NewSecret("secret")},
			Users: map[string]*config.User{fmt.Sprintf("zoe%d", i): {PasswordHash: servicetest.PasswordHash()}},
		}
	}
	begin := time.Now()
	srv := serve(t, cfg, Options{AWS: s.AWSConfig(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	metric(t, srv, `babelftp_bucket_up{folder="",tenant="acme"} 1`)
	session(t, srv, "alice").Store("f", "content")
	if status, body := get(t, srv, "/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: got %d %s", status, body)
	}
	if _, body := get(t, srv, "/metrics"); strings.Contains(body, `babelftp_bucket_up{folder="",tenant="silent0"}`) {
		t.Errorf("the silent server responded within %v", time.Since(begin))
	}
}

// Errors in the configuration itself stop the server.
func TestConfigurationStopsTheServer(t *testing.T) {
	s, cfg := simulated(t)
	cfg.S3.Profile, cfg.Tenants["acme"].Resume = "aws-directory", config.KeepInterrupted
	cfg.S3.PathStyle = aws.Bool(true)
	if _, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()}); err == nil ||
		!strings.Contains(err.Error(), "resume: keep") {
		t.Errorf("unexpected error: %v", err)
	}
}

// silentServer accepts connections and never responds.
func silentServer(t *testing.T) (endpoint string) {
	t.Helper()
	listener := must.Listen(t) // resets connections that it has not accepted
	return "http://" + listener.Addr().String()
}
