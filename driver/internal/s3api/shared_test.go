package s3api

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// respondingClient responds to requests for objects.
type respondingClient struct {
	Client
	err error
}

func (c respondingClient) GetObject(
	context.Context, *s3.GetObjectInput, ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader("content"))}, c.err
}

func (c respondingClient) HeadObject(
	context.Context, *s3.HeadObjectInput, ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	return &s3.HeadObjectOutput{}, c.err
}

// A turnsClient sends the requests of a user through a bucket whose requests take turns.
type turnsClient struct {
	Client
	user *schedule.User
}

func (c turnsClient) bucket() *Bucket {
	return (&Bucket{client: c.Client}).InTurns(c.user)
}

func (c turnsClient) GetObject(
	ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	return call(ctx, c.bucket(), c.Client.GetObject, in)
}

func (c turnsClient) HeadObject(
	ctx context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	return call(ctx, c.bucket(), c.Client.HeadObject, in)
}

// TestTurnsEnd checks that requests release their turns, however they end.
func TestTurnsEnd(t *testing.T) {
	errFailed := errors.New("failed")
	read := func(t *testing.T, c Client, n int, end func(io.ReadCloser) error) {
		out, err := c.GetObject(t.Context(), &s3.GetObjectInput{})
		if err == nil {
			_, err = io.ReadFull(out.Body, make([]byte, n))
		}
		if err == nil {
			err = end(out.Body)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for label, test := range map[string]struct {
		err   error
		takes time.Duration // total of five requests
		do    func(t *testing.T, c Client)
	}{
		"request": {nil, 0, func(t *testing.T, c Client) {
			if _, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{}); err != nil {
				t.Error(err)
			}
		}},
		"failed": {errFailed, 0, func(t *testing.T, c Client) {
			if _, err := c.GetObject(t.Context(), &s3.GetObjectInput{}); !errors.Is(err, errFailed) {
				t.Error(err)
			}
		}},
		"whole-object": {nil, 0, func(t *testing.T, c Client) {
			read(t, c, len("content"), func(body io.ReadCloser) error {
				_, err := io.Copy(io.Discard, body)
				return err
			})
		}},
		"beginning-of-an-object": {nil, 0, func(t *testing.T, c Client) { read(t, c, 2, io.ReadCloser.Close) }},
		// every second request waits a millisecond
		"slow-client": {nil, 5 * 2 * time.Millisecond, func(t *testing.T, c Client) {
			out, err := c.GetObject(t.Context(), &s3.GetObjectInput{})
			must.OK(t, err)
			for _, n := range []int{2, len("content") - 2} {
				if _, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{}); err != nil {
					t.Error(err)
				}
				if _, err := io.ReadFull(out.Body, make([]byte, n)); err != nil {
					t.Error(err)
				}
			}
			if err := out.Body.Close(); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(label, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := schedule.NewRequests((&Stats{}).Far)
				other, err := requests.For("acme", "bob").Begin(t.Context()) // makes the user wait for turns
				must.OK(t, err)
				defer other.End()
				c := turnsClient{respondingClient{err: test.err}, requests.For("acme", "alice")}
				test.do(t, c)
				begin := time.Now()
				for range 5 {
					test.do(t, c)
				}
				if took := time.Since(begin); took != test.takes {
					t.Errorf("requests took %v and not %v: they waited for a turn that did not end", took, test.takes)
				}
			})
		})
	}
}

// TestNoTurn cancels a request that waits for its turn.
func TestNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := schedule.NewRequests((&Stats{}).Far)
		alice := requests.For("acme", "alice")
		var turns []*schedule.Turn
		for _, user := range []*schedule.User{requests.For("acme", "bob"), alice} {
			turn, err := user.Begin(t.Context())
			must.OK(t, err)
			turns = append(turns, turn)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := turnsClient{respondingClient{}, alice}.HeadObject(ctx, &s3.HeadObjectInput{})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a request without a turn: %v", err)
		}
		for _, turn := range turns {
			turn.End()
		}
	})
}

// endlessClient returns objects that never end and are never slow.
type endlessClient struct{ Client }

func (endlessClient) GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return &s3.GetObjectOutput{Body: io.NopCloser(endless{})}, nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond / 2)
	return len(p), nil
}

// TestTurnsOfLargeObjects checks that the downloads of a user take turns, even if each of them reads all bytes as fast
// as S3 sends them.
func TestTurnsOfLargeObjects(t *testing.T) {
	const downloads, reads = 20, 4000
	synctest.Test(t, func(t *testing.T) {
		requests := schedule.NewRequests((&Stats{}).Far)
		other, err := requests.For("acme", "bob").Begin(t.Context()) // makes the user wait for turns
		must.OK(t, err)
		other.End()
		ctx, cancel := context.WithCancel(t.Context())
		var active sync.WaitGroup
		active.Go(func() { // keeps bob active
			for ctx.Err() == nil {
				if turn, err := requests.For("acme", "bob").Begin(ctx); err == nil {
					turn.End()
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		c := turnsClient{endlessClient{}, requests.For("acme", "alice")}
		begin := time.Now()
		var longest [downloads]time.Duration
		var all sync.WaitGroup
		for n := range downloads {
			all.Go(func() {
				out, err := c.GetObject(t.Context(), &s3.GetObjectInput{})
				if err != nil {
					t.Error(err)
					return
				}
				defer out.Body.Close()
				last := begin
				for range reads {
					if _, err := out.Body.Read(make([]byte, 1)); err != nil {
						t.Error(err)
					}
					longest[n] = max(longest[n], time.Since(last))
					last = time.Now()
				}
			})
		}
		all.Wait()
		cancel()
		active.Wait()
		t.Log(longest, time.Since(begin))
		if most := slices.Max(longest[:]); most > 2*time.Second {
			t.Errorf("a download waited %v for its next bytes", most)
		}
	})
}

// TestIdleBeforeATurn checks that S3 does not count as idle while a request, or the next read of a body, waits for its
// turn.
func TestIdleBeforeATurn(t *testing.T) {
	const timeout = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		requests := schedule.NewRequests((&Stats{}).Far)
		alice := requests.For("acme", "alice")
		wait := func() { // waits for a turn of alice while another request of hers is in flight for a second
			for _, user := range []*schedule.User{requests.For("acme", "bob"), alice} {
				if _, err := user.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		wait()
		begin := time.Now()
		ctx, watch := watchIdle(t.Context(), timeout)
		out, err := turnsClient{endlessClient{}, alice}.GetObject(ctx, &s3.GetObjectInput{})
		must.OK(t, err)
		watch.Stop()
		if took := time.Since(begin); took < timeout {
			t.Errorf("the request waited %v", took)
		}
		time.Sleep(timeout)
		wait()
		begin = time.Now()
		watch.Start()
		_, err = out.Body.Read(make([]byte, 1))
		watch.Stop()
		if took := time.Since(begin); took < timeout {
			t.Errorf("the bytes waited %v", took)
		}
		if err = watch.Error(err); err != nil {
			t.Errorf("the wait for a turn counts as idle: %v", err)
		}
		if err := out.Body.Close(); err != nil {
			t.Error(err)
		}
		watch.Close()
	})
}
