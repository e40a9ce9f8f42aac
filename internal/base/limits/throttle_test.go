package limits

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// waited returns how long an attempt of a key has to wait.
func waited(t *testing.T, throttle *Throttle[string, string], key, cause string) time.Duration {
	t.Helper()
	begin := time.Now()
	must.OK(t, throttle.Wait(t.Context(), key, cause))
	return time.Since(begin).Round(10 * time.Millisecond) // because the score decays during the wait
}

func TestThrottle(t *testing.T) {
	const longest = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle[string, string](longest)
		for i, want := range []time.Duration{0, firstDelay, 2 * firstDelay, 4 * firstDelay, 8 * firstDelay, longest,
			longest} {
			if got := waited(t, throttle, "a", "user"); got > want || got < want*9/10 {
				t.Errorf("attempt %d: got wait %v, want %v", i+1, got, want)
			}
			throttle.Failed("a", "user")
		}
		if got := waited(t, throttle, "b", "user"); got != 0 {
			t.Errorf("another client: got wait %v", got)
		}
		time.Sleep(10 * scoreHalfLife)
		if got := waited(t, throttle, "a", "user"); got != 0 {
			t.Errorf("after a long time: got wait %v", got)
		}
		throttle.Failed("a", "user")
		throttle.Succeeded("a", "user")
		if got := waited(t, throttle, "a", "user"); got != 0 {
			t.Errorf("after a success: got wait %v", got)
		}
	})
}

// TestThrottleBoundsGuesses checks that a client cannot try more passwords by guessing in parallel sessions, even if it
// hangs up as soon as a reply takes longer than the reply to a correct password.
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
				throttle := NewThrottle[string, string](15 * time.Second)
				ctx, end := context.WithTimeout(t.Context(), minutes*time.Minute)
				defer end()
				tried := make(chan int)
				for range sessions {
					go func() {
						n := 0
						for ctx.Err() == nil {
							guess, hangUp := context.WithTimeout(ctx, tc.patience)
							err := throttle.Wait(guess, "a", "user")
							hangUp()
							if err != nil {
								continue
							}
							time.Sleep(50 * time.Millisecond) // time for the hash
							throttle.Failed("a", "user")
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
					t.Errorf("got %d guesses in %d minutes, want at most %d", all, minutes, tc.most)
				}
			})
		})
	}
}

// TestThrottleOfCauses checks that a client does not get more guesses by logging in as another user between them, and
// that a user with the correct password does not wait because of guesses from the same address.
func TestThrottleOfCauses(t *testing.T) {
	guesses := func(between func(*testing.T, *Throttle[string, string])) (n int) {
		synctest.Test(t, func(t *testing.T) {
			throttle := NewThrottle[string, string](15 * time.Second)
			ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
			defer end()
			for throttle.Wait(ctx, "a", "victim") == nil {
				throttle.Failed("a", "victim")
				n++
				between(t, throttle)
			}
		})
		return n
	}
	alone := guesses(func(*testing.T, *Throttle[string, string]) {})
	holder := guesses(func(t *testing.T, throttle *Throttle[string, string]) {
		if got := waited(t, throttle, "a", "holder"); got > 15*time.Second {
			t.Errorf("correct password: got wait %v", got)
		}
		throttle.Succeeded("a", "holder")
	})
	if alone == 0 || holder > alone {
		t.Errorf("got %d guesses in 20 s with logins in between, %d without", holder, alone)
	}

	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle[string, string](15 * time.Second)
		for i := range 100 {
			throttle.Failed("a", strconv.Itoa(i))
		}
		for i := range 100 {
			throttle.Succeeded("a", "right"+strconv.Itoa(i))
		}
		if n := len(throttle.failed.Get("a").causes); n > maxCauses {
			t.Errorf("got %d remembered causes, want at most %d", n, maxCauses)
		}
		for range 2 {
			if got := waited(t, throttle, "a", "right0"); got != 0 {
				t.Errorf("after a success: got wait %v", got)
			}
			throttle.Succeeded("a", "right0")
		}
		if got := waited(t, throttle, "a", "right99"); got < 14*time.Second {
			t.Errorf("forgotten cause: got wait %v", got)
		}
		throttle.Succeeded("a", "0") // does not forget the failures of other causes
		if got := waited(t, throttle, "a", "1"); got < 14*time.Second {
			t.Errorf("after a success of another cause: got wait %v", got)
		}
	})
}

func TestThrottleGivesUp(t *testing.T) {
	throttle := NewThrottle[string, string](time.Hour)
	for range maxScore {
		throttle.Failed("a", "user")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := throttle.Wait(ctx, "a", "user"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the client disconnected: %v", err)
	}
}

// TestThrottleForgets checks that keys without recent failures are removed.
func TestThrottleForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := NewThrottle[int, string](time.Second)
		for i := range sweepAt {
			throttle.Failed(i, "user")
		}
		time.Sleep(2 * scoreHalfLife)
		throttle.Failed(-1, "user")
		if n := throttle.failed.Len(); n != 1 {
			t.Errorf("got %d remembered clients, want 1", n)
		}
	})
}
