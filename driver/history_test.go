package driver_test

import (
	"embed"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var (
	historyCount = flag.Int(
		"histories", 0,
		"number of random histories to run; 0 means 500, or 200 with the race detector, or 100 with -short")
	historySeed   = flag.Uint64("histories.seed", 1, "the seed of the first history")
	historyTime   = flag.Duration("histories.time", 0, "run random histories for this long, whatever their number")
	historyReplay = flag.String("histories.replay", "", "replay the history in a file")
	historyTrace  = flag.Bool(
		"histories.trace", false, "print the result of each step and each request that changed something")
	historyKinds = flag.Bool("histories.all", false, "continue after a failure, and show one history of each kind")
)

// TestHistories runs random histories of several sessions on several replicas with a simulated S3 server, and checks
// everything that happens with a model. It shrinks and prints a history that fails.
//
//	go test ./driver -run TestHistories -histories 1 -histories.seed 42
//	go test ./driver -run TestHistories -histories.replay failed.json
func TestHistories(t *testing.T) {
	t.Parallel()
	if *historyReplay != "" {
		text, err := os.ReadFile(*historyReplay)
		must.OK(t, err)
		replayHistory(t, text)
		return
	}
	count := uint64(*historyCount)
	switch {
	case count == 0 && testing.Short():
		count = 100
	case count == 0 && raceDetector:
		count = 200
	case count == 0:
		count = 500
	}
	var next atomic.Uint64
	next.Store(*historySeed)
	begin := time.Now()
	more := func(seed uint64) bool {
		if *historyTime > 0 {
			return time.Since(begin) < *historyTime
		}
		return seed < *historySeed+count
	}
	for worker := range 2 {
		t.Run(fmt.Sprint("worker-", worker+1), func(t *testing.T) {
			t.Parallel()
			shown := map[string]bool{}
			for seed := next.Add(1) - 1; more(seed); seed = next.Add(1) - 1 {
				h := randomHistory(seed)
				v := runHistory(t, h)
				if v == nil || shown[v.kind] {
					continue
				}
				shown[v.kind] = true
				reportHistory(t, h, v)
				if !*historyKinds {
					return
				}
			}
		})
	}
}

// historiesFound are histories that once revealed a bug. Each file is named after the bug.
//
//go:embed testdata/histories
var historiesFound embed.FS

func TestHistoriesFound(t *testing.T) {
	t.Parallel()
	const dir = "testdata/histories"
	entries, err := historiesFound.ReadDir(dir)
	must.OK(t, err)
	for _, entry := range entries {
		t.Run(strings.TrimSuffix(entry.Name(), ".json"), func(t *testing.T) {
			t.Parallel()
			text, err := historiesFound.ReadFile(path.Join(dir, entry.Name()))
			must.OK(t, err)
			replayHistory(t, text)
		})
	}
}

// reportHistory shrinks a history that has failed, and prints it.
func reportHistory(t *testing.T, h *history, v *violation) {
	shrunk := h.shrink(func(next *history) bool {
		again := runHistory(t, next)
		return again != nil && again.kind == v.kind
	})
	last := runHistory(t, shrunk)
	if last == nil {
		shrunk, last = h, v
	}
	t.Errorf("history %d fails: %v\n%s", h.Seed, last, shrunk)
}

func replayHistory(t *testing.T, text []byte) {
	t.Helper()
	h, err := parseHistory(text)
	must.OK(t, err)
	if v := runHistory(t, h); v != nil {
		t.Errorf("%v\n%s", v, h)
	}
}

// watchdogTime limits the duration of a history in real time, even on a busy machine. A goroutine that waits for a
// mutex prevents virtual time from advancing.
const watchdogTime = 5 * time.Minute

// runHistory runs a history in virtual time and returns the first violation, if any.
func runHistory(t *testing.T, h *history) (v *violation) {
	watchdog := time.AfterFunc(watchdogTime, func() { panic(fmt.Sprintf("history does not end:\n%s", h)) })
	defer watchdog.Stop()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, h)
		w.run()
		w.mu.Lock()
		defer w.mu.Unlock()
		v = w.violation
	})
	return v
}
