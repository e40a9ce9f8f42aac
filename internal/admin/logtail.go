package admin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// maxLog is how many bytes of lines a [LogTail] keeps.
const maxLog = 4 << 20

// A LogTail keeps the last lines of the log that are about clients: 4 MiB. The zero value has none. Its methods may be
// called by any goroutine.
type LogTail struct {
	mu    sync.Mutex
	lines []logLine
	size  int
}

type logLine struct {
	at   time.Time
	text string
}

// Handler returns a handler that keeps what it gives to another one, too.
func (t *LogTail) Handler(log slog.Handler) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: report.Escape}
	return tailed{log, slog.NewTextHandler(t, options)}
}

// Write keeps a line.
func (t *LogTail) Write(line []byte) (int, error) {
	if !bytes.Contains(line, []byte(" remote=")) {
		return len(line), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, logLine{time.Now(), string(line)})
	for t.size += len(line); t.size > maxLog; t.lines = t.lines[1:] {
		t.size -= len(t.lines[0].text)
		t.lines[0] = logLine{}
	}
	return len(line), nil
}

// Of returns the lines about clients in a network since a time, the oldest first.
func (t *LogTail) Of(network netip.Prefix, since time.Time) []string {
	t.mu.Lock()
	lines := slices.Clone(t.lines) // so that no session waits with its line
	t.mu.Unlock()
	found := []string{}
	for _, l := range lines {
		_, remote, _ := strings.Cut(l.text, " remote=")
		remote, _, _ = strings.Cut(strings.TrimRight(remote, "\n"), " ")
		from, err := netip.ParseAddrPort(remote)
		if err == nil && !l.at.Before(since) && network.Contains(from.Addr().Unmap().WithZone("")) {
			found = append(found, l.text)
		}
	}
	return found
}

// tailed gives records to two handlers. The first one says which are wanted.
type tailed struct {
	slog.Handler
	tail slog.Handler
}

// Handle implements [slog.Handler].
func (h tailed) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.tail.Handle(ctx, r.Clone()), h.Handler.Handle(ctx, r))
}

// WithAttrs implements [slog.Handler].
func (h tailed) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tailed{h.Handler.WithAttrs(attrs), h.tail.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h tailed) WithGroup(name string) slog.Handler {
	return tailed{h.Handler.WithGroup(name), h.tail.WithGroup(name)}
}

// logOf answers with lines of the log.
func (h *Handler) logOf(r *http.Request) (any, error) {
	d, err := time.ParseDuration(r.FormValue("since"))
	if err != nil || d <= 0 {
		return nil, &Error{http.StatusBadRequest, "since is no time longer than 0, such as 2h"}
	}
	network, err := sessionlog.ParseNetwork(r.FormValue("address"))
	if err != nil {
		return nil, &Error{http.StatusBadRequest, err.Error()}
	}
	return h.Tail.Of(network, time.Now().Add(-d)), nil
}
