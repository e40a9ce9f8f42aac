package audit

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"

	"github.com/babelftp/babelftp/internal/report"
)

// A Sink receives the lines of an audit log, each with its line end. It may keep a line, but must not change it.
type Sink interface {
	Add(owner report.Owner, line []byte)
}

// Sinks passes each line to several sinks.
type Sinks []Sink

// Add implements [Sink].
func (all Sinks) Add(owner report.Owner, line []byte) {
	for _, s := range all {
		s.Add(owner, line)
	}
}

// To returns a sink that writes each line with one call of w.Write, and ignores errors.
func To(w io.Writer) Sink { return writerSink{w} }

type writerSink struct{ io.Writer }

func (s writerSink) Add(_ report.Owner, line []byte) { _, _ = s.Write(line) }

// A lineHandler formats records as JSON lines of an owner.
type lineHandler struct {
	slog.Handler // writes into lines.text
	*lines
	owner report.Owner
}

// lines is the state that all handlers of a log share.
type lines struct {
	sink Sink

	mu   sync.Mutex
	text bytes.Buffer
}

func newLineHandler(sink Sink) *lineHandler {
	l := &lines{sink: sink}
	return &lineHandler{Handler: slog.NewJSONHandler(&l.text, &slog.HandlerOptions{ReplaceAttr: attribute}), lines: l}
}

// ownedBy returns a copy of a logger of this package for lines of an owner.
func ownedBy(log *slog.Logger, owner report.Owner) *slog.Logger {
	h := *log.Handler().(*lineHandler)
	h.owner = owner
	return slog.New(&h)
}

// Handle implements [slog.Handler].
func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	line, err := h.format(ctx, r)
	if err == nil {
		h.sink.Add(h.owner, line)
	}
	return err
}

func (h *lineHandler) format(ctx context.Context, r slog.Record) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Reset()
	err := h.Handler.Handle(ctx, r)
	return bytes.Clone(h.text.Bytes()), err
}

// WithAttrs implements [slog.Handler].
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{h.Handler.WithAttrs(attrs), h.lines, h.owner}
}

// WithGroup implements [slog.Handler].
func (h *lineHandler) WithGroup(name string) slog.Handler {
	return &lineHandler{h.Handler.WithGroup(name), h.lines, h.owner}
}
