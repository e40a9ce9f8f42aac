package acceptance_test

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Of buckets that cannot be used, check writes one line for each, with the tenant and the bucket.
func TestStorageProblems(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"minio", "versitygw"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			real := s3test.Start(t, storage)
			closed := newBreakableLink(t, "127.0.0.1:1")
			for _, tt := range []struct {
				name   string
				change func(s *s3test.Server, buckets map[string]string)
				want   string
			}{
				{"missing-bucket", func(_ *s3test.Server, buckets map[string]string) {
					buckets[acme] = "no-such-bucket"
				},
					`tenant acme: bucket "no-such-bucket": does not exist at `},
				{"wrong-secret", func(s *s3test.Server, _ map[string]string) {
					s.SecretAccessKey = "wrong"
				}, `SignatureDoesNotMatch`},
				{"wrong-key", func(s *s3test.Server, _ map[string]string) {
					s.AccessKeyID = "WRONG"
				}, `refuses the credentials`},
				{"no-server", func(s *s3test.Server, _ map[string]string) {
					s.Endpoint = "http://" + closed.listener.Addr().String()
				},
					`cannot reach S3 at `},
			} {
				t.Run(tt.name, func(t *testing.T) {
					changed := *real
					s := &site{storage: &changed, buckets: map[string]string{acme: real.Bucket(t),
						umbrella: real.Bucket(t)}}
					tt.change(&changed, s.buckets)
					p := launch(t, binary(t), "check", "--probe", "--config", s.configure(t, "log: {level: error}"))
					if code := p.wait(); code != 1 {
						t.Errorf("exit code %d, want 1", code)
					}
					for line := range strings.Lines(p.stderr.String()) {
						if strings.HasPrefix(line, "warning: ") {
							continue
						}
						if !strings.HasPrefix(line, "babelftp: tenant ") || !strings.Contains(line, "bucket ") {
							t.Errorf("line %q", line)
						}
					}
					if !strings.Contains(p.stderr.String(), tt.want) {
						t.Errorf("%s\nwant %s", p.stderr, tt.want)
					}
				})
			}
		})
	}
}
