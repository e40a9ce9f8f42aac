package servicetest

import (
	"log/slog"
	"strings"
	"sync"
)

// A Log keeps the lines that several goroutines log. Each is one Write. The zero value is an empty log.
type Log struct {
	mu    sync.Mutex
	lines []string
	grown chan struct{} // closed by the next line; nil where no goroutine waits
}

// Write implements [io.Writer].
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return len(line), nil
}

// Logger logs as text, from the level INFO on.
func (l *Log) Logger() *slog.Logger { return l.LoggerAt(slog.LevelInfo) }

// LoggerAt logs as text, from a level on.
func (l *Log) LoggerAt(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// String is all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// Count is how often the log has a text.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Has tells whether the log has a text.
func (l *Log) Has(text string) bool { return l.Count(text) > 0 }

// Take returns all lines, and forgets them.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// Next waits for a line that has a text, and forgets it and the lines before it.
func (l *Log) Next(text string) string {
	for {
		l.mu.Lock()
		for i, line := range l.lines {
			if strings.Contains(line, text) {
				l.lines = l.lines[i+1:]
				l.mu.Unlock()
				return line
			}
		}
		if l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		<-grown
	}
}
