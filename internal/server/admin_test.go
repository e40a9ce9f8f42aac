package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

const (
	adminName     = "ann"
	adminPassword = "correct horse battery staple"
)

// adminUsers returns `admin.users` with one administrator.
func adminUsers(t *testing.T) value.Secret {
	t.Helper()
	hash, err := passwordhash.New(adminPassword)
	must.OK(t, err)
	return value.NewSecret("# who may\n\n" + adminName + ":" + hash + "\n")
}

// administered returns a server in French with an admin listener, and the client of an administrator.
func administered(t *testing.T, change func(*config.Config)) (*Server, *admin.Client) {
	t.Helper()
	s, cfg := simulated(t)
	cfg.DefaultLanguage = language.French
	cfg.Admin.Listen, cfg.Admin.Users = "127.0.0.1:0", adminUsers(t)
	change(cfg)
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Version: "v1.2.3"})
	c, err := admin.NewRemoteClient("http://"+srv.AdminAddr().String(), adminName, adminPassword, nil)
	must.OK(t, err)
	return srv, c
}

// until repeats a request of an administrator until the result is sufficient.
func until[T any](t *testing.T, ask func(context.Context) (T, error), enough func(T) bool) T {
	t.Helper()
	for {
		got, err := ask(t.Context())
		must.OK(t, err)
		if enough(got) {
			return got
		}
	}
}

// An administrator sees a session from its start to its end, and the bytes of its transfers as they move.
func TestAdministratorSeesSessions(t *testing.T) {
	srv, administrator := administered(t, func(cfg *config.Config) {
		cfg.Tenants["acme"].Quota = bytesize.MiB
		cfg.Tenants["acme"].DefaultLanguage = language.Japanese
	})
	c := ftptest.Dial(t, srv.Addr().String())
	before := until(t, administrator.Sessions, func(all []report.SessionInfo) bool {
		return len(all) == 1 && all[0].Language == "fr"
	})[0]
	if before.ID == "" || before.User != "" || before.TLS || before.Command != "" || before.Transfer != nil ||
		!strings.HasPrefix(before.Remote, "127.0.0.1:") {
		t.Errorf("unexpected session %+v", before)
	}
	c.Login("alice", servicetest.Password)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 1000")
	data := begin(t, c, "STOR up\x1b", "abc")
	s := until(t, administrator.Sessions, func(all []report.SessionInfo) bool {
		return all[0].Transfer != nil && all[0].Transfer.Bytes == 3
	})[0]
	up := s.Transfer
	if s.ID != before.ID || s.Tenant != "acme" || s.User != "alice" || s.Language != "ja" || s.Command != "STOR" ||
		!s.Since.Equal(before.Since) ||
		s.LastActive.Before(s.Since) {
		t.Errorf("unexpected session %+v", s)
	}
	if up.Session != s.ID || up.Tenant != "acme" || up.User != "alice" || up.Remote != s.Remote ||
		up.Direction != "upload" || up.Path != "/alice/up\x1b" ||
		up.Size == nil || *up.Size != 1000 || up.BytesPerSecond < 0 {
		t.Errorf("unexpected upload %+v", up)
	}
	must.Write(t, data, "def")
	until(t, administrator.Transfers, func(all []report.TransferInfo) bool {
		return len(all) == 1 && all[0].Bytes == 6
	})
	_ = data.Close()
	c.Reply(226)

	tenants := until(t, tenantsOf(t, srv), func(all []admin.Tenant) bool {
		return all[0].Quota != nil && all[0].Quota.Bytes != nil && all[0].BucketUp != nil
	})
	if one := tenants[0]; len(tenants) != 1 || one.Name != "acme" || !*one.BucketUp || one.Reason != "" ||
		one.Prefix != "inbox/" || one.Sessions != 1 ||
		one.Quota.MaxBytes != 1<<20 {
		t.Errorf("unexpected tenants %+v", tenants)
	}
	state, err := administrator.Server(t.Context())
	if err != nil || state.Version != "v1.2.3" || state.Replica != 0 || state.Replicas != 1 || !state.Ready ||
		state.Draining || len(state.ConfigHash) != 64 ||
		state.Reloaded.IsZero() {
		t.Errorf("unexpected server %+v: %v", state, err)
	}
	c.Command(221, "QUIT")
	until(t, administrator.Sessions, func(all []report.SessionInfo) bool { return len(all) == 0 })
	var page struct {
		Events []struct{ Event, User, Session string }
	}
	ask(t, srv, "/api/v1/activity", &page)
	got := ""
	for _, e := range slices.Backward(page.Events) {
		got += e.Event + " "
		if e.Event != "admin_login" && (e.User != "alice" || e.Session != before.ID) {
			t.Errorf("unexpected audit log %+v", e)
		}
	}
	if got != "admin_login login upload logout " {
		t.Errorf("unexpected audit log %s", got)
	}
}

// Administrators see the size of a running download.
func TestAdministratorSeesDownloads(t *testing.T) {
	t.Parallel()
	srv, administrator := administered(t, func(*config.Config) {})
	c := session(t, srv, "alice")
	content := strings.Repeat("0123456789", 6_000_000) // much more than the buffers of a connection
	c.Store("f", content)
	c.Command(200, "TYPE I")
	c.Command(350, "REST 10")
	data := c.Data()
	c.Command(150, "RETR f")
	moved := until(t, administrator.Transfers, func(all []report.TransferInfo) bool {
		return len(all) == 1 && all[0].Bytes > 0
	})[0]
	if moved.Direction != "download" || moved.Size == nil || *moved.Size != int64(len(content)-10) ||
		moved.Bytes > *moved.Size {
		t.Errorf("unexpected download %+v", moved)
	}
	if _, err := io.CopyN(io.Discard, data, 5_000_000); err != nil {
		t.Fatal(err)
	}
	until(t, administrator.Transfers, func(all []report.TransferInfo) bool {
		return len(all) == 1 && all[0].Bytes > moved.Bytes
	})
	if _, err := io.Copy(io.Discard, data); err != nil {
		t.Fatal(err)
	}
	_ = data.Close()
	c.Reply(226)
}

// request sends a request as an administrator.
func request(t *testing.T, srv *Server, method, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+srv.AdminAddr().String()+path, nil)
	must.OK(t, err)
	request.SetBasicAuth(adminName, adminPassword)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	return response
}

// ask decodes the response to a request.
func ask(t *testing.T, srv *Server, path string, into any) {
	t.Helper()
	response := request(t, srv, http.MethodGet, path)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", path, response.Status)
	}
	must.OK(t, json.NewDecoder(response.Body).Decode(into))
}

func tenantsOf(t *testing.T, srv *Server) func(context.Context) ([]admin.Tenant, error) {
	return func(context.Context) (all []admin.Tenant, err error) {
		ask(t, srv, "/api/v1/tenants", &all)
		return all, nil
	}
}

// A disconnected client reads the reason in the language of the session, and an unfinished upload leaves no file.
func TestAdministratorDisconnects(t *testing.T) {
	srv, administrator := administered(t, func(*config.Config) {})
	idle, busy, other := session(t, srv, "alice"), session(t, srv, "alice"), session(t, srv, "alice")
	busy.Command(200, "LANG ja")
	upload := begin(t, busy, "STOR half.txt", "half of a file")
	all := until(t, administrator.Sessions, func(all []report.SessionInfo) bool {
		return len(all) == 3 && all[1].Transfer != nil
	})
	for _, s := range all[:2] {
		must.OK(t, administrator.Disconnect(t.Context(), s.ID))
	}
	if text := idle.Reply(421); text != "Un administrateur a mis fin à cette session." {
		t.Errorf("idle session: got %q", text)
	}
	idle.WantClosed()
	const japanese = "管理者がこのセッションを終了しました。"
	if text := busy.Reply(426); text != japanese {
		t.Errorf("unexpected reply to the transfer: %q", text)
	}
	if text := busy.Reply(421); text != japanese {
		t.Errorf("session of the transfer: got %q", text)
	}
	busy.WantClosed()
	_ = upload.Close()
	other.Command(550, "SIZE half.txt")
	until(t, administrator.Sessions, func(all []report.SessionInfo) bool { return len(all) == 1 })
	if err := administrator.Disconnect(t.Context(), all[0].ID); err == nil ||
		!strings.Contains(err.Error(), "session "+all[0].ID+" not found") {
		t.Errorf("second disconnect: %v", err)
	}
	other.Command(200, "NOOP")
}

// An interrupted upload is shown with its user, and aborting it removes its parts. An upload in use cannot be aborted.
func TestAdministratorAbortsUploads(t *testing.T) {
	content := strings.Repeat("0123456789", 700_000) // more than one part
	srv, administrator := administered(t, func(cfg *config.Config) {
		cfg.Tenants["acme"].Resume = config.KeepInterrupted
	})
	x := &uploadsTest{T: t, servers: [2]*Server{srv, srv}}
	x.interrupt(content[:6_291_456])
	metric(t, srv, `babelftp_uploads_interrupted_total{tenant="acme"} 1`)
	kept, err := administrator.Uploads(t.Context(), "acme")
	if err != nil || kept.Total != 1 || len(kept.Uploads) != 1 || len(kept.Unanswered) != 0 {
		t.Fatalf("unexpected uploads %+v: %v", kept, err)
	}
	u := kept.Uploads[0]
	if u.Tenant != "acme" || u.User != "alice" || u.Path != "/alice/f" || u.State != "interrupted" || u.Bytes == nil ||
		*u.Bytes != 6_291_455 ||
		u.LastPart.IsZero() {
		t.Errorf("unexpected upload %+v, %d bytes", u, *u.Bytes)
	}
	if err := administrator.Abort(t.Context(), "acme", "no-such-upload"); err == nil ||
		!strings.Contains(err.Error(), "it may be complete, or removed") {
		t.Errorf("abort of an unknown upload: %v", err)
	}
	if _, err := administrator.Uploads(t.Context(), "nobody"); err == nil ||
		!strings.Contains(err.Error(), `unknown tenant "nobody"`) {
		t.Errorf("uploads of an unknown tenant: %v", err)
	}

	c := x.as("alice", 0)
	c.Command(350, "REST 6291455")
	data := begin(t, c, "STOR f", content[6_291_455:6_500_000])
	received(t, srv, c, 6_500_000-6_291_455)
	if err := administrator.Abort(t.Context(), "acme", u.ID); err == nil ||
		!strings.Contains(err.Error(), "upload is in use by a session") {
		t.Errorf("abort of an upload in progress: %v", err)
	}
	send(t, c, data, content[6_500_000:])
	if err := administrator.Abort(t.Context(), "acme", u.ID); err == nil {
		t.Error("a complete upload was aborted")
	}
	if got := x.as("alice", 0).Transfer("RETR f"); got != content {
		t.Errorf("the file has %d bytes", len(got))
	}

	x.interrupt(content[:6_291_456])
	metric(t, srv, `babelftp_uploads_interrupted_total{tenant="acme"} 2`)
	kept, err = administrator.Uploads(t.Context(), "")
	if err != nil || len(kept.Uploads) != 1 {
		t.Fatalf("unexpected uploads %+v: %v", kept, err)
	}
	must.OK(t, administrator.Abort(t.Context(), "acme", kept.Uploads[0].ID))
	if kept, err := administrator.Uploads(t.Context(), ""); err != nil || kept.Total != 0 || len(kept.Uploads) != 0 {
		t.Errorf("unexpected uploads %+v: %v", kept, err)
	}
	if size := x.as("alice", 0).Command(213, "SIZE f"); size != strconv.Itoa(len(content)) {
		t.Errorf("unexpected size %s of the existing file", size)
	}
}

// A bucket that is not usable or does not respond does not hide the uploads of other buckets, and is not reported as a
// bucket without uploads.
func TestAdministratorSeesUnresponsiveBuckets(t *testing.T) {
	content := strings.Repeat("0123456789", 700_000)
	s := s3test.Start(t, "sim-aws")
	proxy := s3test.StartProxy(t, s)
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.Endpoint = proxy.Server().Endpoint
	cfg.Tenants["acme"].Resume = config.KeepInterrupted
	cfg.Admin.Listen, cfg.Admin.Users = "127.0.0.1:0", adminUsers(t)
	missing, slow := *cfg.Tenants["acme"], *cfg.Tenants["acme"]
	missing.Hosts, missing.Bucket = []string{"ftp.missing.example"}, "missing"
	slow.Hosts, slow.Prefix = []string{"ftp.slow.example"}, "slow/"
	cfg.Tenants["missing"], cfg.Tenants["slow"] = &missing, &slow
	srv := start(t, cfg, Options{AWS: proxy.Server().AWSConfig()})
	administrator, err := admin.NewRemoteClient("http://"+srv.AdminAddr().String(), adminName, adminPassword, nil)
	must.OK(t, err)
	metric(t, srv, `babelftp_bucket_up{folder="",tenant="missing"} 0`)
	metric(t, srv, `babelftp_bucket_up{folder="",tenant="slow"} 1`)
	c := session(t, srv, "alice")
	interrupt(t, c, "f", content, func() { received(t, srv, c, len(content)) })
	metric(t, srv, `babelftp_uploads_interrupted_total{tenant="acme"} 1`)

	all, err := administrator.Uploads(t.Context(), "")
	if err != nil || len(all.Uploads) != 1 || len(all.Unanswered) != 1 || all.Unanswered[0].Tenant != "missing" ||
		!strings.Contains(all.Unanswered[0].Reason, `tenant missing: bucket "missing": does not exist`) {
		t.Errorf("unexpected uploads %+v: %v", all, err)
	}
	for tenant, want := range map[string]int{"acme": http.StatusNotFound, "slow": http.StatusNotFound,
		"missing": http.StatusBadGateway} {
		response := request(t, srv, http.MethodDelete, "/api/v1/uploads/"+tenant+"/a-b-c")
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("abort of an upload of %s: got status %s, want %d", tenant, response.Status, want)
		}
	}

	proxy.Inject(s3test.Fault{KeyPrefix: "slow/", Effect: s3test.Stall()})
	source := admin.NewOverview(srv.control, admin.Parts{Buckets: srv.buckets, Registry: srv.tenants})
	for timeout := 50 * time.Millisecond; ; timeout *= 2 { // until it is long enough for the bucket that responds
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		all, err := source.Uploads(ctx, "")
		aborted := source.Abort(ctx, "slow", "a-b-c")
		cancel()
		if err != nil || len(all.Unanswered) < 2 {
			t.Fatalf("unexpected uploads %+v: %v", all, err)
		}
		if len(all.Uploads) == 0 {
			continue
		}
		if last := all.Unanswered[1]; last.Tenant != "slow" ||
			!strings.HasSuffix(last.Reason, "S3 did not respond in time") {
			t.Errorf("unexpected entry of the unresponsive bucket: %+v", last)
		}
		if aborted == nil ||
			!strings.HasSuffix(aborted.Error(), "S3 did not respond in time") {
			t.Errorf("abort of an upload in an unresponsive bucket: %v", aborted)
		}
		return
	}
}

// A stream of events starts with the current state, continues with each change, and ends with the server.
func TestAdministratorEvents(t *testing.T) {
	t.Parallel()
	srv, _ := administered(t, func(*config.Config) {})
	response := request(t, srv, http.MethodGet, "/api/v1/events")
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK ||
		kind != "text/event-stream" {
		t.Fatalf("got %s, %s", response.Status, kind)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	next := func(enough func(s *admin.State) bool) {
		t.Helper()
		for lines.Scan() {
			data, found := strings.CutPrefix(lines.Text(), "data: ")
			if !found {
				continue
			}
			var s admin.State
			must.OK(t, json.Unmarshal([]byte(data), &s))
			if enough(&s) {
				return
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
	}
	next(func(s *admin.State) bool { return s.Totals.Sessions == 0 && s.Totals.Tenants == 1 && s.Server.Ready })
	c := session(t, srv, "alice")
	next(func(s *admin.State) bool { return s.Totals.Sessions == 1 && s.Sessions[0].User == "alice" })
	data := begin(t, c, "STOR f", "abc")
	next(func(s *admin.State) bool { return s.Totals.Transfers == 1 && s.Transfers[0].Bytes == 3 })
	_ = data.Close()
	c.Reply(226)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
		}
	}()
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-ended
}

// An administrator sees when the certificate of the admin listener expires.
func TestAdministratorSeesCertificates(t *testing.T) {
	cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	must.WriteCertificate(
		t, cert, key, &x509.Certificate{DNSNames: []string{"admin.example"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	srv, _ := administered(t, func(cfg *config.Config) { cfg.Admin.TLS.CertFile, cfg.Admin.TLS.KeyFile = cert, key })
	chain := must.ReadFile(t, cert)
	administrator, err := admin.NewRemoteClient(
		"https://"+srv.AdminAddr().String(), adminName, adminPassword, &tls.Config{RootCAs: must.CertPool(chain)})
	must.OK(t, err)
	got, err := administrator.Server(t.Context())
	must.OK(t, err)
	block, _ := pem.Decode([]byte(chain))
	shown, err := x509.ParseCertificate(block.Bytes)
	must.OK(t, err)
	if want := []admin.Certificate{{Names: []string{"admin.example"}, NotAfter: shown.NotAfter}}; !reflect.DeepEqual(
		got.Certificates, want) {
		t.Errorf("got certificates %v, want %v", got.Certificates, want)
	}
}
