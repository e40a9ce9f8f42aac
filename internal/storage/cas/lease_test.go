package cas

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

func TestMain(m *testing.M) { s3test.Main(m) }

// never is an expiry that no test reaches.
const never = time.Hour

// A leaseBucket is a bucket with the lease of several servers.
type leaseBucket struct {
	client Client
	name   string
}

// lease returns the view of another server on the lease.
func (b leaseBucket) lease(t *testing.T) *Lease {
	bucket := &Bucket{Client: func() Client { return b.client }, Name: b.name, MaxSize: 1 << 10, Unconditional: true}
	return NewLease(bucket, "leases/name", never, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func startLeaseBucket(t *testing.T, name string) leaseBucket {
	s := s3test.Start(t, name)
	return leaseBucket{s.Client(s3client.RetryUnstored("")), s.Bucket(t)}
}

// on runs a test with S3 servers that support conditions, that compare bare ETags, that reject conditions (501), and
// that ignore them.
func on(t *testing.T, test func(*testing.T, leaseBucket)) {
	for _, name := range []string{"sim-aws", "minio", "sim-strict"} {
		t.Run(name, func(t *testing.T) { test(t, startLeaseBucket(t, name)) })
	}
	t.Run("bare-etags", func(t *testing.T) {
		b := startLeaseBucket(t, "sim-aws")
		b.client = bareETags{b.client}
		test(t, b)
	})
	t.Run("ignores-conditions", func(t *testing.T) {
		b := startLeaseBucket(t, "sim-aws")
		b.client = unconditional{b.client}
		test(t, b)
	})
}

// bareETags is an S3 server that compares ETags without their quotes, like Ceph.
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

// wantHeld acquires or renews a lease, and checks whether that succeeds as expected.
func wantHeld(t *testing.T, l *Lease, want bool) {
	t.Helper()
	if held, err := l.Hold(t.Context()); err != nil || held != want || l.Held() != want {
		t.Errorf("Hold() = %v, %v; Held() = %v; want %v", held, err, l.Held(), want)
	}
}

// One server holds the lease until it releases the lease or is presumed dead.
func TestHold(t *testing.T) {
	on(t, func(t *testing.T, b leaseBucket) {
		first, second := b.lease(t), b.lease(t)
		wantHeld(t, first, true)
		wantHeld(t, second, false)
		wantHeld(t, first, true)
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantHeld(t, second, false)
		if err := first.Release(t.Context()); err != nil || first.Held() {
			t.Errorf("released lease: Held() = %v, %v", first.Held(), err)
		}
		wantHeld(t, second, true)
		wantHeld(t, first, false)
		first.Expiry = 0
		wantHeld(t, first, true)
		wantHeld(t, second, false)
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wantHeld(t, first, true)
	})
}

// If two servers find no lease at the same time, one of them acquires it.
func TestHoldAtTheSameTime(t *testing.T) {
	for _, name := range []string{"sim-aws", "minio"} {
		t.Run(name, func(t *testing.T) {
			b := startLeaseBucket(t, name)
			looks := &barrier{Client: b.client, looked: make(chan struct{})}
			looks.looking.Store(2)
			b.client = looks
			var got atomic.Int32
			var wait sync.WaitGroup
			for range 2 {
				l := b.lease(t)
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
				t.Errorf("got %d servers that hold the lease", got.Load())
			}
		})
	}
}

// A barrier delays the writes of two servers until both have read the lease.
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

// lossy returns a bucket that loses responses when a test wants it.
func lossy(
	t *testing.T,
) (b leaseBucket, lose func(operation string, after, times int) *s3test.Injection, proxy *s3test.Proxy) {
	t.Helper()
	server := s3test.Start(t, "minio")
	proxy = s3test.StartProxy(t, server)
	lose = func(operation string, after, times int) *s3test.Injection {
		return proxy.Inject(
			s3test.Fault{Operation: operation, After: after, Times: times, Effect: s3test.LoseResponse()})
	}
	return leaseBucket{proxy.Server().Client(s3client.RetryUnstored("")), server.Bucket(t)}, lose, proxy
}

// If the response to a write is lost, the server that wrote the lease holds it. It does not repeat the write, because
// another server may have acquired the lease since then.
func TestLostResponses(t *testing.T) {
	b, lose, proxy := lossy(t)
	once := func(what string, do func()) {
		t.Helper()
		before := proxy.Counts()["PutObject"]
		injected := lose("PutObject", 0, 1)
		do()
		if n := proxy.Counts()["PutObject"] - before; n != 1 || injected.Applied() != 1 {
			t.Errorf("%s: the lease was written %d times", what, n)
		}
		injected.End()
	}
	for _, client := range []Client{b.client, unconditional{b.client}} {
		b.client = client
		first, second := b.lease(t), b.lease(t)
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

// If S3 temporarily refuses a write, the server repeats it.
func TestTemporaryRefusal(t *testing.T) {
	on(t, func(t *testing.T, b leaseBucket) {
		for _, code := range []string{"SlowDown", "ConditionalRequestConflict"} {
			l := b.lease(t)
			wantHeld(t, l, true)
			wantHeld(t, l, true)
			refuses := &refusing{Client: b.client, code: code}
			l.bucket.Client = func() Client { return refuses }
			wantHeld(t, l, true)
			l.bucket.Client = func() Client { return b.client }
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

// Without any response, a server does not know whether it holds the lease. Later it finds what it wrote.
func TestNoResponses(t *testing.T) {
	b, lose, _ := lossy(t)
	first, second := b.lease(t), b.lease(t)
	for _, held := range []bool{false, true} {
		puts, gets := lose("PutObject", 0, 0), lose("GetObject", 1, 0) // the first read succeeds
		if got, err := first.Hold(t.Context()); err == nil || got || first.Held() != held {
			t.Errorf("without a response: got %v, %v; Held() = %v", got, err, first.Held())
		}
		puts.End()
		gets.End()
		wantHeld(t, second, false)
		wantHeld(t, first, true)
	}
	puts, gets := lose("PutObject", 0, 0), lose("GetObject", 1, 0)
	if err := first.Release(t.Context()); err == nil || first.Held() {
		t.Errorf("release without a response: %v", err)
	}
	puts.End()
	gets.End()
	wantHeld(t, second, true) // the release has reached S3
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wantHeld(t, second, true)
}

// If the response to a release is lost and another server acquires the lease, the release does not affect that server.
func TestReleaseIsNotRepeated(t *testing.T) {
	on(t, func(t *testing.T, b leaseBucket) {
		first, next := b.lease(t), b.lease(t)
		wantHeld(t, first, true)
		first.bucket.Client = func() Client { return overtaken{b.client, func() { wantHeld(t, next, true) }} }
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		now, err := next.read(t.Context())
		if err != nil || !next.isOwn(now) {
			t.Errorf("lease of the next server: got %q, %v", now.Data, err)
		}
		wantHeld(t, next, true)
	})
}

// If S3 responds with 200 without an ETag, it stored nothing, because a later request of another server was faster.
// The other server holds the lease.
func TestNotStored(t *testing.T) {
	server := s3test.Start(t, "sim-aws")
	b := leaseBucket{server.Client(s3client.RetryUnstored("")), server.Bucket(t)}
	other := b.lease(t)
	l := b.lease(t)
	l.bucket.Client = func() Client { return notStored{b.client, func() { wantHeld(t, other, true) }} }
	if held, err := l.Hold(t.Context()); held || l.Held() {
		t.Errorf("Hold() = %v, %v", held, err)
	}
	wantHeld(t, other, true)
}

// notStored is an S3 server that performs another request instead of each write.
type notStored struct {
	Client
	other func()
}

func (s notStored) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	s.other()
	return &s3.PutObjectOutput{}, nil
}

// An overtaken client gets the response to a write only after another server did something.
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

// A server that cannot read the lease does not hold it.
func TestErrors(t *testing.T) {
	server := s3test.Start(t, "sim-aws")
	b := leaseBucket{server.Client(s3client.RetryUnstored("")), "no-such-bucket"}
	for name, do := range map[string]func() error{
		"hold":    func() error { _, err := b.lease(t).Hold(t.Context()); return err },
		"release": func() error { return b.lease(t).Release(t.Context()) },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "s3://no-such-bucket/leases/name") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// torn is an S3 server whose responses may combine two versions. tear combines the previous and the current version.
type torn struct {
	Client
	tear   func(before, now Version) Version // nil to return the current version
	before Version
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
	answer := s.tear(s.before, Version{Data: string(text), ETag: *out.ETag})
	s.tear = nil
	out.Body, out.ETag = io.NopCloser(strings.NewReader(answer.Data)), &answer.ETag
	return out, nil
}

// If another server acquires the lease while it is being read, that server keeps it, whatever the response contains.
// If the text of the released lease were accepted with the ETag of the new version, a server could overwrite the new
// holder.
func TestHoldOnATornResponse(t *testing.T) {
	for name, tear := range map[string]func(before, now Version) Version{
		"old-text": func(before, now Version) Version { return Version{Data: before.Data, ETag: now.ETag} },
		"old-etag": func(before, now Version) Version { return Version{Data: now.Data, ETag: before.ETag} },
		"cut-text": func(before, now Version) Version {
			return Version{Data: now.Data[:len(before.Data)], ETag: now.ETag}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			b := leaseBucket{s.Client(), s.Bucket(t)}
			first := b.lease(t)
			wantHeld(t, first, true)
			must.OK(t, first.Release(t.Context()))
			released, err := first.read(t.Context())
			must.OK(t, err)
			wantHeld(t, first, true)
			b.client = &torn{Client: b.client, tear: tear, before: released}
			wantHeld(t, b.lease(t), false)
			wantHeld(t, first, true)
		})
	}
}

// If ETags are not the MD5, as with KMS, a version is accepted after two equal responses.
func TestHoldWithOtherETags(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	b := leaseBucket{otherETags{s.Client()}, s.Bucket(t)}
	first, second := b.lease(t), b.lease(t)
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
