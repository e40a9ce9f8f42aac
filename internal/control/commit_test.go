package control

import (
	"testing"
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
			c := &dataConn{transfer: &transfer{}, below: tt.below, opened: time.Now()}
			c.ended = c.opened.Add(tt.took)
			c.transfer.bytes.Store(tt.bytes)
			if got := c.commitWait(most); got != tt.want {
				t.Errorf("waits %s, want %s", got, tt.want)
			}
		})
	}
}
