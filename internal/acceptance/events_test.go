package acceptance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

const webhookSecret = "0123456789abcdef"

// An eventReceiver keeps the events that it accepts with 200, and checks their signatures.
type eventReceiver struct {
	t    *testing.T
	mu   sync.Mutex
	down bool          // respond with 503
	hold chan struct{} // requests wait until it is closed and then get 503
	held chan struct{} // a request waits
	got  map[change][]events.Event
}

// A change is a change requested by a client.
type change struct {
	kind     view.Kind
	path, to string
}

func (r *eventReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the server was killed
	}
	signature := request.Header.Get("Babelftp-Signature")
	if want := web.Sign([]byte(webhookSecret), request.Header.Get("Babelftp-Timestamp"), body); signature != want {
		r.t.Errorf("signature %q, want %q", signature, want)
	}
	var batch []events.Event
	if err := json.Unmarshal(body, &batch); err != nil {
		r.t.Errorf("%s: %v", body, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if hold := r.hold; hold != nil {
		r.mu.Unlock()
		select {
		case r.held <- struct{}{}:
		default:
		}
		<-hold
		r.mu.Lock()
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	for _, e := range batch {
		c := change{e.Type, e.Path, e.ToPath}
		r.got[c] = append(r.got[c], e)
	}
}

func (r *eventReceiver) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

// holdRequests makes requests wait until release is called.
func (r *eventReceiver) holdRequests() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hold := make(chan struct{})
	r.hold, r.held = hold, make(chan struct{}, 1)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hold = nil
		close(hold)
	}
}

// events returns the events received for a change.
func (r *eventReceiver) events(c change) []events.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got[c])
}

// TestEventsOfKilledServers kills the server at random times while clients change files and the receiver gets
// events. The receiver is down for part of the time. In the end every change with a positive reply has an event,
// and an event is confirmed only if the change happened. Events that the servers left in the bucket are sent by a
// queue with shorter delays.
func TestEventsOfKilledServers(t *testing.T) {
	t.Parallel()
	const (
		clients = 3
		steps   = 6
		moments = 40 * time.Millisecond
	)
	r := &eventReceiver{t: t, got: map[change][]events.Event{}}
	receiver := httptest.NewServer(r)
	t.Cleanup(receiver.Close)
	lines := fmt.Sprintf("    webhook: {url: %q, secret: %q}", receiver.URL, webhookSecret)
	s := newSite(t, s3test.Start(t, "minio"), lines)
	small := string(content(smallSize))
	do := func(user *ftptest.Client, c change) (reply string, err error) {
		switch c.kind {
		case view.Upload:
			return user.Upload("STOR "+c.path, small)
		case view.Delete:
			return user.Send("DELE " + c.path)
		case view.Rename:
			if reply, err = user.Send("RNFR " + c.path); err == nil && reply[0] == '3' {
				reply, err = user.Send("RNTO " + c.to)
			}
		case view.Copy:
			if reply, err = user.Send("SITE CPFR " + c.path); err == nil && reply[0] == '3' {
				reply, err = user.Send("SITE CPTO " + c.to)
			}
		}
		return reply, err
	}
	var acknowledged, others []change
	for round := range 2 * steps {
		r.setDown(round >= 3 && round < 7)
		users := make([]*ftptest.Client, clients)
		for i := range users {
			users[i] = s.alice(t)
		}
		for step := range round%steps + 1 {
			last := step == round%steps
			release := func() {}
			if last && round >= steps {
				release = r.holdRequests()
			}
			asked, done := make([]change, clients), make([]bool, clients)
			var working sync.WaitGroup
			for i, f := range users {
				a, b := fmt.Sprintf("/%d-%d a é", round, i), fmt.Sprintf("/%d-%d b", round, i)
				asked[i] = [steps]change{
					{view.Upload, a, ""}, {view.Upload, b, ""}, {view.Rename, a, a + " 2"},
					{view.Delete, b, ""}, {view.Upload, b + " 2", ""},
					{view.Copy, a + " 2", a + " 3"},
				}[step]
				working.Go(func() {
					reply, err := do(f, asked[i])
					if done[i] = err == nil && reply[0] == '2'; !done[i] && !last {
						t.Errorf("%v: %q, %v", asked[i], reply, err)
					}
				})
			}
			if last {
				if round >= steps {
					select {
					case <-r.held:
					case <-time.After(waitTimeout):
						t.Error("the receiver got no request")
					}
				} else {
					<-time.After(rand.N(moments)) // the test varies this time
				}
				s.server.kill()
			}
			working.Wait()
			for i, c := range asked {
				if done[i] {
					acknowledged = append(acknowledged, c)
				} else {
					others = append(others, c)
				}
			}
			release()
		}
		for _, f := range users {
			_ = f.Close()
		}
		s.killed(t, lines)
	}
	t.Logf("%d changes have a positive reply, %d have none", len(acknowledged), len(others))
	s.sendLeftEvents(t, receiver.URL)
	waitUntil(t, func() bool { return len(s.objects(t, ".babelftp/events/acme/queue/")) == 0 },
		func() {
			t.Errorf("unexpected events left in the queue: %q", s.objects(t, ".babelftp/events/acme/queue/"))
		})
	for _, c := range acknowledged {
		got := r.events(c)
		if len(got) == 0 {
			t.Errorf("missing event for %v", c)
		}
		for _, e := range got {
			to := ""
			if e.ToPath != "" {
				to = s.uri(e.ToPath)
			}
			if e.URI != s.uri(e.Path) || e.ToURI != to || e.Tenant != acme || e.User != "alice" {
				t.Errorf("got %+v, want the objects %q and %q", e, s.uri(e.Path), to)
			}
		}
	}
	files := s.files(t)
	for _, c := range others {
		stored := c.path
		if c.to != "" {
			stored = c.to
		}
		happened := slices.Contains(files, stored[1:]) == (c.kind != view.Delete)
		for _, e := range r.events(c) {
			if e.Confirmed && !happened {
				t.Errorf("confirmed event for a change that did not happen: %+v", e)
			}
		}
	}
}

// sendLeftEvents sends the events of killed servers until the end of the test.
func (s *site) sendLeftEvents(t *testing.T, receiver string) {
	t.Helper()
	q := events.NewQueue(events.Options{
		Bucket: s.buckets[acme], Prefix: prefix, Tenant: acme,
		SweepInterval: time.Second, UnconfirmedAfter: time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, &events.Settings{
		Client: s.client, Webhook: web.NewWebhook(receiver, webhookSecret, nil, waitTimeout),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { q.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}

// uri returns the S3 URI of one of acme's files.
func (s *site) uri(name string) string {
	return "s3://" + s.buckets[acme] + (&url.URL{Path: "/" + prefix + name[1:]}).EscapedPath()
}
