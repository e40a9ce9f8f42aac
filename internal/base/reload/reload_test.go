package reload

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A source contains the files that a Watcher watches and the contents that were last read.
type source struct {
	t     *testing.T
	mu    sync.Mutex
	names []string
	read  map[string]string
	reads chan struct{}
}

func (s *source) content(name string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		entries, _ := os.ReadDir(name)
		for _, e := range entries {
			content = append(content, e.Name()...)
		}
	}
	return string(content)
}

func (s *source) changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		if s.content(name) != s.read[name] {
			return true
		}
	}
	return false
}

func (s *source) reload(bool) error {
	s.mu.Lock()
	var invalid error
	for _, name := range s.names {
		if s.read[name] = s.content(name); s.read[name] == "invalid" {
			invalid = errInvalid
		}
	}
	s.mu.Unlock()
	s.reads <- struct{}{}
	return invalid
}

var errInvalid = errors.New("invalid")

// await waits until the current contents of the files have been read.
func (s *source) await() {
	s.t.Helper()
	for {
		select {
		case <-s.reads:
			if !s.changed() {
				return
			}
		case <-time.After(time.Minute):
			s.t.Fatal("the change was not noticed")
		}
	}
}

func (s *source) must(err error) {
	s.t.Helper()
	must.OK(s.t, err)
}

func (s *source) write(name, text string) {
	s.t.Helper()
	s.must(os.WriteFile(name, []byte(text), 0o600))
}

// watch starts a watcher.
func watch(t *testing.T, names ...string) (*source, chan os.Signal) {
	t.Helper()
	s := &source{t: t, names: names, read: map[string]string{}, reads: make(chan struct{}, 100)}
	now := make(chan os.Signal)
	w := &Watcher{
		Files: func() []string {
			return s.names
		}, Changed: s.changed, Now: now, Reload: s.reload, Log: slog.New(slog.DiscardHandler),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return s, now
}

// TestChanges changes files in the ways in which editors, deployments and Kubernetes change them.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, folder := range []string{"etc", "users", "releases/1", "releases/2"} {
		must.OK(t, os.MkdirAll(in(folder), 0o700))
	}
	s, now := watch(t, in("etc/config"), in("users"), in("etc/link"), in("etc/later"))
	s.write(in("etc/config"), "one")
	s.await()
	s.write(in("etc/config"), "two")
	s.await()
	s.write(in("etc/config.new"), "three")
	s.must(os.Rename(in("etc/config.new"), in("etc/config")))
	s.await()
	s.must(os.Remove(in("etc/config")))
	s.await()
	s.write(in("users/a"), "")
	s.await()
	s.write(in("etc/later"), "now")
	s.await()

	// A symbolic link in the middle of a path changes.
	s.write(in("releases/1/file"), "first")
	s.write(in("releases/2/file"), "second")
	s.must(os.Symlink("1", in("releases/current")))
	s.must(os.Symlink("../releases/current/file", in("etc/link")))
	s.await()
	for _, next := range []string{"2", "1", "2"} {
		s.must(os.Symlink(next, in("releases/next")))
		s.must(os.Rename(in("releases/next"), in("releases/current")))
		s.await()
	}
	s.write(in("releases/2/file"), "third")
	s.await()

	now <- syscall.SIGHUP
	<-s.reads
}

// TestCheck checks that Check returns after the files have been read, with the error of the last Reload.
func TestCheck(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	s := &source{t: t, names: []string{name}, read: map[string]string{}, reads: make(chan struct{}, 100)}
	w := NewWatcher(Watcher{Files: func() []string { return s.names }, Changed: s.changed, Reload: s.reload,
		Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	for _, step := range []struct {
		content string
		want    error
	}{{"one", nil}, {"one", nil}, {"invalid", errInvalid}, {"invalid", errInvalid}, {"two", nil}} {
		s.write(name, step.content)
		if err := w.Check(t.Context()); !errors.Is(err, step.want) || err != nil && step.want == nil {
			t.Errorf("%s: got %v, want %v", step.content, err, step.want)
		}
		if s.changed() {
			t.Errorf("%s was not read", step.content)
		}
	}
	cancel()
	running.Wait()
	if err := w.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of Run: %v", err)
	}
}

// TestFolderIsReplaced replaces a renamed or removed folder by another one, immediately or later.
func TestFolderIsReplaced(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	s, _ := watch(t, in("etc/config"))
	for _, next := range []string{"first", "second", "third"} {
		s.must(os.Mkdir(in(next), 0o700))
		s.write(in(next+"/config"), next)
	}
	s.must(os.Rename(in("first"), in("etc")))
	s.await()
	s.must(os.Rename(in("etc"), in("old")))
	s.must(os.Rename(in("second"), in("etc")))
	s.await()
	s.must(os.RemoveAll(in("etc")))
	s.await()
	s.must(os.Rename(in("third"), in("etc")))
	s.await()
	s.write(in("etc/config"), "fourth")
	s.await()
}

// TestChangeBeforeTheWatch checks that a file is read again if it changed before it was watched.
func TestChangeBeforeTheWatch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "config")
	must.WriteFile(t, name, "changed")
	s, _ := watch(t, name)
	s.await()
}

// TestLinkLoop checks that symbolic links that point to each other do not cause an endless loop.
func TestLinkLoop(t *testing.T) {
	dir := t.TempDir()
	for from, to := range map[string]string{"a": "b", "b": "a"} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, from)))
	}
	p := paths{names: map[string]bool{}, folders: map[string]bool{}}
	p.trace(filepath.Join(dir, "a"))
	if !p.matches(filepath.Join(dir, "a")) || !p.matches(filepath.Join(dir, "b")) || p.matches(filepath.Join(dir, "c")) {
		t.Errorf("unexpected names %v", p.names)
	}
}
