package logline

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxQueued is how many lines wait for the destination, some megabytes.
	maxQueued = 10_000

	// maxWait is how long a line waits for a place in the queue. Then it is lost, and so are all others until there
	// is a place.
	maxWait = time.Second

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
	lines chan []byte
	full  atomic.Bool   // whether a line has waited in vain since there was a place
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when all is written

	// Of the goroutine.
	missing int  // lines lost since the destination failed
	broken  bool // whether the last line has no end
}

// NewWriter returns a writer to a destination, which the name tells in the log. The function lost counts lines. Lines
// wait until Start.
func NewWriter(name string, out io.Writer, lost func(lines int), log *slog.Logger) *Writer {
	return &Writer{
		name: name, out: out, lost: lost, log: log,
		lines: make(chan []byte, maxQueued), stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// Start begins to write.
func (w *Writer) Start() { panics.Go(w.run) }

// Write queues a line, with its line end. It never fails. Any goroutine may call it.
func (w *Writer) Write(line []byte) (int, error) {
	queued := bytes.Clone(line)
	select {
	case w.lines <- queued:
		w.full.Store(false)
		return len(line), nil
	default:
	}
	if !w.full.Load() {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		select {
		case w.lines <- queued:
			return len(line), nil
		case <-timer.C:
			w.full.Store(true)
			w.log.Error("audit log: the destination is too slow, and lines are lost", "destination", w.name)
		case <-w.stop:
		}
	}
	w.lost(1)
	return len(line), nil
}

// Roomy tells whether half of the queue is free, or more.
func (w *Writer) Roomy() bool { return len(w.lines) <= maxQueued/2 }

// Close writes all lines that were queued before it, unless ctx ends first. Later lines are lost.
func (w *Writer) Close(ctx context.Context) error {
	close(w.stop)
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Writer) run() {
	defer close(w.done)
	for {
		select {
		case line := <-w.lines:
			w.write(w.batch(line))
		case <-w.stop:
			for {
				select {
				case line := <-w.lines:
					w.write(w.batch(line))
				default:
					return
				}
			}
		}
	}
}

// batch adds to a line those that are in the queue.
func (w *Writer) batch(line []byte) []byte {
	for len(line) < maxBatch {
		select {
		case next := <-w.lines:
			line = append(line, next...)
		default:
			return line
		}
	}
	return line
}

func (w *Writer) write(batch []byte) {
	if w.broken {
		batch = append([]byte{'\n'}, batch...)
	}
	n, err := w.out.Write(batch)
	if n > 0 {
		w.broken = batch[n-1] != '\n'
	}
	if err != nil {
		if w.missing == 0 {
			w.log.Error("audit log: the destination fails, and lines are lost", "destination", w.name, "err", err)
		}
		lost := bytes.Count(batch[n:], []byte{'\n'})
		w.missing += lost
		w.lost(lost)
		return
	}
	if w.missing > 0 {
		w.log.Warn("audit log: the destination works again", "destination", w.name, "lost_lines", w.missing)
		w.missing = 0
	}
}
