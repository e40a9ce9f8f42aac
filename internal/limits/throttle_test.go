package limits

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// waited is how long an attempt of a key waits.
func waited(t *testing.T, throttle *Throttle[string], key string) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := throttle.Wait(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin).Round(10 * time.Millisecond) // the failures decay a little meanwhile
}

func TestThrottle(t *testing.T) {
	const longest = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle[string](longest)
		for i, want := range []time.Duration{0, firstDelay, 2 * firstDelay, 4 * firstDelay, 8 * firstDelay, longest, longest} {
			if got := waited(t, throttle, "a"); got > want || got < want*9/10 {
				t.Errorf("attempt %d waits %v, want %v", i+1, got, want)
			}
			throttle.Failed("a")
		}
		if got := waited(t, throttle, "b"); got != 0 {
			t.Errorf("another client waits %v", got)
		}
		time.Sleep(10 * scoreHalfLife)
		if got := waited(t, throttle, "a"); got != 0 {
			t.Errorf("after a long time an attempt waits %v", got)
		}
		throttle.Failed("a")
		throttle.Succeeded("a")
		if got := waited(t, throttle, "a"); got != 0 {
			t.Errorf("after a success an attempt waits %v", got)
		}
	})
}

// Of a client that guesses in parallel sessions, and hangs up as soon as the answer takes longer than a right one does, few
// guesses a second are tried.
func TestThrottleBoundsGuesses(t *testing.T) {
	const sessions, minutes = 50, 10
	for _, tc := range []struct {
		name     string
		patience time.Duration
		most     int // guesses that are tried
	}{
		{"hangs-up", 5 * time.Second, 2 * sessions},
		{"waits", time.Hour, sessions + sessions*minutes*60/15 + sessions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				throttle := NewThrottle[string](15 * time.Second)
				ctx, end := context.WithTimeout(t.Context(), minutes*time.Minute)
				defer end()
				tried := make(chan int)
				for range sessions {
					go func() {
						n := 0
						for ctx.Err() == nil {
							guess, hangUp := context.WithTimeout(ctx, tc.patience)
							err := throttle.Wait(guess, "a")
							hangUp()
							if err != nil {
								continue
							}
							time.Sleep(50 * time.Millisecond) // of the hash
							throttle.Failed("a")
							n++
						}
						tried <- n
					}()
				}
				all := 0
				for range sessions {
					all += <-tried
				}
				t.Logf("%d guesses in %d minutes", all, minutes)
				if all > tc.most {
					t.Errorf("%d guesses in %d minutes, want %d at most", all, minutes, tc.most)
				}
			})
		})
	}
}

func TestThrottleGivesUp(t *testing.T) {
	throttle := NewThrottle[string](time.Hour)
	for range maxScore {
		throttle.Failed("a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := throttle.Wait(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client has hung up: %v", err)
	}
}

// The memory of failures ends with them.
func TestThrottleForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle[int](time.Second)
		for i := range sweepAt {
			throttle.Failed(i)
		}
		time.Sleep(2 * scoreHalfLife)
		throttle.Failed(-1)
		if n := len(throttle.failed); n != 1 {
			t.Errorf("%d clients are remembered, want one", n)
		}
	})
}
