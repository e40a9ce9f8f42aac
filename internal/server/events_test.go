package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

const webhookSecret = "0123456789abcdef"

// newWebhook returns a webhook whose receiver checks the signature and forwards the events.
func newWebhook(t *testing.T) (config.Webhook, <-chan events.Event) {
	t.Helper()
	received := make(chan events.Event, 100)
	return newWebhookOf(t, func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		want := web.Sign([]byte(webhookSecret), request.Header.Get(web.TimestampHeader), body)
		if got := request.Header.Get(web.SignatureHeader); err != nil || got != want {
			t.Errorf("signature %q, %v; want %q", got, err, want)
		}
		var batch []events.Event
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		for _, e := range batch {
			received <- e
		}
	}), received
}

func newWebhookOf(t *testing.T, handler http.HandlerFunc) config.Webhook {
	t.Helper()
	receiver := httptest.NewServer(handler)
	t.Cleanup(receiver.Close)
	return config.Webhook{Receiver: config.Receiver{URL: receiver.URL,
		Secret: value.NewSecret(webhookSecret)}}
}

// next returns the next event.
func next(t *testing.T, received <-chan events.Event) events.Event {
	t.Helper()
	select {
	case e := <-received:
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event arrived")
		return events.Event{}
	}
}

// The receiver gets a signed event for each upload, deletion, rename and copy that the client got a reply for. If it
// ignores an upload because of the name, it gets the upload when the file is renamed. The queue is invisible to
// clients and does not count toward quotas.
func TestWebhook(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		hook, received := newWebhook(t)
		hook.Skip = []string{"*.part"}
		cfg.Tenants["acme"].Webhook = hook
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", servicetest.Password)
		c.Store("a.part", "abc")
		c.Command(350, "RNFR a.part")
		c.Command(250, "RNTO a")
		c.Command(550, "DELE none")
		c.Command(350, "RNFR a")
		c.Command(250, "RNTO b")
		c.Command(200, "SITE COPY b c")
		c.Command(250, "DELE b")
		want := []string{"upload /alice/a ", "rename /alice/a /alice/b", "copy /alice/b /alice/c", "delete /alice/b "}
		var got []string
		for range want {
			e := next(t, received)
			got = append(got, string(e.Type)+" "+e.Path+" "+e.ToPath)
			if !e.Confirmed || e.Tenant != "acme" || e.User != "alice" ||
				e.URI != "s3://"+cfg.Tenants["acme"].Bucket+"/inbox"+e.Path {
				t.Errorf("got %+v", e)
			}
			if e.Type == view.Upload && (e.Size == nil || *e.Size != 3 || e.ETag == "") {
				t.Errorf("got %+v, want a size of 3 and an ETag", e)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if list := c.Transfer("NLST /"); list != "/alice\r\n" && list != "alice\r\n" {
			t.Errorf("NLST: got %q", list)
		}
	})
}

// If a receiver hangs and a reload configures another one, the new one gets the waiting events, and the events of
// sessions from before the reload. This also works if the reload moves the tenant, or if the webhook was removed and
// is configured again.
func TestReloadOfWebhook(t *testing.T) {
	s := s3test.Start(t, "minio")
	for name, reloads := range map[string][]func(*config.Tenant, config.Webhook){
		"receiver": {func(acme *config.Tenant, hook config.Webhook) { acme.Webhook = hook }},
		"prefix":   {func(acme *config.Tenant, hook config.Webhook) { acme.Webhook, acme.Prefix = hook, "moved/" }},
		"bucket": {func(acme *config.Tenant, hook config.Webhook) {
			acme.Webhook, acme.Bucket = hook, s.Bucket(t)
		}},
		"again": {
			func(acme *config.Tenant, _ config.Webhook) { acme.Webhook = config.Webhook{} },
			func(acme *config.Tenant, hook config.Webhook) { acme.Webhook = hook },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 10)
			cfg := servicetest.NewConfig(t, s)
			cfg.Tenants["acme"].Webhook = newWebhookOf(t, func(_ http.ResponseWriter, request *http.Request) {
				// Wait until the client closes the connection.
				_, _ = io.Copy(io.Discard, request.Body)
				asked <- struct{}{}
				<-request.Context().Done()
			})
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			before := session(t, srv, "alice")
			before.Store("waits", "x")
			<-asked
			hook, received := newWebhook(t)
			for _, change := range reloads {
				cfg = changed(t, cfg, func(next *config.Config) { change(next.Tenants["acme"], hook) }, "acme")
				reload(t, srv, cfg)
			}
			before.Store("before", "x")
			session(t, srv, "alice").Store("after", "x")
			got := map[string]bool{}
			for len(got) < 3 {
				e := next(t, received)
				got[e.Path] = true
				if !e.Confirmed {
					t.Errorf("event is not confirmed: %+v", e)
				}
			}
			if !got["/alice/waits"] || !got["/alice/before"] || !got["/alice/after"] {
				t.Errorf("the receiver got events for %v", got)
			}
		})
	}
}
