package driver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A settableClock is the clock of an S3 server. It dates the answers, and what is stored from when it was set.
type settableClock struct {
	s3.HTTPClient
	since  time.Time    // when it was set
	ahead  atomic.Int64 // nanoseconds; 0 before it is set
	stores bool         // the machine that stores objects has been set too
}

func (c *settableClock) set(ahead time.Duration) {
	c.since = time.Now().Truncate(time.Second)
	c.ahead.Store(int64(ahead))
}

// Do implements [s3.HTTPClient].
func (c *settableClock) Do(request *http.Request) (*http.Response, error) {
	response, err := c.HTTPClient.Do(request)
	ahead := time.Duration(c.ahead.Load())
	if err != nil || ahead == 0 {
		return response, err
	}
	for _, name := range []string{"Date", "Last-Modified"} {
		at, err := http.ParseTime(response.Header.Get(name))
		if err == nil && (name == "Date" || c.stores && !at.Before(c.since)) {
			response.Header.Set(name, at.Add(ahead).Format(http.TimeFormat))
		}
	}
	return response, nil
}

// TestClockOfS3 sets the clock of S3 while a request to store a file has no answer. Another client has stored the
// file since S3 has performed the request, or else S3 has not performed it.
func TestClockOfS3(t *testing.T) {
	t.Parallel()
	for label, test := range map[string]struct {
		ahead, before time.Duration // before another client stores the file, and after that
		other         bool
		want          error
	}{
		"forward-after":         {ahead: 10 * time.Minute, other: true, want: syscall.EAGAIN},
		"back-before":           {before: -10 * time.Minute, other: true, want: syscall.EAGAIN},
		"forward-before":        {before: 10 * time.Minute, other: true, want: syscall.EAGAIN},
		"back-after":            {ahead: -10 * time.Minute, other: true, want: syscall.EAGAIN},
		"other-machine":         {ahead: 30 * time.Second, other: true, want: syscall.EAGAIN},
		"steady":                {other: true, want: syscall.EAGAIN},
		"not-performed":         {},
		"not-performed-forward": {ahead: 10 * time.Minute},
		"not-performed-back":    {ahead: -10 * time.Minute},
	} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, server := simulated(t, "aws")
				clock := &settableClock{stores: test.before != 0}
				client := server.Client(nil, func(o *s3.Options) {
					clock.HTTPClient, o.HTTPClient = o.HTTPClient, clock
				})
				spy := drivertest.NewSpy(client)
				f := drivertest.MustNewSteady(t.Context(), spy, "bucket", &driver.Options{Profile: p})
				other := func(content string) {
					in := &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String("file"),
						Body: strings.NewReader(content)}
					if _, err := server.Client(nil).PutObject(t.Context(), in); err != nil {
						t.Error(err)
					}
				}
				other("old")
				time.Sleep(time.Hour)
				if _, err := f.StatFile("file"); err != nil {
					t.Fatal(err)
				}
				lost := false
				disturb := func() error {
					lost = true
					spy.Before(nil)
					spy.After(nil)
					if test.before != 0 {
						clock.set(test.before)
					}
					time.Sleep(100 * time.Millisecond)
					if test.other {
						other("other")
					}
					if test.ahead != 0 {
						clock.set(test.ahead)
					}
					return io.ErrUnexpectedEOF
				}
				spy.Before(func(_ context.Context, operation string, _ any) error {
					if operation == "PutObject" && !test.other {
						return disturb()
					}
					return nil
				})
				spy.After(func(operation string, _ any) error {
					if operation == "PutObject" {
						return disturb()
					}
					return nil
				})
				err := afero.WriteFile(f, "file", []byte("mine"), 0)
				content, readErr := afero.ReadFile(f, "file")
				want := "mine"
				if test.other {
					want = "other"
				}
				if !lost || !errors.Is(err, test.want) || readErr != nil || string(content) != want {
					t.Errorf(
						"it ended with %v, and %q is there, %v; want %v and %q", err, content, readErr, test.want, want)
				}
			})
		})
	}
}

// A strictClock refuses requests that were signed more than 15 minutes before or after the time of S3, as S3 does.
type strictClock struct{ settableClock }

// Do implements [s3.HTTPClient].
func (c *strictClock) Do(request *http.Request) (*http.Response, error) {
	const most = 15 * time.Minute
	now := time.Now().Add(time.Duration(c.ahead.Load()))
	signed, err := time.Parse("20060102T150405Z", request.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	if signed.Sub(now).Abs() <= most {
		return c.settableClock.Do(request)
	}
	body := "<Error><Code>RequestTimeTooSkewed</Code></Error>"
	if request.Method == http.MethodHead {
		body = ""
	}
	header := http.Header{"Date": {now.UTC().Format(http.TimeFormat)}, "X-Amz-Request-Id": {"1"}}
	return &http.Response{
		StatusCode: http.StatusForbidden, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// TestClockOfSignatures sets the clock of S3 between requests, or that of this machine, which is the same. The next
// one of any kind works: a HEAD too, whose refusal says no reason.
func TestClockOfSignatures(t *testing.T) {
	t.Parallel()
	for label, first := range map[string]func(afero.Fs) error{
		"head": func(f afero.Fs) error { _, err := f.Stat("/file"); return err },
		"list": func(f afero.Fs) error { _, err := afero.ReadDir(f, "/"); return err },
		"put":  func(f afero.Fs) error { return afero.WriteFile(f, "/other", []byte("x"), 0o600) },
	} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, server := simulated(t, "aws")
				clock := &strictClock{}
				client := server.Client(nil, func(o *s3.Options) {
					clock.HTTPClient, o.HTTPClient = o.HTTPClient, clock
				})
				fs := drivertest.MustNewSteady(t.Context(), client, "bucket", &driver.Options{Profile: p})
				must.OK(t, afero.WriteFile(fs, "/file", []byte("content"), 0o600))
				for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 0} {
					clock.set(ahead)
					if err := first(fs); err != nil {
						t.Errorf("after the clock was set by %v: %v", ahead, err)
					}
				}
			})
		})
	}
}
