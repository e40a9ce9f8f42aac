package dataconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestMinRate lets a client send some bytes at intervals for ten minutes and checks when its upload ends.
func TestMinRate(t *testing.T) {
	const lasts = 10 * time.Minute
	always, never := func() bool { return true }, func() bool { return false }
	for _, tc := range []struct {
		name      string
		minRate   int64
		memory    int64
		contended func() bool
		stall     time.Duration
		bytes     int
		interval  time.Duration
		want      time.Duration // when the upload is ended, 0 if never
	}{
		{"slow", 4096, 0, always, 5 * time.Minute, 1, 4 * time.Second, time.Minute},
		{"slow-while-none-waits", 4096, 0, never, 5 * time.Minute, 1, 4 * time.Second, 0},
		{"slow-where-it-is-not-known", 4096, 0, nil, 5 * time.Minute, 1, 4 * time.Second, 0},
		{"slow-without-a-minimum", 0, 0, always, 5 * time.Minute, 1, 4 * time.Second, 0},
		{"slow-with-a-short-stall-timeout", 4096, 0, always, 20 * time.Second, 1, 3 * time.Second, 20 * time.Second},
		{"fast-enough", 4096, 0, always, 5 * time.Minute, 300, 4 * time.Second, 0},
		{"fast-enough-in-bursts", 4096, 0, always, 5 * time.Minute, 4096, 50 * time.Second, 0},
		{"a-trickle-that-holds-a-part", 4096, 5 << 20, always, 5 * time.Minute, 600, 5 * time.Second, time.Minute},
		{"a-trickle-while-none-waits", 4096, 5 << 20, never, 5 * time.Minute, 600, 5 * time.Second, 0},
		{"a-part-that-fills", 4096, 5 << 20, always, 5 * time.Minute, 45 << 10, 5 * time.Second, 0},
		{"a-part-without-a-minimum", 0, 5 << 20, always, 5 * time.Minute, 600, 5 * time.Second, 0},
		{"silent-while-none-waits", 4096, 0, never, 5 * time.Minute, 1, 6 * time.Minute, 5 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, client := net.Pipe()
				c := &Conn{ctx: t.Context(), Conn: server, raw: server, transfer: &Transfer{Options: Options{
					Config: Config{StallTimeout: tc.stall, MinRate: tc.minRate}, Contended: tc.contended,
				}, Memory: func() int64 { return tc.memory }}}
				begin := time.Now()
				go func() {
					defer client.Close()
					for time.Since(begin) < lasts {
						time.Sleep(tc.interval)
						if _, err := client.Write(make([]byte, tc.bytes)); err != nil {
							return
						}
					}
				}()
				got := 0
				var err error
				for err == nil {
					var n int
					n, err = c.Read(make([]byte, 64<<10))
					got += n
				}
				ended := time.Since(begin)
				_ = server.Close()
				synctest.Wait()
				time.Sleep(tc.interval) // until the client notices
				if stalled := errors.Is(err, ErrStalled); stalled != (tc.want > 0) || stalled && ended != tc.want {
					t.Errorf("ended after %s and %d bytes: %v; want %s", ended, got, err, tc.want)
				}
			})
		})
	}
}

// TestMinRateOfBusyServer lets the server wait for something else than its client, whose bytes arrive at once.
func TestMinRateOfBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		c := &Conn{ctx: t.Context(), Conn: server, raw: server, transfer: &Transfer{Options: Options{
			Config: Config{StallTimeout: 5 * time.Minute, MinRate: 4096}, Contended: func() bool { return true },
		}}}
		go func() { _, _ = client.Write(make([]byte, 10)) }()
		for range 10 {
			time.Sleep(2 * time.Minute)
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAbortOfSlowUpload ends a Read with a deadline, like the end of an upload does, after the client was silent
// for more than a window.
func TestAbortOfSlowUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		c := &Conn{ctx: t.Context(), Conn: server, raw: server,
			transfer: &Transfer{Options: Options{Config: Config{StallTimeout: time.Hour, MinRate: 1}}}}
		ctx, abort := context.WithTimeout(t.Context(), 10*time.Minute)
		defer abort()
		defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) })()
		go func() { _, _ = client.Write(make([]byte, 10)) }()
		begin := time.Now()
		var err error
		for err == nil {
			_, err = c.Read(make([]byte, 100))
		}
		if waited := time.Since(begin); waited != 10*time.Minute {
			t.Errorf("ended after %s, %v", waited, err)
		}
	})
}
