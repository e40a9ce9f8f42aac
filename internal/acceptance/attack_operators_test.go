package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// These are attacks that come by what an operator gives the running program.

// TestAliasBomb gives check a list of users in which aliases stand for nine million permissions.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	s := &site{storage: storage, buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
	file := s.configure(t, "    users_file: users.yaml")
	var users strings.Builder
	users.WriteString("users:\n  u0: &u\n    path_permissions:\n")
	for i := range 3000 {
		fmt.Fprintf(&users, "      /d%d: [read]\n", i)
	}
	for i := range 2999 {
		fmt.Fprintf(&users, "  v%d: *u\n", i)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "users.yaml"), []byte(users.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, binary(t), "check", "--config", file)
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	p.expect(p.stderr, `users\.yaml:30\d\d:\d+: aliases stand for more than 250000 values`)
}
