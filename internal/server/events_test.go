package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config/destination"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/events"
	"github.com/babelftp/babelftp/internal/ftptest"
	"github.com/babelftp/babelftp/internal/s3test"
	"github.com/babelftp/babelftp/internal/webhook"
)

// The receiver gets each upload, deletion, rename and copy of which the client has a reply, with its signature. No client and no quota sees the queue.
func TestWebhook(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		const secret = "0123456789abcdef"
		received := make(chan events.Event, 100)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			body, err := io.ReadAll(request.Body)
			if want := webhook.Sign([]byte(secret), request.Header.Get("Babelftp-Timestamp"), body); err != nil || request.Header.Get("Babelftp-Signature") != want {
				t.Errorf("signature %q, %v; want %q", request.Header.Get("Babelftp-Signature"), err, want)
			}
			var batch []events.Event
			if err := json.Unmarshal(body, &batch); err != nil {
				t.Errorf("%s: %v", body, err)
			}
			for _, e := range batch {
				received <- e
			}
		}))
		t.Cleanup(receiver.Close)
		cfg := configtest.New(t, s)
		cfg.Tenants["acme"].Webhook = destination.Webhook{Receiver: destination.Receiver{URL: receiver.URL, Secret: value.NewSecret(secret)}}
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", configtest.Password)
		c.Store("a", "abc")
		c.Command(550, "DELE none")
		c.Command(350, "RNFR a")
		c.Command(250, "RNTO b")
		c.Command(200, "SITE COPY b c")
		c.Command(250, "DELE b")
		want := []string{"upload /alice/a ", "rename /alice/a /alice/b", "copy /alice/b /alice/c", "delete /alice/b "}
		var got []string
		for range want {
			select {
			case e := <-received:
				got = append(got, string(e.Type)+" "+e.Path+" "+e.ToPath)
				if !e.Confirmed || e.Tenant != "acme" || e.User != "alice" || e.URI != "s3://"+cfg.Tenants["acme"].Bucket+"/inbox"+e.Path {
					t.Errorf("%+v", e)
				}
				if e.Type == events.Upload && (e.Size == nil || *e.Size != 3 || e.ETag == "") {
					t.Errorf("%+v, want a size of 3 and an ETag", e)
				}
			case <-time.After(time.Minute):
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if list := c.Transfer("NLST /"); list != "/alice\r\n" && list != "alice\r\n" {
			t.Errorf("NLST shows %q", list)
		}
	})
}

// Events that wait for a receiver which is down are in the bucket. No listing shows them, no command reaches them, and no quota counts them.
func TestWebhookEventsAreHidden(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
		t.Cleanup(receiver.Close)
		cfg := configtest.New(t, s)
		acme := cfg.Tenants["acme"]
		acme.Quota = 100
		acme.Webhook = destination.Webhook{Receiver: destination.Receiver{URL: receiver.URL, Secret: value.NewSecret("0123456789abcdef")}}
		acme.Users["alice"].Home = "/"
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		c := session(t, srv, "alice")
		c.Store("a", "abc")
		queued := func(key string) bool { return strings.HasPrefix(key, acme.Prefix+".babelftp/events/acme/queue/") }
		if keys := s3test.Objects(t, s.Client(), acme.Bucket); !slices.ContainsFunc(keys, queued) {
			t.Fatalf("no event waits: the bucket has %q", keys)
		}
		count(t, srv)
		if got := c.Command(200, "SITE QUOTA"); got != "Space used: 3 B / 100 B" {
			t.Errorf("SITE QUOTA: %q, want 3 B", got)
		}
		for _, command := range []string{"NLST", "NLST -a", "MLSD", "LIST -a"} {
			if list := c.Transfer(command); strings.Contains(list, "babelftp") {
				t.Errorf("%s shows %q", command, list)
			}
		}
		c.Command(553, "CWD .babelftp")
		c.Command(553, "SITE RMDIR .babelftp/events")
	})
}
