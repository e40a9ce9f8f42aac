package embeddeds3_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/storage/embeddeds3"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// start runs a server on dir until the end of the test.
func start(t *testing.T, dir string) *embeddeds3.Server {
	t.Helper()
	s, err := embeddeds3.Start(t.Context(), embeddeds3.Options{Dir: dir})
	must.OK(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *embeddeds3.Server) {
	t.Helper()
	if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	before, err := os.Getwd()
	must.OK(t, err)
	for range 2 {
		s, err := embeddeds3.Start(t.Context(), embeddeds3.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
		must.OK(t, err)
		stop(t, s)
	}
	if after, err := os.Getwd(); err != nil || after != before {
		t.Errorf("got working directory %q, %v; want %q", after, err, before)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("unexpected files in the temporary folder: %v, %v", left, err)
	}
	waitForNoGoroutines(t)
}

// waitForNoGoroutines fails when goroutines of versitygw or its HTTP library continue, except the two that Close
// documents.
func waitForNoGoroutines(t *testing.T) {
	t.Helper()
	documented := []string{"fasthttp.updateServerDate.func", "fasthttp.(*workerPool).Start.func"}
	deadline := time.Now().Add(time.Minute)
	for {
		var left []string
		for _, stack := range strings.Split(allStacks(), "\n\n") {
			if strings.Contains(stack, "waitForNoGoroutines") || strings.Contains(stack, "testing.") {
				continue
			}
			if !containsAny(stack, documented) &&
				containsAny(stack, []string{"versitygw", "fasthttp", "fiber", "embeddeds3", "net/http"}) {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d remaining goroutines:\n%s", len(left), strings.Join(left, "\n\n"))
		}
		runtime.Gosched()
	}
}

func allStacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func containsAny(s string, substrings []string) bool {
	for _, sub := range substrings {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	must.OK(t, os.Mkdir(long, 0o700))
	tests := []struct {
		name, tmpdir string
		opts         embeddeds3.Options
		want         string
	}{
		{name: "no-folder", want: "no data folder"},
		{name: "folder-is-a-file", opts: embeddeds3.Options{Dir: file}, want: "not a directory"},
		{name: "address-without-port", opts: embeddeds3.Options{Dir: t.TempDir(), Listen: "nowhere"},
			want: "missing port"},
		{name: "address-of-another-host", opts: embeddeds3.Options{Dir: t.TempDir(), Listen: "192.0.2.1:9000"},
			want: "192.0.2.1:9000"},
		{name: "long-socket-path", tmpdir: long, opts: embeddeds3.Options{Dir: t.TempDir()}, want: "TMPDIR"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			temporary := test.tmpdir
			if temporary == "" {
				temporary = t.TempDir()
			}
			t.Setenv("TMPDIR", temporary)
			s, err := embeddeds3.Start(t.Context(), test.opts)
			if err == nil {
				stop(t, s)
				t.Fatal("Start returned no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %q, want %q in it", err, test.want)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("unexpected files in the temporary folder: %v, %v", left, err)
			}
		})
	}
	waitForNoGoroutines(t)
}

func TestStartRefusesSecond(t *testing.T) {
	dir := t.TempDir()
	start(t, dir)
	tests := []struct{ name, dir, want string }{
		{name: "same-folder", dir: dir, want: "uses the data folder"},
		{name: "other-folder", dir: t.TempDir(), want: "a process can run one only"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := embeddeds3.Start(t.Context(), embeddeds3.Options{Dir: test.dir})
			if err == nil {
				stop(t, s)
				t.Fatal("Start returned no error")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %q, want %q in it", err, test.want)
			}
		})
	}
}

func TestSocketIsPrivate(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	start(t, t.TempDir())
	sockets := 0
	err := filepath.WalkDir(temporary, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == temporary {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if entry.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if info.Mode()&fs.ModeSocket != 0 {
			sockets++
		}
		return nil
	})
	if err != nil || sockets != 1 {
		t.Errorf("%d sockets, %v", sockets, err)
	}
}
