package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// auditLines serves a session that runs do, stops the server, and returns the audit log.
func auditLines(t *testing.T, cfg *config.Config, s *s3test.Server, do func(*ftptest.Client)) []map[string]any {
	t.Helper()
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.log")
	must.OK(t, cfg.Validate())
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	must.OK(t, srv.Start(t.Context()))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(t.Context()) }()
	count(t, srv) // an uncounted quota refuses nothing
	do(ftptest.Dial(t, srv.Addr().String()))
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	text := must.ReadFile(t, cfg.Audit.File)
	if strings.Contains(text, servicetest.Password) || strings.Contains(text, "secret") {
		t.Errorf("the audit log contains a password:\n%s", text)
	}
	var lines []map[string]any
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, fields)
	}
	return lines
}

// Each event is one line with its result. Commands before the login and commands that change nothing are not logged.
func TestAuditLog(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	cfg.Tenants["acme"].Users["alice"].PathPermissions = map[string][]config.Permission{"/closed/**": {config.List}}
	uri := "s3://" + cfg.Tenants["acme"].Bucket + "/inbox"
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Command(331, "USER hunter2")
		c.Command(530, "PASS secret1")
		c.Command(331, "USER alice")
		c.Command(530, "PASS secret2")
		c.Command(500, "secret3")
		c.Login("alice", servicetest.Password)
		c.Store("a", "abc")
		c.Command(350, "REST 1")
		c.Transfer("RETR a")
		c.Transfer("NLST")
		c.Command(550, "DELE none")
		c.Command(550, "DELE /closed/x")
		c.Command(257, "MKD d")
		c.Command(350, "RNFR a")
		c.Command(250, "RNTO d/b\u0085c")
		c.Command(200, "SITE COPY d /e")
		c.Command(213, "MFMT 20240102030405 d/b\u0085c")
		c.Command(213, "MDTM 20240102030406 d/b\u0085c")
		c.Command(213, "MDTM d/b\u0085c")
		c.Command(213, "SITE UTIME 20240102030407 d/b\u0085c")
		c.Command(250, "DELE d/b\u0085c")
		c.Command(250, "RMD d")
		c.Command(250, "SITE RMDIR /e")
		c.Command(550, "RMD /")
		c.Command(221, "QUIT")
	})
	const etag = "900150983cd24fb0d6963f7d28e17f72" // MD5 of "abc"
	login := func(want string) string { return "outcome=failed tls=false " + want }
	user := func(want string) string { return "tenant=acme tls=false user=alice " + want }
	want := []string{
		"login " + login("reason=unknown_user"),
		"login " + login("reason=wrong_password tenant=acme user=alice"),
		"login " + user("outcome=ok"),
		"upload " + user(
			"outcome=ok bytes=3 code=226 command=STOR data_tls=false checksum=crc64nvme:BeXKuz/B+us= etag="+etag+" path=/alice/a s3_uri="+uri+
				"/alice/a size=3"),
		"download " + user(
			"outcome=ok bytes=2 code=226 command=RETR data_tls=false etag="+etag+
				" offset=1 path=/alice/a s3_uri="+uri+"/alice/a size=3"),
		"delete " + user("outcome=failed code=550 command=DELE path=/alice/none s3_uri="+uri+"/alice/none"),
		"delete " + user("outcome=failed code=550 command=DELE path=/closed/x s3_uri="+uri+"/closed/x"),
		"mkdir " + user("outcome=ok code=257 command=MKD path=/alice/d s3_uri="+uri+"/alice/d"),
		"rename " + user(
			`outcome=ok code=250 command=RNTO path=/alice/a s3_uri=`+uri+
				`/alice/a to_path=/alice/d/b\u{85}c to_s3_uri=`+uri+"/alice/d/b%C2%85c"),
		"copy " + user(
			"outcome=ok code=200 command=SITE path=/alice/d s3_uri="+uri+"/alice/d to_path=/e to_s3_uri="+uri+"/e"),
		"set_time " + user(
			`outcome=ok code=213 command=MFMT path=/alice/d/b\u{85}c s3_uri=`+uri+"/alice/d/b%C2%85c"),
		"set_time " + user(
			`outcome=ok code=213 command=MDTM path=/alice/d/b\u{85}c s3_uri=`+uri+"/alice/d/b%C2%85c"),
		"set_time " + user(
			`outcome=ok code=213 command=SITE path=/alice/d/b\u{85}c s3_uri=`+uri+"/alice/d/b%C2%85c"),
		"delete " + user(`outcome=ok code=250 command=DELE path=/alice/d/b\u{85}c s3_uri=`+uri+"/alice/d/b%C2%85c"),
		"rmdir " + user("outcome=ok code=250 command=RMD path=/alice/d s3_uri="+uri+"/alice/d"),
		"rmdir " + user("outcome=ok code=250 command=SITE path=/e s3_uri="+uri+"/e"),
		"rmdir " + user("outcome=failed code=550 command=RMD path=/ s3_uri="+uri+"/"),
		"logout " + user("outcome=ok downloaded_bytes=2 downloads=1 uploaded_bytes=3 uploads=1"),
	}
	session, client := lines[0]["session"], lines[0]["client"]
	for i, fields := range lines {
		if fields["time"] == nil || session == nil || fields["session"] != session || client == nil ||
			fields["client"] != client {
			t.Errorf("line %d: time %v, session %v, client %v", i, fields["time"], fields["session"], fields["client"])
		}
		for _, key := range []string{"time", "session", "client"} {
			delete(fields, key)
		}
		if id, _ := fields["s3_request_id"].(string); fields["event"] == "upload" && id == "" {
			t.Errorf("line %d lacks s3_request_id", i)
		}
		delete(fields, "s3_request_id")
		delete(fields, "error")
		delete(fields, "duration_ms")
		if i >= len(want) {
			t.Errorf("line %d: got %v, want none", i, fields)
			continue
		}
		event, rest, _ := strings.Cut(want[i], " ")
		wanted := map[string]string{"event": event}
		for pair := range strings.FieldsSeq(rest) {
			key, value, _ := strings.Cut(pair, "=")
			wanted[key] = value
		}
		got := map[string]string{}
		for key, value := range fields {
			got[key] = fmt.Sprint(value)
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("line %d:\n got %v\nwant %v", i, got, wanted)
		}
	}
	if len(lines) < len(want) {
		t.Errorf("got %d lines, want %d", len(lines), len(want))
	}
}

// The audit log shows sessions that a limit refused, and uploads that exceed a quota.
func TestAuditOfLimits(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].Quota = 2
	cfg.Tenants["acme"].Limits.Tenant.Sessions = 1
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Login("alice", servicetest.Password)
		second, err := ftptest.Open(c.RemoteAddr().String())
		must.OK(t, err)
		for _, command := range []string{"", "USER alice", "PASS " + servicetest.Password} {
			if command == "" {
				_, err = second.Reply()
			} else {
				_, err = second.Send(command)
			}
			must.OK(t, err)
		}
		if reply, err := c.Upload("STOR a", "abc"); err != nil || !strings.HasPrefix(reply, "552") {
			t.Errorf("STOR: got %q, %v; want 552", reply, err)
		}
	})
	var got []string
	for _, fields := range lines {
		got = append(
			got, fmt.Sprint(fields["event"], " ", fields["outcome"], " ", fields["limit"], " ", fields["code"]))
	}
	want := []string{"login ok <nil> <nil>", "refused failed tenant.sessions <nil>", "upload failed <nil> 552",
		"logout ok <nil> <nil>"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The server does not start if it cannot write its audit log.
func TestAuditFileCannotBeOpened(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Audit.File = t.TempDir()
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	if err := srv.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "audit.file") {
		t.Errorf("Start: got %v, want an error about audit.file", err)
	}
}

// The line of a multipart upload has the values of the response that made the file visible.
func TestAuditOfLargeUpload(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
			c.Login("alice", servicetest.Password)
			c.Store("a", strings.Repeat("a", int(cfg.PartSize)+1))
			c.Command(221, "QUIT")
		})
		upload := lines[1]
		checksum, _ := upload["checksum"].(string)
		etag, _ := upload["etag"].(string)
		if id, _ := upload["s3_request_id"].(string); id == "" || etag == "" ||
			!strings.HasPrefix(checksum, "crc") {
			t.Errorf("got %v, want an ETag, a checksum and the ID of the request", upload)
		}
	})
}

// The receiver gets the same lines as the file, including the last ones, even though it fails at first.
func TestAuditToWebhook(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	var lines []map[string]any
	failed := false
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if want := web.Sign([]byte(secret), request.Header.Get(web.TimestampHeader), body); err != nil ||
			request.Header.Get(web.SignatureHeader) != want {
			t.Errorf("signature %q, %v; want %q", request.Header.Get(web.SignatureHeader), err, want)
		}
		if !failed {
			failed = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var batch []map[string]any
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		lines = append(lines, batch...)
	}))
	t.Cleanup(receiver.Close)
	s, cfg := simulated(t)
	cfg.Audit.Webhook = config.Receiver{URL: receiver.URL, Secret: value.NewSecret(secret)}
	want := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Login("alice", servicetest.Password)
		c.Store("a", "abc")
		c.Command(221, "QUIT")
	})
	if len(want) != 3 || !reflect.DeepEqual(lines, want) {
		t.Errorf("the receiver got %v, want %v", lines, want)
	}
}

func TestAuditWebhookWithoutCertificates(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Audit.Webhook = config.Receiver{URL: "https://hooks.example.com/",
		Secret: value.NewSecret("0123456789abcdef"), CAFile: t.TempDir()}
	if _, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()}); err == nil ||
		!strings.HasPrefix(err.Error(), "ca_file: ") {
		t.Errorf("got error %v, want an error for ca_file", err)
	}
}

// The audit log shows how the server decoded a name that is valid both in UTF-8 and in another charset.
func TestAuditOfCharsets(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].Compatibility.Charset = servicetest.Encoding(t, "gbk")
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Login("alice", servicetest.Password)
		c.Store("\xc4\xbf\xc2\xbc", "abc")
		c.Store("\xd6\xd0", "abc")
		c.Command(221, "QUIT")
	})
	var got []string
	for _, line := range lines {
		if line["event"] == "upload" {
			got = append(got, fmt.Sprint(line["path"], " ", line["name_charset"]))
		}
	}
	if want := []string{"/alice/目录 gbk", "/alice/中 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
