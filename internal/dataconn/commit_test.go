package dataconn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCommitWait(t *testing.T) {
	const most = 40 * time.Millisecond
	for _, tt := range []struct {
		name  string
		took  time.Duration
		bytes int64
		below *cutConn
		want  time.Duration
	}{
		{"short", time.Millisecond, 1, nil, most / 50},
		{"longer", 80 * time.Millisecond, 1, nil, 10 * time.Millisecond},
		{"long", time.Hour, 1, nil, most},
		{"empty", time.Millisecond, 0, nil, most},
		{"close-notify", time.Hour, 1, &cutConn{}, 0},
		{"empty-with-close-notify", time.Hour, 0, &cutConn{}, 0},
		{"tls-without-close-notify", 80 * time.Millisecond, 1, &cutConn{ended: true}, 10 * time.Millisecond},
		{"empty-without-close-notify", time.Millisecond, 0, &cutConn{ended: true}, most},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &Conn{transfer: &Transfer{}, below: tt.below, opened: time.Now()}
			c.ended = c.opened.Add(tt.took)
			c.transfer.bytes.Store(tt.bytes)
			if got := c.commitWait(most); got != tt.want {
				t.Errorf("waits %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCommitOnABusyMachine has a client killed whose process waits for a processor before its kernel closes the control connection.
func TestCommitOnABusyMachine(t *testing.T) {
	const (
		delay = 50 * time.Millisecond
		never = time.Hour
	)
	for _, tt := range []struct {
		name              string
		bytes             int64
		below             *cutConn
		tasks, processors int
		busy              time.Duration // how long that many tasks run
		end               time.Duration // when the control connection ends
		waits             time.Duration
		want              error
	}{
		{"idle", 1 << 20, nil, 1, 2, never, never, delay / 50, nil},
		{"idle-of-many", 1 << 20, nil, 30, 64, never, never, delay / 50, nil},
		{"unknown", 1 << 20, nil, 0, 1, never, never, delay / 50, nil},
		{"one-task-waits", 1 << 20, nil, 3, 2, never, never, delay / 2, nil},
		{"two-wait-for-each-processor", 1 << 20, nil, 6, 2, never, never, delay, nil},
		{"most-that-may-be", 1 << 20, nil, 200, 2, never, never, 10 * delay, nil},
		{"busy-for-a-moment", 1 << 20, nil, 6, 2, time.Millisecond + 1, never, delay / 50 * 3 / 2, nil},
		{"killed", 1 << 20, nil, 3, 2, never, 20 * time.Millisecond, 20 * time.Millisecond, ErrPeerClosed},
		{"killed-under-more-load", 1 << 20, nil, 24, 2, never, 200 * time.Millisecond, 200 * time.Millisecond, ErrPeerClosed},
		{"of-one-write", 4 << 10, nil, 24, 2, never, never, delay / 50, nil},
		{"close-notify", 1 << 20, &cutConn{}, 24, 2, never, never, 0, nil},
		{"tls-without-close-notify", 1 << 20, &cutConn{ended: true}, 6, 2, never, never, delay, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				control := &fakeControl{make(chan struct{})}
				transfer := &Transfer{}
				transfer.conn = &Conn{transfer: transfer, below: tt.below, opened: begin, ended: begin}
				transfer.bytes.Store(tt.bytes)
				timer := time.AfterFunc(tt.end, func() { close(control.closed) })
				defer timer.Stop()
				runQueue := func() (tasks, processors int) {
					if time.Since(begin) >= tt.busy {
						return 1, tt.processors
					}
					return tt.tasks, tt.processors
				}
				if err := transfer.awaitCommit(t.Context(), control, delay, runQueue); !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
				if waited := time.Since(begin); waited != tt.waits {
					t.Errorf("waited %s, want %s", waited, tt.waits)
				}
			})
		})
	}
}

// fakeControl is a control connection of which the kernel does not tell.
type fakeControl struct{ closed chan struct{} }

func (c *fakeControl) PeerClosed() <-chan struct{} { return c.closed }
func (*fakeControl) HungUp() bool                  { return false }
