package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A tenantReceiver expects the events of one tenant.
type tenantReceiver struct {
	*httptest.Server
	t      *testing.T
	tenant string

	mu   sync.Mutex
	down bool
	got  map[string]bool // types and pathnames of events
}

func newTenantReceiver(t *testing.T, tenant string) *tenantReceiver {
	r := &tenantReceiver{t: t, tenant: tenant, down: true, got: map[string]bool{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// ServeHTTP implements [http.Handler].
func (r *tenantReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var batch []events.Event
	if err := json.NewDecoder(request.Body).Decode(&batch); err != nil {
		r.t.Error(err)
	}
	for _, e := range batch {
		if e.Tenant != r.tenant {
			r.t.Errorf("the receiver of %s got %+v", r.tenant, e)
		}
		r.got[string(e.Type)+" "+e.Path] = true
	}
}

// configure returns the webhook of the tenant.
func (r *tenantReceiver) configure() config.Webhook {
	return config.Webhook{Receiver: config.Receiver{URL: r.URL, Secret: value.NewSecret("0123456789abcdef")}}
}

// await makes the receiver respond, and waits for events.
func (r *tenantReceiver) await(all ...string) {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for _, e := range all {
		for {
			r.mu.Lock()
			r.down = false
			came := r.got[e]
			r.mu.Unlock()
			if came {
				break
			}
			if time.Now().After(deadline) {
				r.t.Fatalf("the receiver of %s lacks %q", r.tenant, e)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// loginAs logs in a user of any tenant, as user@tenant.
func loginAs(t *testing.T, srv *Server, user string) *ftptest.Client {
	t.Helper()
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login(user, servicetest.Password)
	return c
}

// The prefix of one tenant is inside the prefix of another one in the same bucket. A user of the outer tenant can
// rename or remove the directory of the inner one. This moves its files, but not its waiting events or its records of
// uploads. Tenants with the same prefix only get their own events.
func TestTenantInsideAnother(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	users := map[string]*config.User{"operator": {PasswordHash: servicetest.PasswordHash(), Home: "/"}}
	cfg.Tenants["outer"] = &config.Tenant{Bucket: acme.Bucket, Hosts: []string{"outer.example"}, Users: users}
	cfg.Tenants["twin"] = &config.Tenant{Bucket: acme.Bucket, Prefix: acme.Prefix, Hosts: []string{"twin.example"},
		Users: users}
	receivers := map[string]*tenantReceiver{}
	for name, tenant := range cfg.Tenants {
		receivers[name] = newTenantReceiver(t, name)
		tenant.Webhook = receivers[name].configure()
	}
	acme.Users["alice"].Home = "/"
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), sweepEvents: time.Second})
	alice, operator, twin := loginAs(t, srv, "alice@acme"), loginAs(t, srv, "operator@outer"),
		loginAs(t, srv, "operator@twin")
	twin.Store("twin", "twin's")
	alice.Store("waits", "abc")
	content := strings.Repeat("0123456789", 700_000) // more than one part
	alice.Command(200, "TYPE I")
	data := begin(t, alice, "STOR large", content[:6_000_000])
	for !strings.Contains(
		strings.Join(s3test.Objects(t, s.Client(), acme.Bucket), " "), acme.Prefix+".babelftp/uploads-") {
		time.Sleep(time.Millisecond)
	}

	operator.Command(350, "RNFR inbox")
	operator.Command(250, "RNTO moved")
	send(t, alice, data, content[6_000_000:])
	operator.Want("abc", "RETR moved/waits")
	if got := loginAs(t, srv, "alice@acme").Transfer("RETR large"); got != content {
		t.Errorf("unexpected size %d of the running upload", len(got))
	}
	operator.Command(200, "SITE COPY inbox copied")
	operator.Command(250, "SITE RMDIR inbox")
	alice.Command(550, "SIZE large")
	for _, key := range s3test.Objects(t, s.Client(), acme.Bucket) {
		if strings.Contains(key, ".babelftp/") && !strings.HasPrefix(key, ".babelftp/") &&
			!strings.HasPrefix(key, acme.Prefix+".babelftp/") {
			t.Errorf("got an event for the server's own object %q", key)
		}
	}

	receivers["outer"].await("rename /inbox", "copy /inbox", "delete /inbox")
	receivers["twin"].await("upload /twin")
	receivers["acme"].await("upload /waits", "upload /large")
}

// If tenants share a folder, a user of one tenant does not see the interrupted uploads of the user with the same name
// in another tenant.
func TestInterruptedUploadsOfTenants(t *testing.T) {
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.Resume, acme.Users["alice"].Home, acme.Hosts = config.KeepInterrupted, "/", []string{"acme.example"}
	twin := *acme
	twin.Hosts = []string{"twin.example"}
	cfg.Tenants["twin"] = &twin
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := loginAs(t, srv, "alice@acme")
	data := begin(t, c, "STOR f", "the beginning")
	for !strings.Contains(c.Command(211, "STAT"), "13") { // wait for all bytes
	}
	c.Command(426, "ABOR")
	c.Reply(226)
	_ = data.Close()
	loginAs(t, srv, "alice@twin").Command(550, "SIZE f")
	if size := loginAs(t, srv, "alice@acme").Command(213, "SIZE f"); size != "12" {
		t.Errorf("user who can resume the upload: got size %s", size)
	}
}
