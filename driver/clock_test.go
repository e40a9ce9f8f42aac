package driver_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A strictClock simulates the clock of an S3 server that refuses requests whose signature time differs from its own
// time by more than 15 minutes, as S3 does.
type strictClock struct {
	s3.HTTPClient
	ahead atomic.Int64 // in nanoseconds
}

// Do implements [s3.HTTPClient].
func (c *strictClock) Do(request *http.Request) (*http.Response, error) {
	const most = 15 * time.Minute
	now := time.Now().Add(time.Duration(c.ahead.Load()))
	signed, err := time.Parse("20060102T150405Z", request.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	if signed.Sub(now).Abs() <= most {
		response, err := c.HTTPClient.Do(request)
		if err == nil {
			response.Header.Set("Date", now.UTC().Format(http.TimeFormat))
		}
		return response, err
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

// TestClockOfSignatures changes the clock of S3 between requests, which has the same effect as changing the local
// clock. The next request of every kind must succeed, even a HEAD request, whose refusal does not contain a reason.
func TestClockOfSignatures(t *testing.T) {
	t.Parallel()
	for label, first := range map[string]func(afero.Fs) error{
		"head": func(f afero.Fs) error { _, err := f.Stat("/file"); return err },
		"head-of-nothing": func(f afero.Fs) error {
			if _, err := f.Stat("/missing"); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("Stat of a missing file returns %w", err)
			}
			return nil
		},
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
				files := drivertest.MustNewSteady(t.Context(), client, "bucket", &driver.Options{Profile: p})
				must.OK(t, afero.WriteFile(files, "/file", []byte("content"), 0o600))
				for _, ahead := range []time.Duration{2 * time.Hour, -2 * time.Hour, 0} {
					clock.ahead.Store(int64(ahead))
					if err := first(files); err != nil {
						t.Errorf("after setting the clock by %v: %v", ahead, err)
					}
				}
			})
		})
	}
}
