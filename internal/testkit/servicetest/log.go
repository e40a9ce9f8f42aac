package servicetest

import (
	"log/slog"
	"strings"
	"sync"
)

// A Log captures log lines from several goroutines. Each Write is one line. The zero value is an empty log.
type Log struct {
	mu    sync.Mutex
	lines []string
	grown chan struct{} // closed by the next Write; nil if no goroutine waits
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

// Logger returns a text logger with level INFO.
func (l *Log) Logger() *slog.Logger { return l.LoggerAt(slog.LevelInfo) }

// LoggerAt returns a text logger with the given level.
func (l *Log) LoggerAt(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

// Count returns how often text occurs in the log.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Has reports whether text occurs in the log.
func (l *Log) Has(text string) bool { return l.Count(text) > 0 }

// Take returns all lines and clears the log.
func (l *Log) Take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// Await waits for a line that contains text.
func (l *Log) Await(text string) { l.wait(text, func(int) {}) }

// Next waits for a line that contains text, returns it, and removes it and all earlier lines.
func (l *Log) Next(text string) (line string) {
	l.wait(text, func(i int) { line, l.lines = l.lines[i], l.lines[i+1:] })
	return line
}

// wait waits for a line that contains text, and calls found with its index while it holds mu.
func (l *Log) wait(text string, found func(i int)) {
	for {
		l.mu.Lock()
		for i, line := range l.lines {
			if strings.Contains(line, text) {
				found(i)
				l.mu.Unlock()
				return
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
