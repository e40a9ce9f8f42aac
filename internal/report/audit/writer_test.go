package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// After logrotate has moved the file, the next lines are written to a new file. No line is lost or duplicated.
func TestFileMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := audit.NewFile(path)
	must.OK(t, f.Open())
	t.Cleanup(func() { _ = f.Close() })
	for i := range 3 {
		if _, err := fmt.Fprintf(f, "line %d\n", i); err != nil {
			t.Fatal(err)
		}
		must.OK(t, os.Rename(path, fmt.Sprintf("%s.%d", path, i)))
	}
	for i := range 3 {
		got, err := os.ReadFile(fmt.Sprintf("%s.%d", path, i))
		if want := fmt.Sprintf("line %d\n", i); err != nil || string(got) != want {
			t.Errorf("file %d: got %q, %v; want %q", i, got, err, want)
		}
	}
}

// A destination fails or blocks when a test wants it.
type destination struct {
	bytes.Buffer
	fail  atomic.Int64  // bytes written before the error; 0 for no error
	waits chan struct{} // if nil, Write does not block
}

var errFull = errors.New("disk full")

func (d *destination) Write(p []byte) (int, error) {
	if d.waits != nil {
		<-d.waits
	}
	if fail := d.fail.Load(); fail > 0 {
		n, _ := d.Buffer.Write(p[:fail])
		return n, errFull
	}
	return d.Buffer.Write(p)
}

// Close writes the waiting lines. After an error in the middle of a line, the next line starts on a new line.
func TestWriterAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		var log bytes.Buffer
		d := &destination{}
		d.fail.Store(int64(len("one\ntw")))
		w := audit.NewWriter("file", d, func(lines int) {
			lost.Add(int64(lines))
		}, slog.New(slog.NewTextHandler(&log, nil)))
		put(t, w, "one\n", "two\n", "three\n") // one batch
		w.Start()
		synctest.Wait()
		d.fail.Store(0)
		put(t, w, "four\n")
		synctest.Wait()
		put(t, w, "five\n")
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if want := "one\ntw\nfour\nfive\n"; d.String() != want {
			t.Errorf("got output %q, want %q", d.String(), want)
		}
		if lost.Load() != 2 {
			t.Errorf("got %d lost lines, want 2", lost.Load())
		}
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, errFull.Error()) ||
			!strings.Contains(text, "lost_lines=2") {
			t.Errorf("got log %q, want the error and its end with 2 lost lines", text)
		}
	})
}

// A hanging destination does not block callers for long, by the clock of the bubble: only one line waits, and Close
// ends with its context.
func TestWriterThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const written = 2_000
		line := strings.Repeat("x", 10_000) + "\n" // the queue has room for about 1,700
		var lost atomic.Int64
		d := &destination{waits: make(chan struct{})}
		w := audit.NewWriter("stdout", d, func(lines int) { lost.Add(int64(lines)) }, slog.New(slog.DiscardHandler))
		w.Start()
		for range written {
			put(t, w, line)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := w.Close(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Close: got %v, want the error of the context", err)
		}
		close(d.waits)
		synctest.Wait()
		if got := int64(strings.Count(d.String(), "\n")); lost.Load() == 0 || got+lost.Load() != written {
			t.Errorf("%d lines written and %d lost, together not %d", got, lost.Load(), written)
		}
	})
}

func put(t *testing.T, w *audit.Writer, lines ...string) {
	t.Helper()
	for _, line := range lines {
		w.Add(report.Owner{}, []byte(line))
	}
}

// A writer that keeps its lines retries until the destination accepts them, and reports that it does not work until
// then.
func TestWriterKeepsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int64
		d := &destination{}
		d.fail.Store(int64(len("one\ntw")))
		w := audit.NewWriter("file", d, func(lines int) { lost.Add(int64(lines)) }, slog.New(slog.DiscardHandler))
		w.Keep()
		put(t, w, "one\n", "two\n")
		if !w.Working(report.Owner{}) {
			t.Error("Working() = false before the first line")
		}
		w.Start()
		synctest.Wait()
		if w.Working(report.Owner{}) {
			t.Error("Working() = true on a full disk")
		}
		put(t, w, "three\n")
		d.fail.Store(0)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !w.Working(report.Owner{}) {
			t.Error("Working() = false after the disk has room again")
		}
		if want := "one\ntw\ntwo\nthree\n"; d.String() != want || lost.Load() != 0 {
			t.Errorf("got output %q, %d lost lines; want %q", d.String(), lost.Load(), want)
		}
		d.fail.Store(1)
		put(t, w, "four\n")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: got %v, want the error of the context", err)
		}
		synctest.Wait()
		if lost.Load() != 1 {
			t.Errorf("got %d lost lines at the end, want 1", lost.Load())
		}
	})
}

// TestWriterBacklog checks the backlog while the destination fails, and afterwards.
func TestWriterBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &destination{}
		d.fail.Store(1)
		w := audit.NewWriter("webhook", d, func(int) {}, slog.New(slog.DiscardHandler))
		w.Keep()
		want := func(lines int, delay time.Duration) {
			t.Helper()
			synctest.Wait()
			if n, since := w.Backlog(); n != lines || since != delay {
				t.Errorf("got %d lines waiting for %v, want %d for %v", n, since, lines, delay)
			}
		}
		want(0, 0)
		w.Start()
		put(t, w, "one\n", "two\n")
		want(2, 0)
		time.Sleep(10 * time.Minute)
		put(t, w, "three\n")
		want(3, 10*time.Minute)
		d.fail.Store(0)
		time.Sleep(time.Second)
		want(0, 0)
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A write that never ends, for example to a file server that is down, counts as a failure after a while.
func TestWriterStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &destination{waits: make(chan struct{})}
		w := audit.NewWriter("file", d, func(int) {}, slog.New(slog.DiscardHandler))
		w.Start()
		put(t, w, "one\n")
		synctest.Wait()
		if !w.Working(report.Owner{}) {
			t.Error("Working() = false at once")
		}
		time.Sleep(time.Minute)
		if w.Working(report.Owner{}) {
			t.Error("Working() = true after a minute")
		}
		close(d.waits)
		synctest.Wait()
		if !w.Working(report.Owner{}) {
			t.Error("Working() = false after the write ended")
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
