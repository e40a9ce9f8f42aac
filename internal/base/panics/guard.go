package panics

import (
	"log/slog"
	"sync/atomic"
)

// A Guard logs and counts the panics of goroutines for whose result no other goroutine waits, such as one for each
// connection. The nil Guard lets them end the process, as in tests.
type Guard struct {
	log   *slog.Logger
	count atomic.Int64
}

// NewGuard makes a guard with a log.
func NewGuard(log *slog.Logger) *Guard { return &Guard{log: log} }

// Go does work in a goroutine of its own. A panic ends the work only, as in [Guard.Recover].
func (g *Guard) Go(what string, work func()) {
	go func() {
		defer g.Recover(what)
		work()
	}()
}

// Recover ends the panic of a function that defers it. The log gets what has ended, such as "relay". What else the
// function defers is done.
func (g *Guard) Recover(what string) {
	if g == nil {
		return
	}
	if value := recover(); value != nil {
		g.Report(g.log, what, value)
	}
}

// Report logs and counts a value that was recovered from a panic.
func (g *Guard) Report(log *slog.Logger, what string, value any) {
	if g != nil {
		g.count.Add(1)
	}
	log.Error("ended by a panic; report it as a bug", "ended", what, "panic", value, "stack", string(Stack(value)))
}

// Count is how many panics there were.
func (g *Guard) Count() int64 { return g.count.Load() }
