package s3test_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestRunOnEveryServer(t *testing.T) {
	var names []string
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		names = append(names, s.Name)
		if again := s3test.Start(t, s.Name); again != s {
			t.Error("a second start made a second server")
		}
		if first, second := s.Bucket(t), s.Bucket(t); first == second {
			t.Errorf("two buckets are called %s", first)
		}
	})
	want := []string{"minio", "versitygw", "sim-aws", "sim-r2", "sim-strict"}
	if testing.Short() {
		want = []string{"sim-aws"}
	}
	if !slices.Equal(names, want) {
		t.Errorf("ran on %q, want %q", names, want)
	}
}

// A program under test is configured with an endpoint and no HTTP client.
func TestProcessesTakeAnyClient(t *testing.T) {
	for _, name := range []string{"minio", "versitygw", "sim-aws"} {
		t.Run(name, func(t *testing.T) {
			s := *s3test.Start(t, name)
			s.HTTPClient = http.DefaultClient
			s.Bucket(t)
		})
	}
}
