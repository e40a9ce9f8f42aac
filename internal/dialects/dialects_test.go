package dialects_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// A dialect is a way in which an S3 server, or a proxy in front of it, differs from AWS.
type dialect struct {
	name   string
	source string // who reported it: owner/repository#number, or a page
	faults []s3test.Fault

	fails string // names of the steps that fail, separated by spaces; steps that need one of them do not run
	may   string // steps that may fail, depending on the speed of S3
	log   string // log line about one of them

	// strict is the outcome if babelftp treats the server as the strictest one and uses no optional feature. It is nil
	// if the outcome is the same.
	strict *outcome

	// real runs the steps on MinIO too, because its signatures, ranges and conditions matter.
	real bool

	// http2 lets babelftp speak HTTP/2 with the proxy.
	http2 bool
}

// An outcome is the result of the steps in a dialect.
type outcome struct{ fails, log string }

// works returns the outcome in which no step fails.
func works() *outcome { return &outcome{} }

// attempts limits how often the driver sends a request. Its default takes 25 seconds for a request that always fails.
const attempts = 3

// TestDialects runs all steps in each dialect in front of an AWS simulator, for which babelftp uses every feature,
// and for some dialects in front of a real server that babelftp does not recognize.
func TestDialects(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", (part+64<<10)/16)
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			t.Run("aws", func(t *testing.T) { d.test(t, "sim-aws", "aws", large, outcome{d.fails, d.log}) })
			if !d.real || testing.Short() {
				return
			}
			want := outcome{d.fails, d.log}
			if d.strict != nil {
				want = *d.strict
			}
			t.Run("minio", func(t *testing.T) { d.test(t, "minio", config.AutoProfile, large, want) })
		})
	}
}

// test runs all steps through a proxy in front of a server, and compares the steps that fail.
func (d *dialect) test(t *testing.T, name string, profile config.Profile, large string, want outcome) {
	t.Helper()
	s3 := s3test.Start(t, name)
	proxy := d.proxy(t, s3)
	cfg := servicetest.NewConfig(t, s3)
	cfg.S3.Endpoint, cfg.S3.Profile = proxy.Server().Endpoint, profile
	acme := cfg.Tenants["acme"]
	acme.Resume, acme.ResumeByDefault = config.KeepInterrupted, true // the default in a configuration file
	must.OK(t, cfg.Validate())
	var log servicetest.Log
	aws := proxy.Server().AWSConfig()
	aws.RetryMaxAttempts = attempts
	srv, err := server.New(t.Context(), cfg, server.Options{AWS: aws, Logger: log.Logger()})
	must.OK(t, err)
	ftptest.Serve(t, srv)
	conn, err := ftptest.Open(srv.Addr().String())
	must.OK(t, err)
	defer conn.Close()
	s := newSession(conn)
	var failed, told []string
	s.run(large, func(st step, err error) {
		lines := log.Take()
		if err == nil {
			return
		}
		report := fmt.Sprintf("%s: %v\n%s", st.name, err, strings.Join(lines, ""))
		told = append(told, report)
		if !slices.Contains(strings.Fields(d.may), st.name) {
			failed = append(failed, st.name)
		}
		if _, refused := errors.AsType[refusal](err); !refused {
			t.Error(report)
		}
		if !slices.ContainsFunc(lines, isError) {
			t.Errorf("the log lacks the reason: %s", report)
		}
	})
	if got := strings.Join(failed, " "); got != want.fails {
		t.Errorf("these steps fail: %q\nwant: %q\n%s", got, want.fails, strings.Join(told, ""))
	}
	if all := strings.Join(told, ""); !strings.Contains(all, want.log) {
		t.Errorf("the log lacks %q:\n%s", want.log, all)
	}
	// Acknowledged files must be in the bucket.
	client := s3.Client()
	for path, content := range s.files {
		if got := s3test.Content(t, client, acme.Bucket, acme.Prefix+strings.TrimPrefix(path, "/")); got != content {
			t.Errorf("%s has %d bytes in the bucket, want %d", path, len(got), len(content))
		}
	}
}

// proxy starts the proxy that speaks the dialect.
func (d *dialect) proxy(t *testing.T, s3 *s3test.Server) *s3test.Proxy {
	t.Helper()
	start := s3test.StartProxy
	if d.http2 {
		start = s3test.StartTLSProxy
	}
	proxy := start(t, s3)
	proxy.Anonymous = true
	for _, f := range slices.Backward(d.faults) { // the first one takes priority
		proxy.Inject(f)
	}
	return proxy
}

// isError reports whether a log line contains the reason for a failed command.
func isError(line string) bool {
	return strings.Contains(line, " err=") || strings.Contains(line, " storage=")
}
