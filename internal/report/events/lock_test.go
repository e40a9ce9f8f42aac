package events

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// never is an expiry that no test sees.
const never = time.Hour

// A bucket is where the locks of several servers are.
type lockBucket struct {
	client Client
	name   string
}

// lock is what one more server knows of the lock.
func (b lockBucket) lock(t *testing.T) *lock {
	l := newLock(func() Client { return b.client }, b.name, "locks/name", slog.New(slog.NewTextHandler(t.Output(), nil)))
	l.expiry = never
	return l
}

func startLockBucket(t *testing.T, name string) lockBucket {
	s := s3test.Start(t, name)
	return lockBucket{s.Client(s3client.RepeatUnstored("")), s.Bucket(t)}
}

// on runs a test with S3 servers that keep conditions, that compare bare ETags, that refuse conditions (501), and
// that ignore them.
func on(t *testing.T, test func(*testing.T, lockBucket)) {
	for _, name := range []string{"sim-aws", "minio", "sim-strict"} {
		t.Run(name, func(t *testing.T) { test(t, startLockBucket(t, name)) })
	}
	t.Run("bare-etags", func(t *testing.T) {
		b := startLockBucket(t, "sim-aws")
		b.client = bareETags{b.client}
		test(t, b)
	})
	t.Run("ignores-conditions", func(t *testing.T) {
		b := startLockBucket(t, "sim-aws")
		b.client = unconditional{b.client}
		test(t, b)
	})
}

// bareETags is an S3 server that compares ETags without their quotes, as Ceph's does.
type bareETags struct{ Client }

func (s bareETags) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	quoted := *in
	if in.IfMatch != nil {
		quoted.IfMatch = aws.String(`"` + *in.IfMatch + `"`)
	}
	return s.Client.PutObject(ctx, &quoted, opts...)
}

// unconditional is an S3 server that ignores conditions.
type unconditional struct{ Client }

func (u unconditional) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	plain := *in
	plain.IfMatch, plain.IfNoneMatch = nil, nil
	return u.Client.PutObject(ctx, &plain, opts...)
}

// wantHeld takes or renews a lock, and says whether that must succeed.
func wantHeld(t *testing.T, l *lock, want bool) {
	t.Helper()
	if held, err := l.Hold(t.Context()); err != nil || held != want || l.Held() != want {
		t.Errorf("Hold returns %v, %v, and the lock is held: %v; want %v", held, err, l.Held(), want)
	}
}

// One server has the lock, until it releases it or counts as dead.
func TestHold(t *testing.T) {
	on(t, func(t *testing.T, b lockBucket) {
		first, second := b.lock(t), b.lock(t)
		wantHeld(t, first, true)
		wantHeld(t, second, false)
		wantHeld(t, first, true)
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantHeld(t, second, false)
		if err := first.Release(t.Context()); err != nil || first.Held() {
			t.Errorf("the released lock is held: %v, %v", first.Held(), err)
		}
		wantHeld(t, second, true)
		wantHeld(t, first, false)
		first.expiry = 0
		wantHeld(t, first, true)
		wantHeld(t, second, false)
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantHeld(t, first, true)
	})
}

// Of two servers that find no lock at the same time, one gets it.
func TestHoldAtTheSameTime(t *testing.T) {
	for _, name := range []string{"sim-aws", "minio"} {
		t.Run(name, func(t *testing.T) {
			b := startLockBucket(t, name)
			looks := &barrier{Client: b.client, looked: make(chan struct{})}
			looks.looking.Store(2)
			b.client = looks
			var got atomic.Int32
			var wait sync.WaitGroup
			for range 2 {
				l := b.lock(t)
				wait.Go(func() {
					held, err := l.Hold(t.Context())
					if err != nil {
						t.Error(err)
					}
					if held {
						got.Add(1)
					}
				})
			}
			wait.Wait()
			if got.Load() != 1 {
				t.Errorf("%d servers have the lock", got.Load())
			}
		})
	}
}

// A barrier lets the first looks of two servers end before their writes begin.
type barrier struct {
	Client
	looking atomic.Int32
	looked  chan struct{}
}

func (b *barrier) GetObject(
	ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	defer func() {
		if b.looking.Add(-1) == 0 {
			close(b.looked)
		}
	}()
	return b.Client.GetObject(ctx, in, opts...)
}

func (b *barrier) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	<-b.looked
	return b.Client.PutObject(ctx, in, opts...)
}

// A lossy bucket loses answers where a test asks for that.
func lossy(
	t *testing.T,
) (b lockBucket, lose func(operation string, after, times int) *s3test.Injection, proxy *s3test.Proxy) {
	t.Helper()
	server := s3test.Start(t, "minio")
	proxy = s3test.StartProxy(t, server)
	lose = func(operation string, after, times int) *s3test.Injection {
		return proxy.Inject(s3test.Fault{Operation: operation, After: after, Times: times, Effect: s3test.LoseResponse()})
	}
	return lockBucket{proxy.Server().Client(s3client.RepeatUnstored("")), server.Bucket(t)}, lose, proxy
}

// The answer to a write is lost. The server that has written the lock has it, and does not write it again: another
// server may have taken it by then.
func TestLostAnswers(t *testing.T) {
	b, lose, proxy := lossy(t)
	once := func(what string, do func()) {
		t.Helper()
		before := proxy.Counts()["PutObject"]
		injected := lose("PutObject", 0, 1)
		do()
		if n := proxy.Counts()["PutObject"] - before; n != 1 || injected.Applied() != 1 {
			t.Errorf("%s: the lock is written %d times", what, n)
		}
		injected.End()
	}
	for _, client := range []Client{b.client, unconditional{b.client}} {
		b.client = client
		first, second := b.lock(t), b.lock(t)
		once("taken", func() { wantHeld(t, first, true) })
		once("renewed", func() { wantHeld(t, first, true) })
		wantHeld(t, second, false)
		once("released", func() {
			if err := first.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		wantHeld(t, second, true)
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// S3 refuses a write for a moment. The server writes it again, and compares ETags as before.
func TestRefusedForAMoment(t *testing.T) {
	on(t, func(t *testing.T, b lockBucket) {
		for _, code := range []string{"SlowDown", "ConditionalRequestConflict"} {
			l := b.lock(t)
			wantHeld(t, l, true)
			wantHeld(t, l, true)
			bare := l.bare
			refuses := &refusing{Client: b.client, code: code}
			l.client = func() Client { return refuses }
			wantHeld(t, l, true)
			if l.bare != bare {
				t.Errorf("%s: the server compares ETags without their quotes: %v", code, l.bare)
			}
			l.client = func() Client { return b.client }
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A refusing client refuses the first write.
type refusing struct {
	Client
	code string
	done bool
}

func (r *refusing) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	if !r.done {
		r.done = true
		return nil, &smithy.GenericAPIError{Code: r.code}
	}
	return r.Client.PutObject(ctx, in, opts...)
}

// Without any answer a server does not know whether it has the lock. Later it finds what it has written.
func TestNoAnswers(t *testing.T) {
	b, lose, _ := lossy(t)
	first, second := b.lock(t), b.lock(t)
	for _, held := range []bool{false, true} {
		puts, gets := lose("PutObject", 0, 0), lose("GetObject", 1, 0) // it looks before it writes
		if got, err := first.Hold(t.Context()); err == nil || got || first.Held() != held {
			t.Errorf("without any answer: %v, %v, and the lock is held: %v", got, err, first.Held())
		}
		puts.End()
		gets.End()
		wantHeld(t, second, false)
		wantHeld(t, first, true)
	}
	puts, gets := lose("PutObject", 0, 0), lose("GetObject", 1, 0)
	if err := first.Release(t.Context()); err == nil || first.Held() {
		t.Errorf("a release without any answer: %v", err)
	}
	puts.End()
	gets.End()
	wantHeld(t, second, true) // the release has reached S3
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wantHeld(t, second, true)
}

// A release whose answer is lost, and which another server has followed by then, does not touch the lock of that
// server.
func TestReleaseIsNotRepeated(t *testing.T) {
	on(t, func(t *testing.T, b lockBucket) {
		first, next := b.lock(t), b.lock(t)
		wantHeld(t, first, true)
		first.client = func() Client { return overtaken{b.client, func() { wantHeld(t, next, true) }} }
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		now, err := next.read(t.Context())
		if err != nil || !next.has(now) {
			t.Errorf("the lock of the next server is %q, %v", now.text, err)
		}
		wantHeld(t, next, true)
	})
}

// S3 answers 200 without an ETag and stores nothing, because another server came later and was faster. The other one
// has the lock.
func TestNotStored(t *testing.T) {
	server := s3test.Start(t, "sim-aws")
	b := lockBucket{server.Client(s3client.RepeatUnstored("")), server.Bucket(t)}
	other := b.lock(t)
	l := b.lock(t)
	l.client = func() Client { return notStored{b.client, func() { wantHeld(t, other, true) }} }
	if held, err := l.Hold(t.Context()); held || l.Held() {
		t.Errorf("Hold returns %v, %v", held, err)
	}
	wantHeld(t, other, true)
}

// notStored is an S3 server that performs another request in place of each write.
type notStored struct {
	Client
	other func()
}

func (s notStored) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	s.other()
	return &s3.PutObjectOutput{}, nil
}

// An overtaken client gets no answer to a write before another server does something.
type overtaken struct {
	Client
	do func()
}

func (o overtaken) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	out, err := o.Client.PutObject(ctx, in, opts...)
	if err != nil {
		return out, err
	}
	o.do()
	return nil, errors.New("the answer is lost")
}

// A server that cannot read the lock does not have it.
func TestErrors(t *testing.T) {
	server := s3test.Start(t, "sim-aws")
	b := lockBucket{server.Client(s3client.RepeatUnstored("")), "no-such-bucket"}
	for name, do := range map[string]func() error{
		"hold":    func() error { _, err := b.lock(t).Hold(t.Context()); return err },
		"release": func() error { return b.lock(t).Release(t.Context()) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "s3://no-such-bucket/locks/name") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// torn is an S3 server whose answers may have parts of two versions. The next is made by tear of the one before and
// the one that is there.
type torn struct {
	Client
	tear   func(before, now version) version // nil: as it is
	before version
}

func (s *torn) GetObject(
	ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	out, err := s.Client.GetObject(ctx, in, opts...)
	if err != nil || s.tear == nil {
		return out, err
	}
	text, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, err
	}
	answer := s.tear(s.before, version{string(text), *out.ETag})
	s.tear = nil
	out.Body, out.ETag = io.NopCloser(strings.NewReader(answer.text)), &answer.etag
	return out, nil
}

// A lock that another server takes while it is read stays with that server, whatever parts the answer has. The text
// of the released lock with the ETag of the one that was taken would let another server replace that one.
func TestHoldOnATornAnswer(t *testing.T) {
	for name, tear := range map[string]func(before, now version) version{
		"old-text": func(before, now version) version { return version{before.text, now.etag} },
		"old-etag": func(before, now version) version { return version{now.text, before.etag} },
		"cut-text": func(before, now version) version { return version{now.text[:len(before.text)], now.etag} },
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			b := lockBucket{s.Client(), s.Bucket(t)}
			first := b.lock(t)
			wantHeld(t, first, true)
			must.OK(t, first.Release(t.Context()))
			released, err := first.read(t.Context())
			must.OK(t, err)
			wantHeld(t, first, true)
			b.client = &torn{Client: b.client, tear: tear, before: released}
			wantHeld(t, b.lock(t), false)
			wantHeld(t, first, true)
		})
	}
}

// Where an ETag is not the MD5, as with KMS, the second equal answer counts.
func TestHoldWithOtherETags(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	b := lockBucket{otherETags{s.Client()}, s.Bucket(t)}
	first, second := b.lock(t), b.lock(t)
	wantHeld(t, first, true)
	wantHeld(t, second, false)
	wantHeld(t, first, true)
	must.OK(t, first.Release(t.Context()))
	wantHeld(t, second, true)
}

// otherETags is an S3 server whose ETags are not the MD5.
type otherETags struct{ Client }

func (s otherETags) GetObject(
	ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	out, err := s.Client.GetObject(ctx, in, opts...)
	if err == nil {
		out.ETag = aws.String(`"other-` + strings.Trim(*out.ETag, `"`) + `"`)
	}
	return out, err
}

func (s otherETags) PutObject(
	ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	known := *in
	if in.IfMatch != nil {
		known.IfMatch = aws.String(strings.Replace(*in.IfMatch, "other-", "", 1))
	}
	return s.Client.PutObject(ctx, &known, opts...)
}
