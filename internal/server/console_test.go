package server

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// asked sends a request of an administrator and returns the response.
func asked(t *testing.T, srv *Server, method, path string) (status int, body string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+srv.AdminAddr().String()+admin.Root+path, nil)
	must.OK(t, err)
	r.SetBasicAuth(adminName, adminPassword)
	response, err := http.DefaultClient.Do(r)
	must.OK(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(t, err)
	return response.StatusCode, string(text), response.Header
}

// got sends a GET request of an administrator and returns the decoded response.
func got[T any](t *testing.T, srv *Server, path string) (v T) {
	t.Helper()
	status, body, _ := asked(t, srv, http.MethodGet, path)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, status, body)
	}
	must.OK(t, json.Unmarshal([]byte(body), &v))
	return v
}

// activityOf returns the events of all pages of a search in the form EVENT PATH, newest first.
func activityOf(t *testing.T, srv *Server, query string) (events []string, page admin.Activity) {
	t.Helper()
	next := ""
	for {
		page = got[admin.Activity](t, srv, "/activity?limit=2&"+query+"&cursor="+url.QueryEscape(next))
		for _, line := range page.Events {
			var e struct{ Event, Path string }
			must.OK(t, json.Unmarshal(line, &e))
			events = append(events, strings.TrimSpace(e.Event+" "+e.Path))
		}
		if next = page.Next; next == "" {
			return events, page
		}
	}
}

func TestActivity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	srv, _ := administered(t, func(cfg *config.Config) { cfg.Audit.File = file })
	failed := ftptest.Dial(t, srv.Addr().String())
	failed.Command(331, "USER alice")
	failed.Command(530, "PASS wrong")
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", servicetest.Password)
	c.Store("a.part", "content")
	c.Command(350, "RNFR a.part")
	c.Command(250, "RNTO =a,b")
	c.Store("other", "content")
	for _, tt := range []struct{ query, want string }{
		{"user=alice&event=upload,rename", "upload /alice/other, rename /alice/a.part, upload /alice/a.part"},
		{"path=" + url.QueryEscape("/alice/=a,b"), "rename /alice/a.part, upload /alice/a.part"},
		{"path=/alice/a.part&event=upload", "upload /alice/a.part"},
		{"event=login&outcome=failed", "login"},
		{"address=127.0.0.0/8&event=upload&from=2020-01-01&to=2099-01-01", "upload /alice/other, upload /alice/a.part"},
		{"address=192.0.2.1", ""}, {"tenant=none", ""}, {"to=2020-01-01T00:00:00Z", ""},
	} {
		for {
			events, page := activityOf(t, srv, tt.query)
			if len(events) < strings.Count(tt.want, ",")+1 && tt.want != "" {
				continue // the line is not written yet
			}
			if text := strings.Join(events, ", "); text != tt.want || !page.Complete || len(page.Sources) != 1 ||
				page.Sources[0] != (admin.ActivitySource{File: file}) {
				t.Errorf("%s: %s, %+v", tt.query, text, page)
			}
			break
		}
	}
	for query, want := range map[string]string{
		"limit=x": "invalid limit", "limit=1001": "invalid limit", "from=yesterday": "invalid from", "to=x": "invalid to",
		"cursor=x": "invalid cursor", "address=x": "invalid address", "cursor=eyIwIjoieCJ9": "invalid cursor",
	} {
		if status, body, _ := asked(t, srv, http.MethodGet, "/activity?"+query); status != http.StatusBadRequest ||
			!strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, body, _ := asked(t, srv, http.MethodGet, "/activity/export?format=xls"); status != http.StatusBadRequest ||
		!strings.Contains(body, "want csv or jsonl") {
		t.Errorf("format: %d %s", status, body)
	}

	_, body, header := asked(t, srv, http.MethodGet, "/activity/export?format=csv&event=rename")
	text, found := strings.CutPrefix(body, "\ufeff")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if must.OK(t, err); !found || len(rows) != 2 || !strings.Contains(header.Get("Content-Disposition"), ".csv") {
		t.Fatalf("CSV with %v: %q", header, body)
	}
	path := rows[1][slices.Index(rows[0], "to_path")]
	if path != "/alice/=a,b" {
		t.Errorf("the path is %q", path)
	}
	_, body, _ = asked(t, srv, http.MethodGet, "/activity/export?format=jsonl&event=rename,upload")
	if lines := strings.Split(strings.TrimSpace(body), "\n"); len(lines) != 3 || !json.Valid([]byte(lines[0])) {
		t.Errorf("JSON lines: %q", body)
	}
}

// Without a file, a search says what it has searched.
func TestActivityWithoutFile(t *testing.T) {
	srv, _ := administered(t, func(*config.Config) {})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", servicetest.Password)
	c.Store("a", "content")
	events, page := activityOf(t, srv, "event=upload")
	if len(events) != 1 || !strings.Contains(page.Sources[0].Reason, "audit.file is not set") {
		t.Errorf("%v, %+v", events, page)
	}
	_, body, _ := asked(t, srv, http.MethodGet, "/activity/export?format=csv")
	if !strings.Contains(body, "audit.file is not set") {
		t.Errorf("the export does not say what is missing: %q", body)
	}
	_, body, _ = asked(t, srv, http.MethodGet, "/activity/export?format=jsonl")
	if !strings.Contains(body, `{"incomplete":"replica 0: audit.file is not set`) {
		t.Errorf("the export does not say what is missing: %q", body)
	}
}

func TestHistory(t *testing.T) {
	srv, _ := administered(t, func(*config.Config) {})
	h := got[admin.History](t, srv, "/history")
	if h.Interval != 10 || len(h.Series) != 6 {
		t.Errorf("got %+v", h)
	}
	for name, values := range h.Series {
		if len(values) != 360 {
			t.Errorf("%s has %d values", name, len(values))
		}
	}
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", servicetest.Password)
	c.Store("a", "seven b")
	c.Want("seven b", "RETR a")
	failed := ftptest.Dial(t, srv.Addr().String())
	failed.Command(331, "USER alice")
	failed.Command(530, "PASS wrong")
	want := admin.Totals{Sessions: 2, UploadedBytes: 7, DownloadedBytes: 7, Logins: 1, FailedLogins: 1}
	if totals := srv.metrics.Totals(); totals != want {
		t.Errorf("got %+v, want %+v", totals, want)
	}
}

func TestProblems(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	cfg := servicetest.NewConfig(t, s)
	cfg.Admin.Listen, cfg.Admin.Users = "127.0.0.1:0", adminUsers(t)
	cfg.Tenants["acme"].Quota = 100
	cfg.Tenants["lost"] = &config.Tenant{Bucket: "no-such-bucket", Users: map[string]*config.User{"u": {Disabled: true}}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice@acme", servicetest.Password)
	c.Store("a", strings.Repeat("x", 95))
	asked(t, srv, http.MethodPut, "/bans?name=192.0.2.7")
	broken := config.Problems{{Source: "babelftp.yaml", Line: 7, Path: "listen", Message: "is wrong"}}
	for range maxProblems {
		broken = append(broken, broken[0])
	}
	_ = srv.Reload(ReloadSignal, func() (*config.Config, error) { return nil, broken })
	var found []admin.Problem
	for len(found) < maxProblems+4 {
		found = got[[]admin.Problem](t, srv, "/problems")
	}
	kinds := []admin.ProblemKind{}
	for _, p := range found {
		if p.Since.IsZero() || p.Text == "" || p.Action == "" || p.Subject == "" {
			t.Errorf("incomplete problem %+v", p)
		}
		kinds = append(kinds, p.Kind)
	}
	kinds = slices.Compact(kinds)
	if want := []admin.ProblemKind{
		admin.ProblemBucket, admin.ProblemConfiguration, admin.ProblemQuota, admin.ProblemBan,
	}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if p := found[1]; p.Line != 7 || p.File != "babelftp.yaml" || p.Key != "listen" && p.Key != "" ||
		p.Severity != admin.SeverityError {
		t.Errorf("refused reload: %+v", p)
	}
	if p := found[len(found)-1]; p.Subject != "192.0.2.7" || p.Severity != admin.SeverityWarning {
		t.Errorf("ban: %+v", p)
	}
	_ = srv.Reload(ReloadSignal, func() (*config.Config, error) { return nil, errors.New("cannot read it") })
	for range time.Tick(10 * time.Millisecond) {
		if all := got[[]admin.Problem](t, srv, "/problems"); len(all) == 4 {
			break
		}
	}
	must.OK(t, srv.Reload(ReloadSignal, func() (*config.Config, error) { return cfg, nil }))
	for range time.Tick(10 * time.Millisecond) {
		if all := got[[]admin.Problem](t, srv, "/problems"); len(all) == 3 {
			break
		}
	}
}

func TestConfiguration(t *testing.T) {
	srv, _ := administered(t, func(cfg *config.Config) {
		cfg.Audit.Webhook = config.Receiver{URL: "https://hooks.example.com/services/T0/secret", Secret: value.NewSecret("MARKER-MARKER-MARKER")}
	})
	text := got[admin.Configuration](t, srv, "/configuration").Text
	for _, want := range []string{"acme:", "https://hooks.example.com/[redacted]", "secret: '[redacted]'", "users: '[redacted]'"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "$argon2id") || strings.Contains(text, "MARKER") || strings.Contains(text, "T0") {
		t.Errorf("a secret is in\n%s", text)
	}
	if status, body, _ := asked(t, srv, http.MethodGet, "/configuration?tenant=none"); status != http.StatusNotFound {
		t.Errorf("unknown tenant: %d %s", status, body)
	}
}

// clusterOf starts two replicas with audit files.
func clusterOf(t *testing.T, change func(cfg *config.Config, number int)) (replicas [2]*Server) {
	t.Helper()
	s, cfg := simulated(t)
	cfg.Passive.Ports = passivePortRange(t, 4)
	cfg.Admin.Users = adminUsers(t)
	dir := t.TempDir()
	for n := range replicas {
		own := *cfg
		inCluster(&own, n)
		own.Admin.Listen = "127.0.0.1:0"
		own.Audit.File = filepath.Join(dir, fmt.Sprint(n, ".log"))
		change(&own, n)
		replicas[n] = start(t, &own, Options{AWS: s.AWSConfig(), Version: fmt.Sprint("v", n)})
	}
	return replicas
}

// Each replica shows all replicas, searches their audit logs and ends their sessions.
func TestReplicas(t *testing.T) {
	replicas := clusterOf(t, func(*config.Config, int) {})
	for n, srv := range replicas {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Login("alice", servicetest.Password)
		for i := range 3 {
			c.Command(257, fmt.Sprintf("MKD %d%d", i, n))
		}
	}
	for n, srv := range replicas {
		var all []admin.Replica
		for len(all) != 2 || !all[1-n].Up {
			all = got[[]admin.Replica](t, srv, "/replicas")
		}
		for i, r := range all {
			if r.Replica != i || r.Self != (i == n) || r.Version != fmt.Sprint("v", i) || r.Server.Replica != i ||
				r.Totals.Sessions > 1 {
				t.Errorf("replica %d shows %+v", n, r)
			}
		}
		for {
			events, page := activityOf(t, srv, "event=mkdir")
			if len(events) < 6 {
				continue // a line is not written yet
			}
			want := "/21 /11 /01 /20 /10 /00"
			text := strings.ReplaceAll(strings.Join(events, " "), "mkdir /alice", "")
			if text != want || !page.Complete {
				t.Errorf("replica %d finds %s", n, text)
			}
			break
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		asked(t, replicas[0], method, "/debug?address=192.0.2.7&time=10m")
		for n, srv := range replicas {
			if got, want := len(srv.debug.Rules()), 1; (got == want) != (method == http.MethodPut) {
				t.Errorf("after %s, replica %d has %d debug rules", method, n, got)
			}
		}
	}
	sessions := replicas[1].control.Sessions()
	if len(sessions) != 1 {
		t.Fatalf("got %d sessions", len(sessions))
	}
	status, body, _ := asked(t, replicas[0], http.MethodDelete, "/sessions/"+sessions[0].ID)
	if status != http.StatusOK {
		t.Errorf("end a session of another replica: %d %s", status, body)
	}
	for len(replicas[1].control.Sessions()) > 0 {
	}
	if status, body, _ := asked(t, replicas[0], http.MethodDelete, "/sessions/none"); status != http.StatusNotFound {
		t.Errorf("end a session that does not exist: %d %s", status, body)
	}
}

// A replica that does not respond, or has another secret, is shown with the reason.
func TestReplicaThatDoesNotRespond(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(cfg *config.Config, number int)
		want   string
	}{
		"other-secret": {func(cfg *config.Config, number int) {
			if number == 1 {
				cfg.Admin.Users = value.NewSecret(cfg.Admin.Users.Reveal() + "# other\n")
			}
		}, "different secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			replicas := clusterOf(t, tt.change)
			var all []admin.Replica
			for len(all) != 2 {
				all = got[[]admin.Replica](t, replicas[0], "/replicas")
			}
			if r := all[1]; r.Up || !strings.Contains(r.Reason, tt.want) || r.Server != nil {
				t.Errorf("got %+v", r)
			}
			_, page := activityOf(t, replicas[0], "event=upload")
			if page.Complete || !strings.Contains(page.Sources[1].Reason, tt.want) {
				t.Errorf("a search returns %+v", page)
			}
			problems := got[[]admin.Problem](t, replicas[0], "/problems")
			if len(problems) == 0 || problems[0].Kind != admin.ProblemReplica ||
				!strings.Contains(problems[0].Text, tt.want) {
				t.Errorf("got the problems %+v", problems)
			}
			status, body, _ := asked(t, replicas[0], http.MethodDelete, "/sessions/none")
			if status != http.StatusBadGateway || !strings.Contains(body, tt.want) {
				t.Errorf("end a session: %d %s", status, body)
			}
		})
	}
}
