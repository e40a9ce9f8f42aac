package s3test

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestLink sends bytes over a link in virtual time: they take its latency once and the time that its bandwidth gives
// them.
func TestLink(t *testing.T) {
	for _, tt := range []struct {
		name string
		link Link
		size int
		took time.Duration
	}{
		{"nothing", Link{Latency: 30 * time.Millisecond, Bandwidth: 8 << 20}, 0, 0},
		{"latency", Link{Latency: 30 * time.Millisecond}, linkChunk, 30 * time.Millisecond},
		{"bandwidth", Link{Bandwidth: 8 << 20}, 2 << 20, 250 * time.Millisecond},
		{"both", Link{Latency: 30 * time.Millisecond, Bandwidth: 8 << 20}, 2 << 20, 280 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, near := net.Pipe()
				far, server := net.Pipe()
				begin := time.Now()
				go tt.link.carry(far, near)
				go func() {
					_, _ = client.Write(make([]byte, tt.size))
					_ = client.Close()
				}()
				n, err := io.Copy(io.Discard, server)
				if took := time.Since(begin); n != int64(tt.size) || err != nil || took != tt.took {
					t.Errorf("%d bytes in %v, %v; want %d in %v", n, took, err, tt.size, tt.took)
				}
			})
		})
	}
}
