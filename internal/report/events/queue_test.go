package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

const secret = "0123456789abcdef"

// waitTimeout limits the wait for something that must happen, such as a hundred events with as many requests to S3 on
// a busy machine.
const waitTimeout = 5 * time.Minute

// A receiver checks signatures and keeps events.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	down bool
	got  map[string][]Event // by path
	new  chan struct{}
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: map[string][]Event{}, new: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := io.ReadAll(request.Body)
		if want := web.Sign([]byte(secret), request.Header.Get("Babelftp-Timestamp"), body); err != nil ||
			request.Header.Get("Babelftp-Signature") != want {
			t.Errorf("signature %q, %v; want %q", request.Header.Get("Babelftp-Signature"), err, want)
		}
		if r.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var batch []Event
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		for _, e := range batch {
			r.got[e.Path] = append(r.got[e.Path], e)
			r.new <- struct{}{}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// wait waits for n events.
func (r *receiver) wait(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-r.new:
		case <-time.After(waitTimeout):
			t.Fatal("an event did not arrive")
		}
	}
}

// A bucket is a new bucket.
type bucket struct {
	client *s3.Client
	name   string
}

func newBucket(t *testing.T) bucket { return newBucketOf(t, "sim-aws") }

func newBucketOf(t *testing.T, server string) bucket {
	s := s3test.Start(t, server)
	return bucket{s.Client(s3client.RetryUnstored("")), s.Bucket(t)}
}

// queue returns the queue of one server.
func (b bucket) queue(t *testing.T, r *receiver) *Queue {
	t.Helper()
	hook := web.NewWebhook(r.URL, secret, nil, time.Minute)
	return NewQueue(Options{
		Bucket: b.name, Prefix: "inbox/", Tenant: "acme", SweepInterval: 10 * time.Millisecond,
		UnconfirmedAfter: 10 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, &Settings{Client: b.client, Webhook: hook})
}

// run runs a queue until the returned function is called.
func run(t *testing.T, q *Queue) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { q.Run(ctx) })
	stop = func() { cancel(); done.Wait() }
	t.Cleanup(stop)
	return stop
}

// events returns the keys of the waiting events.
func (b bucket) events(t *testing.T) (keys []string) {
	t.Helper()
	out, err := b.client.ListObjectsV2(
		t.Context(), &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: new("inbox/.babelftp/events/acme/queue/")})
	must.OK(t, err)
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	return keys
}

// waitUntil polls until the condition is true.
func waitUntil(t *testing.T, yes func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(waitTimeout)
	for !yes() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("the event did not arrive")
		}
	}
}

func change(t *testing.T, q *Queue, path string, outcome error) {
	t.Helper()
	e, err := q.begin(t.Context(), Event{Type: view.Upload, Path: path})
	must.OK(t, err)
	if err := q.end(t.Context(), e, outcome); !errors.Is(err, outcome) {
		t.Fatal(err)
	}
}

// A successful change gives one confirmed event, and leaves nothing in the bucket. A failed change gives no event. A
// change without a response from S3 gives an unconfirmed event.
func TestEventsOfChanges(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	q := b.queue(t, r)
	change(t, q, "failed", fs.ErrPermission)
	if keys := b.events(t); len(keys) != 0 {
		t.Errorf("unexpected objects after a failed change: %q", keys)
	}
	change(t, q, "done", nil)
	change(t, q, "replaced", syscall.ESTALE)
	change(t, q, "unknown", syscall.EAGAIN)
	change(t, q, "doubtful", s3error.Doubtful(syscall.ESTALE))
	renamed, err := q.begin(t.Context(), Event{Type: view.Rename, Path: "copied", steps: true})
	must.OK(t, err)
	if err := q.end(t.Context(), renamed, fs.ErrPermission); !errors.Is(err, fs.ErrPermission) {
		t.Fatal(err)
	}
	stop := run(t, q)
	r.wait(t, 4)
	waitUntil(t, func() bool { return len(b.events(t)) == 0 })
	stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.got["done"]; len(got) != 1 || !got[0].Confirmed || got[0].Tenant != "acme" {
		t.Errorf("complete change: got %+v, want one confirmed event", got)
	}
	for _, path := range []string{"unknown", "doubtful"} {
		if got := r.got[path]; len(got) != 1 || got[0].Confirmed {
			t.Errorf("%s: got %+v, want one unconfirmed event", path, got)
		}
	}
	if got := r.got["copied"]; len(got) != 1 || got[0].Confirmed {
		t.Errorf("interrupted rename: got %+v, want one unconfirmed event", got)
	}
	if len(r.got) != 4 {
		t.Errorf("the receiver got %d paths, want 4", len(r.got))
	}
}

// While the receiver is down, events are stored in the bucket as confirmed. After the first server has stopped,
// another one sends them in order.
func TestReceiverDown(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	r.setDown(true)
	q := b.queue(t, r)
	stop := run(t, q)
	const count = 150
	for i := range count {
		change(t, q, fmt.Sprint(i), nil)
	}
	stop()
	if keys := b.events(t); len(keys) != count {
		t.Fatalf("got %d waiting events, want %d", len(keys), count)
	}
	r.setDown(false)
	run(t, b.queue(t, r))
	r.wait(t, count)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range count {
		if got := r.got[fmt.Sprint(i)]; len(got) == 0 || !got[0].Confirmed {
			t.Errorf("event %d: got %+v, want a confirmed one", i, got)
		}
	}
}

// If a server dies between the event and the outcome, another server sends the event as unconfirmed. Of two servers
// that sweep, one holds the lease.
func TestServerDies(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	if _, err := b.queue(t, r).begin(t.Context(), Event{Type: view.Upload, Path: "lost"}); err != nil {
		t.Fatal(err)
	}
	run(t, b.queue(t, r))
	run(t, b.queue(t, r))
	r.wait(t, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.got["lost"]; got[0].Confirmed || got[0].ID == "" {
		t.Errorf("got %+v, want an unconfirmed event", got)
	}
}

// If the response to a write of the lease is lost, the server still holds the lease.
func TestLeaseWithoutResponse(t *testing.T) {
	server := s3test.Start(t, "minio")
	proxy := s3test.StartProxy(t, server)
	b, r := bucket{proxy.Server().Client(s3client.RetryUnstored("")), server.Bucket(t)}, newReceiver(t)
	q := b.queue(t, r)
	e, err := q.begin(t.Context(), Event{Type: view.Upload, Path: "file"})
	must.OK(t, err)
	must.OK(t, q.postpone(t.Context(), e))
	injected := proxy.Inject(
		s3test.Fault{Operation: "PutObject", KeyPrefix: q.folder() + "lease", Times: 1, Effect: s3test.LoseResponse()})
	if err := q.sweep(t.Context()); err != nil || injected.Applied() != 1 {
		t.Errorf("after %d lost responses: unexpected error of the sweep: %v", injected.Applied(), err)
	}
	r.wait(t, 1)
}

// If S3 has no conditional requests, two servers that start at the same time may both sweep. The receiver then gets
// each event once or twice.
func TestLeaseWithoutConditions(t *testing.T) {
	b, r := newBucketOf(t, "sim-strict"), newReceiver(t)
	q := b.queue(t, r)
	for i := range 5 {
		e, err := q.begin(t.Context(), Event{Type: view.Upload, Path: fmt.Sprint(i)})
		must.OK(t, err)
		must.OK(t, q.postpone(t.Context(), e))
	}
	run(t, b.queue(t, r))
	run(t, b.queue(t, r))
	r.wait(t, 5)
	waitUntil(t, func() bool { return len(b.events(t)) == 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range 5 {
		if got := r.got[fmt.Sprint(i)]; len(got) < 1 || len(got) > 2 || !got[0].Confirmed {
			t.Errorf("event %d: got %+v, want one or two, confirmed", i, got)
		}
	}
}

// Without S3 no event can be stored, and the change must not be made.
func TestNoEventWithoutS3(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	q := b.queue(t, r)
	q.Bucket = strings.Repeat("missing", 2)
	if _, err := q.begin(t.Context(), Event{Type: view.Delete, Path: "x"}); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("got error %v, want an EAGAIN", err)
	}
}

// A change that takes longer than unconfirmedAfter is sent as unconfirmed before it has happened. Its reply waits
// until the confirmed event is in the bucket. If the first server dies, another one sends the confirmed event.
func TestSlowChange(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	slow := b.queue(t, r)
	e, err := slow.begin(t.Context(), Event{Type: view.Rename, Path: "slow"})
	must.OK(t, err)
	stop := run(t, b.queue(t, r))
	r.wait(t, 1)
	waitUntil(t, func() bool { return len(b.events(t)) == 0 })
	stop()
	must.OK(t, slow.end(t.Context(), e, nil))
	run(t, b.queue(t, r))
	r.wait(t, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.got["slow"]; got[0].Confirmed || !got[1].Confirmed || got[0].ID != got[1].ID {
		t.Errorf("got %+v, want an unconfirmed event and then the same as confirmed", got)
	}
}

// If a server sends an unconfirmed event and deletes it after another server confirmed it, the confirmed event stays.
func TestConfirmedWhileSent(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	slow, other := b.queue(t, r), b.queue(t, r)
	e, err := slow.begin(t.Context(), Event{Type: view.Rename, Path: "slow"})
	must.OK(t, err)
	read, err := other.get(t.Context(), b.events(t)[0])
	must.OK(t, err)
	must.OK(t, slow.postpone(t.Context(), e))
	must.OK(t, other.send(t.Context(), []Event{read}))
	run(t, b.queue(t, r))
	r.wait(t, 2)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.got["slow"]; got[0].Confirmed || !got[1].Confirmed {
		t.Errorf("got %+v, want an unconfirmed event and a confirmed one", got)
	}
}

// If the confirmed event of a slow change cannot be stored, the change is not acknowledged.
func TestSlowChangeWithoutS3(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	q := b.queue(t, r)
	e, err := q.begin(t.Context(), Event{Type: view.Rename, Path: "slow"})
	must.OK(t, err)
	e.Time = e.Time.Add(time.Hour) // setting the clock back has no effect
	e.begun = e.begun.Add(-q.UnconfirmedAfter)
	q.Bucket = strings.Repeat("missing", 2)
	if err := q.end(t.Context(), e, nil); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("got error %v, want an EAGAIN", err)
	}
}

// An object that is not an event does not block other events.
func TestForeignObject(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	foreign := "inbox/.babelftp/events/acme/queue/0.confirmed"
	if _, err := b.client.PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &foreign, Body: strings.NewReader("{}")}); err != nil {
		t.Fatal(err)
	}
	change(t, b.queue(t, r), "unknown", syscall.EAGAIN)
	run(t, b.queue(t, r))
	r.wait(t, 1)
}

// TestEventOfAnotherVersion sends an event of an unknown type unchanged.
func TestEventOfAnotherVersion(t *testing.T) {
	r, b := newReceiver(t), newBucket(t)
	const key = "inbox/.babelftp/events/acme/queue/00000000-0"
	_, err := b.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: new(key + confirmedSuffix),
		Body: strings.NewReader(`{"id": "00000000-0", "type": "thaw", "path": "/a", "depth": 3, "confirmed": true}`)})
	must.OK(t, err)
	run(t, b.queue(t, r))
	r.wait(t, 1)
	if got := r.got["/a"]; len(got) != 1 || got[0].Type != "thaw" || !got[0].Confirmed {
		t.Errorf("got %+v", got)
	}
	waitUntil(t, func() bool { return len(b.events(t)) == 0 })
}

// A retired queue sends the events of the logins that use it, and then ends.
func TestRetiredQueue(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	q := b.queue(t, r)
	ended := make(chan struct{})
	go func() {
		q.Run(t.Context())
		close(ended)
	}()
	first, second := q.Use(), q.Use()
	first()
	q.Retire()
	change(t, q, "/late", nil)
	r.wait(t, 1)
	select {
	case <-ended:
		t.Fatal("the queue ended while in use")
	default:
	}
	second()
	<-ended
	unused := b.queue(t, r)
	unused.Retire()
	unused.Run(t.Context())

	// A client stores a file and disconnects at once.
	hasty := b.queue(t, r)
	// Otherwise a slow machine leaves the event to the holder of the lease, which is the first queue.
	hasty.UnconfirmedAfter = time.Minute
	done := hasty.Use()
	hasty.Retire()
	change(t, hasty, "/hasty", nil)
	done()
	hasty.Run(t.Context())
	r.wait(t, 1)
	if left := b.events(t); len(left) > 0 {
		t.Errorf("unexpected objects left by the queue: %q", left)
	}
}

// A retired queue tries once more to send refused events, and then leaves them in the bucket.
func TestRetiredQueueWithoutReceiver(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	r.setDown(true)
	q := b.queue(t, r)
	done := q.Use()
	q.Retire()
	change(t, q, "/refused", nil)
	done()
	q.Run(t.Context())
	if left := b.events(t); len(left) != 1 {
		t.Fatalf("unexpected keys %q", left)
	}
	r.setDown(false)
	next := b.queue(t, r)
	next.Retire()
	next.Run(t.Context())
	r.wait(t, 1)
}

// A webhook is removed and added again during a session. The new queue acquires the lease before the old one stores
// its event in the bucket, and neither of them sweeps soon. The event is still sent at once.
func TestQueueReplacesAnother(t *testing.T) {
	b, r := newBucket(t), newReceiver(t)
	asked := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body) // wait until the client closes the connection
		close(asked)
		<-request.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	slow := &slowClient{Client: b.client, began: make(chan struct{}), goOn: make(chan struct{})}
	old, next := b.queue(t, r), b.queue(t, r)
	for _, q := range []*Queue{old, next} {
		q.SweepInterval, q.UnconfirmedAfter = time.Hour, time.Hour
	}
	old.current.Client, old.current.Webhook = slow, web.NewWebhook(hanging.URL, secret, nil, time.Hour)
	defer old.Use()()

	var sender Sender
	sender.Replace(map[string]*Queue{"acme": old})
	sender.Start(t.Context())
	t.Cleanup(sender.End)
	change(t, old, "/waits", nil)
	<-asked
	sender.Replace(nil)
	sender.Replace(map[string]*Queue{"acme": next})
	<-slow.began
	waitUntil(t, func() bool {
		out, err := b.client.ListObjectsV2(
			t.Context(), &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: new(next.folder() + "lease")})
		return err == nil && len(out.Contents) == 1
	})
	close(slow.goOn)
	r.wait(t, 1)
}

// A slowClient delays storing a confirmed event until the test lets it continue.
type slowClient struct {
	Client
	began, goOn chan struct{}
}

func (c *slowClient) PutObject(
	ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	if strings.HasSuffix(*in.Key, confirmedSuffix) {
		close(c.began)
		<-c.goOn
	}
	return c.Client.PutObject(ctx, in, options...)
}

// A queue that gets another receiver closes its connections to the old one.
func TestConnectionsToFormerReceiver(t *testing.T) {
	closed := make(chan struct{})
	former := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	former.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(closed)
		}
	}
	former.Start()
	defer former.Close()
	hook := web.NewWebhook(former.URL, secret, nil, time.Minute)
	q := NewQueue(Options{Log: slog.New(slog.DiscardHandler)}, &Settings{Webhook: hook})
	must.OK(t, hook.Post(t.Context(), []byte("[]")))
	q.Configure(&Settings{Webhook: web.NewWebhook("http://127.0.0.1:1", secret, nil, time.Minute)})
	<-closed
}
