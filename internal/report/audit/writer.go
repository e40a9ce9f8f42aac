package audit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/report"
)

const (
	// maxWait is how long a line waits for room in the queue. After that it is lost, and so are further lines of the
	// same owner until there is room.
	maxWait = time.Second

	// retryEvery is the time between attempts to write to a failing destination, if lines are kept.
	retryEvery = time.Second

	// stuckAfter is the duration of a write after which the destination counts as failing.
	stuckAfter = 10 * time.Second

	// maxBatch is the approximate number of bytes that are written together.
	maxBatch = 64 << 10
)

// A Writer writes lines to a destination in its own goroutine. A slow destination makes callers wait for at most
// maxWait. A failing destination gets later lines when it works again. Lost lines are counted and reported to the log.
type Writer struct {
	name     string
	out      io.Writer
	lost     func(lines int)
	log      *slog.Logger
	queue    *lineQueue
	keep     bool          // see Keep
	required bool          // see Require
	stop     chan struct{} // closed by Close
	ended    chan struct{} // closed when the context of Close ends
	done     chan struct{} // closed when everything is written

	failing atomic.Bool               // the last write failed
	batched atomic.Pointer[batch]     // batch being written, or nil
	writing atomic.Pointer[time.Time] // start of the running write, or nil

	// Used by the goroutine only.
	missing int  // lines lost since the destination failed
	broken  bool // the last line was written without its end
}

// A batch is a number of lines that are written together.
type batch struct {
	text  []byte
	lines int
	since time.Time // when the first line was added
}

// NewWriter returns a writer. name identifies the destination in the log, and lost counts lost lines. Lines wait until
// Start.
func NewWriter(name string, out io.Writer, lost func(lines int), log *slog.Logger) *Writer {
	return &Writer{
		name: name, out: out, lost: lost, log: log,
		queue: newQueue(), stop: make(chan struct{}), ended: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// Keep makes the writer retry until the destination accepts the lines or the context of Close ends. Call it before
// Start.
func (w *Writer) Keep() { w.keep = true }

// Require does the same as Keep, and logs that the server refuses commands while the destination fails.
func (w *Writer) Require() { w.keep, w.required = true, true }

// Start starts writing.
func (w *Writer) Start() { panics.Go(w.run) }

// Add queues a line, including its line end. It is safe for concurrent use. If the share of the owner is full, Add
// waits, which slows down an owner that creates lines faster than the destination accepts them.
func (w *Writer) Add(owner report.Owner, line []byte) {
	taken, ok := w.queue.add(owner, line)
	if ok {
		return
	}
	if !w.queue.isFull(owner) {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		for waiting := true; waiting; {
			select {
			case <-taken:
				if taken, ok = w.queue.add(owner, line); ok {
					return
				}
			case <-timer.C:
				w.queue.setFull(owner)
				w.log.Error("audit log: destination too slow; lines are lost", "destination", w.name,
					"tenant", owner.Tenant, "user", owner.User)
				waiting = false
			case <-w.stop:
				waiting = false
			}
		}
	}
	w.lost(1)
}

// Backlog returns the number of waiting lines, and the age of the oldest one.
func (w *Writer) Backlog() (lines int, delay time.Duration) {
	lines = w.queue.len()
	if b := w.batched.Load(); b != nil {
		lines, delay = lines+b.lines, time.Since(b.since)
	}
	return lines, delay
}

// HasRoom reports whether at least half of the queue is free.
func (w *Writer) HasRoom() bool { return w.queue.hasRoom(report.Owner{}) }

// Working reports whether the destination accepts lines of an owner: the last write succeeded, no write has been
// running for long, and the share of the owner has room for many lines.
func (w *Writer) Working(owner report.Owner) bool {
	since := w.writing.Load()
	room := w.queue.hasRoom(owner) || owner == (report.Owner{}) && w.queue.spare()
	return !w.failing.Load() && room && (since == nil || time.Since(*since) < stuckAfter)
}

// Close writes all lines that were queued before, unless ctx ends first. Later lines are lost.
func (w *Writer) Close(ctx context.Context) error {
	close(w.stop)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		close(w.ended)
		return ctx.Err()
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for {
		select {
		case <-w.queue.added:
			w.writeQueued()
		case <-w.stop:
			w.writeQueued()
			return
		}
	}
}

// writeQueued writes lines until the queue is empty.
func (w *Writer) writeQueued() {
	for {
		b := w.queue.take(maxBatch)
		if b.lines == 0 {
			return
		}
		w.write(b)
	}
}

func (w *Writer) write(b *batch) {
	w.batched.Store(b)
	defer w.batched.Store(nil)
	rest := b.text
	n, err := w.try(rest)
	for err != nil && w.keep && w.pause(err) {
		rest = rest[bytes.LastIndexByte(rest[:n], '\n')+1:] // write a partially written line again
		n, err = w.try(rest)
	}
	if err != nil {
		if w.missing == 0 {
			w.log.Error("audit log: destination failed; lines are lost", "destination", w.name, "err", err)
		}
		lost := bytes.Count(rest[n:], []byte{'\n'})
		w.missing += lost
		w.lost(lost)
		return
	}
	if w.failing.Swap(false) {
		w.log.Warn("audit log: destination works again", "destination", w.name, "lost_lines", w.missing)
		w.missing = 0
	}
}

// try writes lines, and returns the number of bytes written.
func (w *Writer) try(lines []byte) (n int, err error) {
	begin := 0
	if w.broken {
		lines, begin = append([]byte{'\n'}, lines...), 1
	}
	now := time.Now()
	w.writing.Store(&now)
	n, err = w.out.Write(lines)
	w.writing.Store(nil)
	if n > 0 {
		w.broken = lines[n-1] != '\n'
	}
	if err != nil && !w.keep {
		w.failing.Store(true)
	}
	return max(0, n-begin), err
}

// pause waits for the next attempt. It returns false when the context of Close has ended.
func (w *Writer) pause(err error) bool {
	switch failed := w.failing.Swap(true); {
	case failed:
	case w.required:
		w.log.Error("audit log: destination failed; refusing commands until it works", "destination", w.name,
			"err", err)
	default:
		w.log.Error("audit log: destination failed; retrying", "destination", w.name, "err", err)
	}
	select {
	case <-time.After(retryEvery):
		return true
	case <-w.ended:
		return false
	}
}
