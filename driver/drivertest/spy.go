package drivertest

import (
	"context"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest/s3spy"
)

// A Spy is a driver.Client that counts the requests to another client, and lets a test interfere with them: fail them,
// delay them, or change their responses. It is safe for concurrent use.
type Spy struct {
	driver.Client

	mu     sync.Mutex
	counts map[string]int
	hooks  hooks
}

// hooks are the functions that interfere with a request.
type hooks struct {
	before func(ctx context.Context, operation string, in any) error
	done   func()
	after  func(operation string, out any) error
}

// NewSpy returns a spy without hooks.
func NewSpy(client driver.Client) *Spy {
	s := &Spy{}
	s.Client = s3spy.Intercept(client, s.intercept)
	return s
}

// Before sets a function that is called before each request with its operation, such as "PutObject", and its input,
// such as *s3.PutObjectInput. If it returns an error, the request is not sent and fails with this error. nil removes
// the function.
func (s *Spy) Before(f func(ctx context.Context, operation string, in any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.before = f
}

// Done sets a function that is called when a request that was sent has ended, with a response or an error. nil removes
// the function.
func (s *Spy) Done(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.done = f
}

// After sets a function that is called with the output of each request, such as *s3.GetObjectOutput, which it may
// change. If it returns an error, the request fails with this error. nil removes the function.
func (s *Spy) After(f func(operation string, out any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks.after = f
}

// Reset sets all counts to zero.
func (s *Spy) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = nil
}

// Counts returns the number of requests for each operation.
func (s *Spy) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Total returns the number of requests.
func (s *Spy) Total() int {
	total := 0
	for _, n := range s.Counts() {
		total += n
	}
	return total
}

// begin counts a request and returns the current hooks.
func (s *Spy) begin(operation string) hooks {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[operation]++
	return s.hooks
}

// intercept intercepts all requests.
func (s *Spy) intercept(ctx context.Context, in any, send func() (any, error)) error {
	operation := strings.TrimSuffix(reflect.TypeOf(in).Elem().Name(), "Input")
	hooks := s.begin(operation)
	if hooks.before != nil {
		if err := hooks.before(ctx, operation, in); err != nil {
			return err
		}
	}
	out, err := send()
	if hooks.done != nil {
		hooks.done()
	}
	if err == nil && hooks.after != nil {
		err = hooks.after(operation, out)
	}
	return err
}

// gauge measures the load from now on: size returns the load of each request, and most is the maximum of the load of
// all requests in flight.
func (x *fixture) gauge(size func(in any) int64) (most *atomic.Int64) {
	var now atomic.Int64
	most = &atomic.Int64{}
	x.spy.Client = s3spy.Intercept(x.spy.Client, func(_ context.Context, in any, send func() (any, error)) error {
		n := size(in)
		sum := now.Add(n)
		defer now.Add(-n)
		for before := most.Load(); sum > before && !most.CompareAndSwap(before, sum); before = most.Load() {
		}
		_, err := send()
		return err
	})
	return most
}

// redate returns a hook for [Spy.After] that changes the times of the objects below a prefix in listings.
func redate(prefix string, change func(time.Time) time.Time) func(operation string, out any) error {
	return func(_ string, out any) error {
		if page, ok := out.(*s3.ListObjectsV2Output); ok {
			for i, object := range page.Contents {
				if strings.HasPrefix(*object.Key, prefix) {
					page.Contents[i].LastModified = aws.Time(change(*object.LastModified))
				}
			}
		}
		return nil
	}
}

// later returns a function that adds a duration to a time.
func later(by time.Duration) func(time.Time) time.Time {
	return func(t time.Time) time.Time { return t.Add(by) }
}

// A TruncatedBody ends with an error after some bytes.
type TruncatedBody struct {
	io.ReadCloser
	Left int64
	Err  error
}

// Read reads the remaining bytes and then fails.
func (b *TruncatedBody) Read(p []byte) (int, error) {
	if b.Left <= 0 {
		return 0, b.Err
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.Left)])
	b.Left -= int64(n)
	return n, err
}
