package acceptance_test

import (
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// An rclone runs rclone(1) with a remote "acme:".
type rclone struct {
	t      *testing.T
	config string // file
	args   []string
}

func newRclone(t *testing.T, s *site) *rclone {
	t.Helper()
	r := &rclone{t: t}
	host, port, _ := strings.Cut(s.address, ":")
	hidden := strings.TrimSpace(launchWith(t, password, command(t, "rclone"), "obscure", "-").succeed())
	r.config = newFolder(t).write("rclone.conf", []byte(strings.Join([]string{
		"[acme]", "type = ftp", "host = " + host, "port = " + port, "user = alice@acme", "pass = " + hidden,
		"explicit_tls = true",
		"no_check_certificate = true", "encoding = Slash,Del,Ctl,RightSpace,Dot,InvalidUtf8", "",
	}, "\n")))
	r.args = []string{"--config", r.config, "--retries", "1"}
	return r
}

// run runs a command, and returns what it logged.
func (r *rclone) run(args ...string) string {
	r.t.Helper()
	p := launch(r.t, command(r.t, "rclone"), append(r.args, args...)...)
	p.succeed()
	return p.stderr.String()
}

// testItself runs rclone's integration tests, from the module of clients/rclone: those of its FTP backend, and of
// what it does with each remote.
func (r *rclone) testItself() {
	const rclone = "github.com/rclone/rclone/"
	cmd := exec.CommandContext(
		r.t.Context(), "go", "test", "-C", "clients/rclone", "-count", "1", "-timeout", "30m", "-vet", "off",
		rclone+"backend/ftp", rclone+"fs/operations", rclone+"fs/sync", "-remote", "acme:")
	cmd.Env = append(os.Environ(), "RCLONE_CONFIG="+r.config)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%v: %v\n%s", cmd, err, out)
	}
}

// TestRclone syncs a tree whose files have times of their own to the bucket and back. To sync it again transfers
// nothing: rclone sets times by MFMT and compares them with those that listings show.
func TestRclone(t *testing.T) {
	t.Parallel()
	for _, storage := range []string{"minio", "versitygw"} {
		t.Run(storage, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, storage), "    objects: {listing_times: set}")
			r := newRclone(t, s)
			here, back := t.TempDir(), t.TempDir()
			tree := map[string][]byte{"large": content(largeSize), "empty": nil}
			for i, name := range names {
				tree[path.Join(name, "sub "+name, name)] = content(100 * i)
			}
			writeTree(t, here, tree)
			day := time.Date(1999, 7, 1, 12, 0, 0, 0, time.UTC)
			for name := range tree {
				if err := os.Chtimes(filepath.Join(here, name), day, day); err != nil {
					t.Fatal(err)
				}
			}

			r.run("sync", here, "acme:tree")
			for name, data := range tree {
				s.mustStore(t, "tree/"+name, data)
			}
			again := r.run("sync", here, "acme:tree", "--dry-run")
			if strings.Contains(again, "--dry-run is set") {
				t.Errorf("to sync again is to\n%s", again)
			}
			r.run("moveto", "acme:tree/large", "acme:tree/larger")
			tree["larger"] = tree["large"]
			delete(tree, "large")

			r.run("sync", "acme:tree", back)
			if got := readTree(t, back); !maps.EqualFunc(got, tree, slices.Equal) {
				t.Errorf("back come %q, or their contents differ", slices.Sorted(maps.Keys(got)))
			}
			for name := range tree {
				if info, err := os.Stat(filepath.Join(back, name)); err != nil || !info.ModTime().Equal(day) {
					t.Errorf("%q is of %v, want %v; %v", name, info.ModTime(), day, err)
				}
			}
			r.run("purge", "acme:tree")
			if left := s.objects(t, ""); len(left) > 0 {
				t.Errorf("purge leaves %q", left)
			}
		})
	}
}
