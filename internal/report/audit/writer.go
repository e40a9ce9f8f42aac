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
	// maxWait is how long a line waits for room in the queue. Then it is lost, and so are further lines of the same
	// owner until there is room.
	maxWait = time.Second

	// retryEvery is how often a writer that keeps its lines tries a destination that fails.
	retryEvery = time.Second

	// stuckAfter is how long a write may take until the destination counts as failing.
	stuckAfter = 10 * time.Second

	// maxBatch is how many bytes are written together, about.
	maxBatch = 64 << 10
)

// A Writer writes lines to a destination in a goroutine of its own. A destination that is slow makes its callers wait
// for maxWait at most. One that fails gets the later lines when it works again. Lines that it did not get are counted
// and reported to the log, and are lost.
type Writer struct {
	name  string
	out   io.Writer
	lost  func(lines int)
	log   *slog.Logger
	queue *queue
	keep  bool          // see Keep
	needs bool          // see Require
	stop  chan struct{} // closed by Close
	ended chan struct{} // closed when the time of Close is over
	done  chan struct{} // closed when all is written

	failing atomic.Bool               // whether the last write has failed
	batched atomic.Pointer[batch]     // the batch in flight, or nil
	writing atomic.Pointer[time.Time] // since when a write has been running, nil for none

	// Of the goroutine.
	missing int  // lines lost since the destination failed
	broken  bool // whether the last line has no end
}

// A batch is lines that are written together.
type batch struct {
	text  []byte
	lines int
	since time.Time // when the first line was added
}

// NewWriter returns a writer to a destination, which the name tells in the log. The function lost counts lines. Lines
// wait until Start.
func NewWriter(name string, out io.Writer, lost func(lines int), log *slog.Logger) *Writer {
	return &Writer{
		name: name, out: out, lost: lost, log: log,
		queue: newQueue(), stop: make(chan struct{}), ended: make(chan struct{}),
		done: make(chan struct{}),
	}
}

// Keep lets the writer try again what the destination did not take, until it takes it or the time of Close is over.
// Keep comes before Start.
func (w *Writer) Keep() { w.keep = true }

// Require is Keep for a destination without which the server refuses commands, as the log then says.
func (w *Writer) Require() { w.keep, w.needs = true, true }

// Start begins to write.
func (w *Writer) Start() { panics.Go(w.run) }

// Add queues a line, with its line end. Any goroutine may call it. It waits for room if the share of the owner is full,
// so that an owner who makes lines faster than the destination takes them slows down.
func (w *Writer) Add(owner report.Owner, line []byte) {
	taken, ok := w.queue.add(owner, line)
	if ok {
		return
	}
	if !w.queue.waitedInVain(owner) {
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
				w.log.Error("audit log: the destination is too slow, and lines are lost", "destination", w.name,
					"tenant", owner.Tenant, "user", owner.User)
				waiting = false
			case <-w.stop:
				waiting = false
			}
		}
	}
	w.lost(1)
}

// Backlog returns how many lines wait for the destination, and how long the oldest has been waiting.
func (w *Writer) Backlog() (lines int, delay time.Duration) {
	lines = w.queue.len()
	if b := w.batched.Load(); b != nil {
		lines, delay = lines+b.lines, time.Since(b.since)
	}
	return lines, delay
}

// Roomy reports whether half of the queue is free, or more.
func (w *Writer) Roomy() bool { return w.queue.roomy(report.Owner{}) }

// Working reports whether the destination takes lines of an owner: the last write has not failed, no write has been
// running for long, and the share of the owner has room for many lines.
func (w *Writer) Working(owner report.Owner) bool {
	since := w.writing.Load()
	room := w.queue.roomy(owner) || owner == (report.Owner{}) && w.queue.spare()
	return !w.failing.Load() && room && (since == nil || time.Since(*since) < stuckAfter)
}

// Close writes all lines that were queued before it, unless ctx ends first. Later lines are lost.
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

// writeQueued writes the lines of the queue until it is empty.
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
		rest = rest[bytes.LastIndexByte(rest[:n], '\n')+1:] // a line that was written in part is written again
		n, err = w.try(rest)
	}
	if err != nil {
		if w.missing == 0 {
			w.log.Error("audit log: the destination fails, and lines are lost", "destination", w.name, "err", err)
		}
		lost := bytes.Count(rest[n:], []byte{'\n'})
		w.missing += lost
		w.lost(lost)
		return
	}
	if w.failing.Swap(false) {
		w.log.Warn("audit log: the destination works again", "destination", w.name, "lost_lines", w.missing)
		w.missing = 0
	}
}

// try writes lines, and returns how many bytes of them are written.
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

// pause waits until the next attempt. It returns false when the time of Close is over.
func (w *Writer) pause(err error) bool {
	switch failed := w.failing.Swap(true); {
	case failed:
	case w.needs:
		w.log.Error("audit log: the destination fails, and commands are refused until it works", "destination", w.name,
			"err", err)
	default:
		w.log.Error("audit log: the destination fails, and its lines wait", "destination", w.name, "err", err)
	}
	select {
	case <-time.After(retryEvery):
		return true
	case <-w.ended:
		return false
	}
}
