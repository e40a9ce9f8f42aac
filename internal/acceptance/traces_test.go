package acceptance_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// sentinel is part of everything that must not appear in a trace.
const sentinel = "sesame"

// An OpenTelemetry collector gets a span for each session, command and S3 request, and the log contains the same
// IDs. No span contains a secret.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := servicetest.StartCollector(t)
	s := &site{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL,
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20" + sentinel}}
	proxy := s.openBehindProxy(t, s3test.Start(t, "minio"), "log: {level: debug}")
	proxy.Inject(
		s3test.Fault{Operation: "PutObject", Times: 1,
			Effect: s3test.Refuse(http.StatusServiceUnavailable, "SlowDown")})
	local := newFolder(t)
	large := content(12 << 20)
	newLftp(t, s, usual).run(
		"put "+local.write("small", []byte("content"))+" -o small", "put "+local.write("large", large)+" -o large",
		"get large -o "+local.file("back"))
	local.mustHave("back", large)

	c := ftptest.Dial(t, s.address)
	c.Command(331, "USER alice@acme")
	c.Command(530, "PASS "+sentinel)
	c.Command(500, "QUOT PASS "+sentinel)
	c.Login("alice@acme", password)
	c.Command(202, "ACCT "+sentinel)
	c.Command(502, "SITE PSWWD old "+sentinel)
	c.Command(530, "SITE PSWD old "+sentinel+"-and-more")
	c.Command(550, "SIZE missing")
	data := c.Data()
	c.Command(150, "STOR half")
	must.Write(t, data, "half a file")
	_ = c.Close() // like a killed client
	collector.Await("the sessions of lftp and of the client that was killed", func(spans []servicetest.Span, _ int) bool {
		return len(slices.DeleteFunc(spans, func(s servicetest.Span) bool { return s.Name != "session" })) == 2
	})
	s.stop(t) // flushes pending spans

	spans := collector.Spans()
	byName := map[string][]servicetest.Span{}
	sessions := map[string]string{} // session ID by span ID
	for _, span := range spans {
		if text := fmt.Sprintf("%+v", span); strings.Contains(text, sentinel) || strings.Contains(text, password) {
			t.Errorf("a span has a secret: %s", text)
		}
		if span.Name == "session" {
			sessions[span.ID] = span.Attributes["session.id"]
		}
		byName[span.Name] = append(byName[span.Name], span)
	}
	one := func(name, attribute, value string) servicetest.Span {
		t.Helper()
		found := slices.DeleteFunc(slices.Clone(byName[name]), func(s servicetest.Span) bool {
			return s.Attributes[attribute] != value
		})
		if len(found) != 1 {
			t.Fatalf("%d spans %s have %s=%s: %+v", len(found), name, attribute, value, byName[name])
		}
		return found[0]
	}
	has := func(span servicetest.Span, want map[string]string) {
		t.Helper()
		for key, value := range want {
			if span.Attributes[key] != value {
				t.Errorf("%s has %s=%q, want %q: %v", span.Name, key, span.Attributes[key], value, span.Attributes)
			}
		}
	}

	stored := one("STOR", "babelftp.command.line", "STOR large")
	has(stored, map[string]string{
		"client.address": "127.0.0.1", "babelftp.tenant": acme, "user.name": "alice", "babelftp.reply.code": "226",
		"babelftp.transfer.bytes": fmt.Sprint(12 << 20),
		"network.protocol.name":   "ftp", "error.type": "",
	})
	if stored.Kind != "server" || stored.Parent != "" || stored.Failed ||
		!slices.Equal(stored.Events, []string{"first byte"}) {
		t.Errorf("got %+v", stored)
	}
	if stored.Resource["service.name"] != "babelftp" || stored.Resource["service.instance.id"] == "" ||
		stored.Resource["service.version"] == "" {
		t.Errorf("the resource is %v", stored.Resource)
	}
	if len(stored.Links) != 1 || sessions[stored.Links[0]] == "" ||
		sessions[stored.Links[0]] != stored.Attributes["session.id"] {
		t.Errorf("%+v has no link to any of %v", stored, sessions)
	}
	operations := map[string]int{}
	for _, span := range spans {
		if span.Trace != stored.Trace || span.ID == stored.ID {
			continue
		}
		operations[span.Name]++
		if span.Kind != "client" || span.Parent != stored.ID || span.Failed || span.Begin.Before(stored.Begin) ||
			span.End.Before(span.Begin) {
			t.Errorf("got %+v", span)
		}
		has(span, map[string]string{"aws.s3.bucket": s.buckets[acme], "rpc.system.name": "aws-api"})
		if span.Attributes["aws.request_id"] == "" || span.Attributes["http.response.status_code"] == "" {
			t.Errorf("got %+v", span)
		}
	}
	if operations["S3.CreateMultipartUpload"] != 1 || operations["S3.UploadPart"] != 3 ||
		operations["S3.CompleteMultipartUpload"] != 1 {
		t.Errorf("the requests of the upload are %v", operations)
	}
	refused := one("S3.PutObject", "http.response.status_code", "503")
	if !refused.Failed || refused.Attributes["error.type"] != "503" {
		t.Errorf("got %+v", refused)
	}
	byName["repeated"] = slices.DeleteFunc(slices.Clone(byName["S3.PutObject"]), func(s servicetest.Span) bool {
		return s.Parent != refused.Parent
	})
	has(one("repeated", "http.response.status_code", "200"), map[string]string{"http.request.resend_count": "1"})

	has(
		one("PASS", "babelftp.reply.code", "530"),
		map[string]string{"babelftp.command.line": "PASS ***", "user.name": "", "error.type": "530"})
	has(one("other", "babelftp.command.line", "QUOT ***"), map[string]string{"babelftp.reply.code": "500"})
	has(one("ACCT", "babelftp.command.line", "ACCT ***"), nil)
	has(one("SITE", "babelftp.command.line", "SITE PSWD ***"), nil)
	missing := one("SIZE", "babelftp.command.line", "SIZE missing")
	if missing.Failed || missing.Attributes["error.type"] != "550" {
		t.Errorf("got %+v", missing) // a mistake by the client, so not an error
	}
	if half := one("STOR", "babelftp.command.line", "STOR half"); !half.Failed ||
		half.Attributes["babelftp.reply.code"] != "426" {
		t.Errorf("got %+v", half)
	}
	if got := collector.Header().Get("Authorization"); got != "Bearer "+sentinel {
		t.Errorf("unexpected spans of the collector: %q", got)
	}

	log := s.server.stderr.String()
	for _, line := range []string{
		`msg=transfer session=%s .* path=/large .*trace_id=%s`,
		`msg=command session=%s .*line="STOR large" trace_id=%s`,
		`msg="S3 request" session=%s .*operation=UploadPart .*trace_id=%s`,
		`msg=reply session=%s .*code=226 .*trace_id=%s`,
	} {
		pattern := fmt.Sprintf(line, stored.Attributes["session.id"], stored.Trace)
		if !regexp.MustCompile(pattern).MatchString(log) {
			t.Errorf("the log has no line %s", pattern)
		}
	}
	failed := fmt.Sprintf(
		`msg="command failed" session=%s .*command=SIZE .*trace_id=%s`, missing.Attributes["session.id"], missing.Trace)
	if !regexp.MustCompile(failed).MatchString(log) {
		t.Errorf("the log has no line %s", failed)
	}
	if strings.Contains(log, sentinel) {
		t.Error("the log has a secret")
	}
	if t.Failed() {
		t.Log(log)
	}
}

// TestTracesOfStrangers: a client that does not log in causes far more spans than the exporter keeps. Spans of
// users must not be lost.
func TestTracesOfStrangers(t *testing.T) {
	t.Parallel()
	collector := servicetest.StartCollector(t)
	s := &site{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}}
	s.open(t, s3test.Start(t, "minio"), mallory())
	stranger, user := ftptest.Dial(t, s.address), ftptest.Dial(t, s.address)
	user.Login("mallory@acme", servicetest.Password)
	const most, flood = 2048, 4000 // most limits the spans in the exporter
	for range flood {
		stranger.Command(200, "NOOP")
	}
	const asked = 50
	for range asked {
		user.Command(257, "PWD")
	}
	user.Command(221, "QUIT")
	s.stop(t) // flushes pending spans
	spans := map[string]int{}
	for _, span := range collector.Spans() {
		spans[span.Name]++
	}
	if spans["PWD"] != asked || spans["QUIT"] != 1 || spans["session"] == 0 || spans["NOOP"] == 0 || spans["NOOP"] > most {
		t.Errorf("got %v, want %d spans of PWD and few of NOOP", spans, asked)
	}
}
