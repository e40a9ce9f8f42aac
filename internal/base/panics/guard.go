package panics

import (
	"log/slog"
	"sync/atomic"
)

// A Guard logs and counts the panics of goroutines whose result no other goroutine waits for, such as the goroutine of
// a connection. With a nil Guard, panics end the process, which is useful in tests.
type Guard struct {
	log   *slog.Logger
	count atomic.Int64
}

// NewGuard returns a Guard that writes to log.
func NewGuard(log *slog.Logger) *Guard { return &Guard{log: log} }

// Go runs work in a new goroutine. A panic ends only this goroutine, see [Guard.Recover].
func (g *Guard) Go(what string, work func()) {
	go func() {
		defer g.Recover(what)
		work()
	}()
}

// Recover stops a panic of the function that defers it, and logs it. what describes the work that has ended, for
// example "relay". Other deferred calls of the function run as usual.
func (g *Guard) Recover(what string) {
	if g == nil {
		return
	}
	if value := recover(); value != nil {
		g.Report(g.log, what, value)
	}
}

// Report logs and counts a recovered value.
func (g *Guard) Report(log *slog.Logger, what string, value any) {
	if g != nil {
		g.count.Add(1)
	}
	log.Error("ended by a panic; report it as a bug", "ended", what, "panic", value, "stack", string(Stack(value)))
}

// Count returns the number of panics so far.
func (g *Guard) Count() int64 { return g.count.Load() }
