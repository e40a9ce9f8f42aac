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

// A killed client is detected if its control connection ends during the wait. The wait is a share of the duration
// of the upload.
func TestAwaitCommit(t *testing.T) {
	const (
		delay = 50 * time.Millisecond
		never = time.Hour
	)
	for _, tt := range []struct {
		name  string
		below *cutConn
		took  time.Duration // duration of the upload
		end   time.Duration // when the control connection ends
		waits time.Duration
		want  error
	}{
		{"short", nil, 0, never, delay / 50, nil},
		{"long", nil, time.Hour, never, delay, nil},
		{"killed", nil, time.Hour, 20 * time.Millisecond, 20 * time.Millisecond, ErrPeerClosed},
		{"killed-later-than-the-wait", nil, 0, 20 * time.Millisecond, delay / 50, nil},
		{"close-notify", &cutConn{}, time.Hour, never, 0, nil},
		{"tls-without-close-notify", &cutConn{ended: true}, time.Hour, never, delay, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				control := &fakeControl{make(chan struct{})}
				transfer := &Transfer{}
				transfer.conn = &Conn{transfer: transfer, below: tt.below, opened: begin.Add(-tt.took), ended: begin}
				transfer.bytes.Store(1 << 20)
				timer := time.AfterFunc(tt.end, func() { close(control.closed) })
				defer timer.Stop()
				if err := transfer.AwaitCommit(t.Context(), control, delay); !errors.Is(err, tt.want) {
					t.Errorf("got error %v, want %v", err, tt.want)
				}
				if waited := time.Since(begin); waited != tt.waits {
					t.Errorf("waited %s, want %s", waited, tt.waits)
				}
			})
		})
	}
}

// fakeControl is a control connection whose end the kernel never reports.
type fakeControl struct{ closed chan struct{} }

func (c *fakeControl) PeerClosed() <-chan struct{} { return c.closed }
func (*fakeControl) HungUp() bool                  { return false }
