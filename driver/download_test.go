package driver

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A store is a server with one object. It limits the speed of each connection and the total speed, both in bytes per
// second. In a synctest bubble it takes no real time.
type store struct {
	s3api.Client
	size               int64
	latency            time.Duration
	connection, server float64

	mu       sync.Mutex
	sending  int // responses in flight
	most     int
	requests int
	ended    int // number of requests that have ended
}

// GetObject responds after the latency.
func (s *store) GetObject(
	ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	first, last := int64(0), s.size-1
	out := &s3.GetObjectOutput{ETag: aws.String("e"), LastModified: aws.Time(time.Now())}
	if in.Range != nil {
		if _, err := fmt.Sscanf(*in.Range, "bytes=%d-%d", &first, &last); err != nil {
			return nil, err
		}
		out.ContentRange = aws.String(fmt.Sprintf("bytes %d-%d/%d", first, last, s.size))
	}
	s.acquire(0, 1)
	if err := s3api.Sleep(ctx, s.latency); err != nil {
		return nil, err
	}
	out.ContentLength = aws.Int64(last - first + 1)
	s.acquire(1, 0)
	out.Body = &stream{store: s, ctx: ctx, left: last - first + 1, due: time.Now()}
	return out, nil
}

// acquire counts responses and requests, and returns the number of responses in flight.
func (s *store) acquire(sending, requests int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending += sending
	s.requests += requests
	s.most = max(s.most, s.sending)
	return s.sending
}

// inFlight returns the number of requests in flight.
func (s *store) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests - s.ended
}

// A stream is a response in flight. Received bytes wait in the memory of the kernel, which holds as much as arrives in
// kernelTime.
type stream struct {
	store *store
	ctx   context.Context
	left  int64
	due   time.Time // when the previous bytes have arrived
	ended bool
}

const kernelTime = 100 * time.Millisecond

// Read implements io.Reader.
func (a *stream) Read(p []byte) (int, error) {
	if a.left == 0 {
		a.Close()
		return 0, io.EOF
	}
	const most = 64 << 10
	n := min(int64(len(p)), a.left, most)
	rate := min(a.store.connection, a.store.server/float64(a.store.acquire(0, 0)))
	a.due = later(a.due, time.Now().Add(-kernelTime)).Add(time.Duration(float64(n) / rate * float64(time.Second)))
	if err := s3api.Sleep(a.ctx, time.Until(a.due)); err != nil {
		return 0, err
	}
	a.left -= n
	return int(n), nil
}

// Close implements io.Closer.
func (a *stream) Close() error {
	if !a.ended {
		a.ended = true
		a.store.acquire(-1, 0)
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		a.store.ended++
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// download reads the object for a client.
func (s *store) download(t *testing.T, f *Fs, client slowClient) {
	file, err := f.OpenReader(t.Context(), "file", 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	if n, err := io.Copy(client, file); err != nil || n != s.size {
		t.Errorf("%d bytes of %d, %v", n, s.size, err)
	}
}

// A slowClient reads this many bytes per second.
type slowClient float64

// Write implements io.Writer.
func (c slowClient) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(float64(len(p)) / float64(c) * float64(time.Second)))
	return len(p), nil
}

// TestRequestsOfDownload checks how many parallel requests a download uses in the end.
func TestRequestsOfDownload(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	const far, near = 40 * time.Millisecond, time.Millisecond
	const settled = 10 * time.Second // after the first backoffs
	for _, test := range []struct {
		label                      string
		connection, server, client float64
		latency                    time.Duration
		reservations               int // number of other transfers that share the memory
		least, most                int
	}{
		{"distant-server", 25 * mib, 10_000 * mib, 2000 * mib, far, 0, 16, 16},
		{"slow-client", 25 * mib, 10_000 * mib, 10 * mib, far, 0, 1, 1},
		{"client-a-little-faster", 25 * mib, 10_000 * mib, 40 * mib, far, 0, 1, 2},
		{"client-of-four-requests", 25 * mib, 10_000 * mib, 120 * mib, far, 0, 4, 6},
		{"server-that-is-as-fast-with-one", 500 * mib, 500 * mib, 2000 * mib, near, 0, 1, 1},
		{"busy-near-server", 25 * mib, 25 * mib, 2000 * mib, near, 0, 1, 1},
		{"memory-for-eight", 25 * mib, 10_000 * mib, 2000 * mib, far, 2, 8, 8},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{latency: test.latency, connection: test.connection, server: test.server}
				s.size = int64(min(16*test.connection, test.server, test.client) * 1.2 * settled.Seconds())
				opts := &Options{Endpoint: NewEndpoint(), Memory: NewBudget(128 * mib),
					Profile: Profile{AtomicReads: true}}
				for range test.reservations {
					defer opts.Memory.Reserve(func() {}).Close()
				}
				f := mustNew(s, opts)
				var mu sync.Mutex
				var samples []int
				go func() {
					time.Sleep(settled - time.Second)
					for range 100 {
						mu.Lock()
						samples = append(samples, s.inFlight())
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
					}
				}()
				s.download(t, f, slowClient(test.client))
				if most := 10; test.most == 1 && s.requests > most {
					t.Errorf("got %d requests, want at most %d", s.requests, most)
				}
				mu.Lock()
				defer mu.Unlock()
				slices.Sort(samples)
				if n := samples[len(samples)/2]; n < test.least || n > test.most {
					t.Errorf("got %d parallel requests, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

// TestDownloads checks how long downloads from an unknown server take, and how many requests they use.
func TestDownloads(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	const far, region, near = 40 * time.Millisecond, 4 * time.Millisecond, time.Millisecond
	for _, test := range []struct {
		label              string
		size               int64
		connection, server float64
		latency            time.Duration
		downloads, files   int // per download, one after the other
		within             time.Duration
		requests           int
	}{
		{"distant-server", 256 * mib, 25 * mib, 10_000 * mib, far, 1, 1, 1150 * time.Millisecond, 65},
		{"files-of-a-distant-server", 16 * mib, 25 * mib, 10_000 * mib, far, 1, 4, 750 * time.Millisecond, 64},
		{"eight-from-a-distant-server", 16 * mib, 25 * mib, 10_000 * mib, far, 8, 4, 750 * time.Millisecond, 512},
		{"distant-server-of-four-connections", 256 * mib, 25 * mib, 100 * mib, far, 1, 1, 2800 * time.Millisecond, 65},
		{"near-server", 256 * mib, 800 * mib, 800 * mib, near, 1, 1, 350 * time.Millisecond, 1},
		{"same-region", 256 * mib, 80 * mib, 10_000 * mib, region, 1, 1, 700 * time.Millisecond, 65},
		{"eight-from-a-near-server", 16 * mib, 800 * mib, 800 * mib, near, 8, 8, 1350 * time.Millisecond, 64},
		{"eight-from-the-same-region", 256 * mib, 80 * mib, 10_000 * mib, region, 8, 1, 1200 * time.Millisecond, 520},
	} {
		t.Run(test.label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &store{size: test.size, latency: test.latency, connection: test.connection, server: test.server}
				opts := &Options{Endpoint: NewEndpoint(), Memory: NewBudget(256 * mib),
					Profile: Profile{AtomicReads: true}}
				begin := time.Now()
				var downloads sync.WaitGroup
				for range test.downloads {
					downloads.Go(func() {
						f := mustNew(s, opts)
						for range test.files {
							s.download(t, f, 800*mib)
						}
					})
				}
				downloads.Wait()
				took := time.Since(begin)
				t.Logf("took %v, %d requests, %d in parallel", took, s.requests, s.most)
				if took > test.within {
					t.Errorf("the download took %v", took)
				}
				if s.requests > test.requests {
					t.Errorf("got %d requests", s.requests)
				}
			})
		})
	}
}
