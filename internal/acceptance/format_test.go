package acceptance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// nextFormat builds babelftp with the next version of the upload record format.
func nextFormat(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("../../driver/internal/journal/format.go")
	must.OK(t, err)
	text, err := os.ReadFile(source)
	must.OK(t, err)
	next := strings.Replace(string(text), `const format = "1"`, `const format = "2"`, 1)
	if next == string(text) {
		t.Fatalf("%s has another version", source)
	}
	dir := t.TempDir()
	must.WriteFile(t, filepath.Join(dir, "format.go"), next)
	must.WriteFile(t, filepath.Join(dir, "overlay.json"),
		fmt.Sprintf(`{"Replace": {%q: %q}}`, source, filepath.Join(dir, "format.go")))
	program := filepath.Join(dir, "babelftp")
	build := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program,
		"github.com/babelftp/babelftp/cmd/babelftp")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	return program
}

// TestUploadFormats upgrades a server to a build with another format of upload records and rolls it back. Each
// build resumes its own uploads and leaves the others alone, even in a sweep.
func TestUploadFormats(t *testing.T) {
	t.Parallel()
	const sent = 6_000_000
	pending := fmt.Sprint(sent - 1)
	whole := content(sent + 1000)
	lines := []string{"    resume: keep", "abandoned_uploads: 24h"}
	s := newSite(t, s3test.Start(t, "minio"), lines...)
	interrupt := func(name string) {
		t.Helper()
		c := s.alice(t)
		data := c.Data()
		const received = `babelftp_transfer_bytes_total{direction="upload",tenant="acme"}`
		before := s.metric(t, received)
		c.Command(150, "STOR "+name)
		must.Write(t, data, string(whole[:sent]))
		s.awaitMetric(t, received, before+sent)
		c.Command(426, "ABOR")
		c.Reply(226)
		_ = data.Close()
		s.alice(t).WantReply(213, pending, "SIZE "+name)
	}
	restart := func(program string) {
		t.Helper()
		s.server.signal(syscall.SIGTERM)
		s.server.wait()
		s.program = program
		s.start(t, s.server.cmd.Args[len(s.server.cmd.Args)-1])
	}
	interrupt("/old")
	restart(nextFormat(t))
	s.alice(t).Command(550, "SIZE /old")
	interrupt("/new")
	restart("")
	s.alice(t).Command(550, "SIZE /new")
	for _, name := range []string{"/old", "/new"} {
		if name == "/new" {
			restart(nextFormat(t))
		}
		c := s.alice(t)
		c.WantReply(213, pending, "SIZE "+name)
		c.Command(350, "REST "+pending)
		data := c.Data()
		c.Command(150, "STOR "+name)
		must.Write(t, data, string(whole[sent-1:]))
		_ = data.Close()
		c.Reply(226)
		s.mustStore(t, name[1:], whole)
	}
}
