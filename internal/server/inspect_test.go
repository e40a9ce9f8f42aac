package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// inspectedBy returns an inspector with this handler.
func inspectedBy(t *testing.T, handler http.HandlerFunc) config.Inspect {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return config.Inspect{Hook: config.Receiver{URL: server.URL, Secret: value.NewSecret(webhookSecret)}}
}

// refuseBad refuses files that contain "bad". If a file begins with it, the rest is not read.
func refuseBad(w http.ResponseWriter, r *http.Request) {
	const refusal = `{"accept": false, "reason": {"en": "a \u202ebad\nfile", "fr": "un mauvais fichier"}}`
	begin := make([]byte, 3)
	if _, err := io.ReadFull(r.Body, begin); err == nil && string(begin) == "bad" {
		_, _ = io.WriteString(w, refusal)
		return
	}
	switch rest, err := io.ReadAll(r.Body); {
	case err != nil || bytes.Contains(rest, []byte("broken")):
		w.WriteHeader(http.StatusBadGateway)
	case bytes.Contains(rest, []byte("bad")):
		_, _ = io.WriteString(w, refusal)
	default:
		_, _ = io.WriteString(w, `{"accept": true}`)
	}
}

// uploadRefused sends a file that the server may refuse before its end, and returns the reply.
func uploadRefused(t *testing.T, c *ftptest.Client, command, content string) string {
	t.Helper()
	data := c.Data()
	defer data.Close()
	c.Command(150, command)
	_, _ = io.WriteString(data, content) // the server may have closed the connection
	_ = data.Close()
	reply, err := c.Conn.Reply()
	must.OK(t, err)
	return reply
}

// A refused file is not stored. The reply, the audit log, the event and the metric have the reason.
func TestInspect(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.Inspect = inspectedBy(t, refuseBad)
	hook, events := newWebhook(t)
	acme.Webhook = hook
	acme.Webhook.Skip = []string{"*.part"}
	large := strings.Repeat("abcd", 2<<20)
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		upload := func(command, content, want string) {
			t.Helper()
			if reply, err := c.Upload(command, content); err != nil || reply != want {
				t.Errorf("%s: got %q, %v; want %q", command, reply, err, want)
			}
		}
		const refused = "The content check refused the file: a bad file"
		c.Login("alice", servicetest.Password)
		upload("STOR a", "is bad", "550 "+refused+" (a)")
		upload("STOR a.part", "bad", "550 "+refused+" (a.part)")
		upload("STOR large", large+"bad", "550 "+refused+" (large)")
		if reply := uploadRefused(t, c, "STOR early", "bad"+large); reply != "550 "+refused+" (early)" {
			t.Errorf("early refusal: got %q", reply)
		}
		c.Store("good", "is ba")
		c.Command(350, "REST 5")
		upload("STOR good", "d", "550 "+refused+" (good)")
		upload("APPE good", "d", "550 "+refused+" (good)")
		upload("STOR b", "is broken", "451 The file could not be checked and was not stored. Please try again. (b)")
		c.Command(200, "LANG fr")
		upload("STOR a", "is bad", "550 Le contrôle du contenu a refusé le fichier\u00a0: un mauvais fichier (a)")
		c.Command(200, "LANG en")
		if list := c.Transfer("NLST"); list != "good\r\n" {
			t.Errorf("NLST: got %q", list)
		}
		if content := c.Transfer("RETR good"); content != "is ba" {
			t.Errorf("unexpected content of the accepted file: %q", content)
		}
	})
	var outcomes []string
	for _, line := range lines {
		if line["event"] == "upload" {
			outcomes = append(outcomes, line["outcome"].(string))
		}
		if line["outcome"] == "refused" && !strings.Contains(line["error"].(string), "rejected the file: a bad file") {
			t.Errorf("unexpected audit line %v", line)
		}
	}
	if want := strings.Fields("refused refused refused refused ok refused refused failed refused"); !slices.Equal(outcomes, want) {
		t.Errorf("the audit log has the outcomes %q, want %q", outcomes, want)
	}
	var told []string
	for range 8 {
		e := next(t, events)
		told = append(told, string(e.Type)+" "+e.Path+" "+e.Reason)
		if e.URI == "" || !e.Confirmed {
			t.Errorf("unexpected event %+v", e)
		}
	}
	slices.Sort(told)
	if want := []string{
		"refused /alice/a a bad file", "refused /alice/a a bad file", "refused /alice/a.part a bad file", "refused /alice/early a bad file", "refused /alice/good a bad file", "refused /alice/good a bad file",
		"refused /alice/large a bad file", "upload /alice/good ",
	}; !slices.Equal(told, want) {
		t.Errorf("webhook: got %q, want %q", told, want)
	}
}

// With "on_failure: accept", a file without a verdict is stored. A refused file goes to the quarantine, complete.
func TestInspectQuarantine(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.Inspect = inspectedBy(t, refuseBad)
	acme.Inspect.OnFailure, acme.Inspect.Quarantine = config.AcceptOnFailure, "held/"
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := session(t, srv, "alice")
	large := strings.Repeat("abcd", 2<<20)
	for name, content := range map[string]string{"small": "is bad", "large": large + "bad", "early": "bad" + large} {
		if reply, err := c.Upload("STOR "+name, content); err != nil || !strings.HasPrefix(reply, "550 ") {
			t.Errorf("got %q, %v", reply, err)
		}
		out, err := s.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &acme.Bucket})
		must.OK(t, err)
		var keys []string
		for _, o := range out.Contents {
			keys = append(keys, *o.Key)
			if *o.Size != int64(len(content)) {
				t.Errorf("%s has %d bytes, want %d", *o.Key, *o.Size, len(content))
			}
		}
		if len(keys) != 1 || !strings.HasPrefix(keys[0], "held/") || !strings.HasSuffix(keys[0], "/inbox/alice/"+name) {
			t.Fatalf("unexpected keys %q", keys)
		}
		if _, err := s.Client().DeleteObject(
			t.Context(), &s3.DeleteObjectInput{Bucket: &acme.Bucket, Key: aws.String(keys[0])}); err != nil {
			t.Fatal(err)
		}
	}
	c.Store("broken", "is broken")
	c.Store("large", large+"broken")
	wantMetrics(t, srv, `babelftp_refusals_total{limit="inspect",tenant="acme"} 3`)
}

// A reload adds, replaces or removes the inspector of a tenant, for later logins.
func TestReloadOfInspector(t *testing.T) {
	s, cfg := simulated(t)
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	before := session(t, srv, "alice")
	refuseAll := inspectedBy(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"accept": false}`)
	})
	for _, step := range []struct {
		inspect config.Inspect
		bad     string
		want    string
	}{
		{inspectedBy(t, refuseBad), "is bad", "550 The content check refused the file: a bad file (a)"},
		{refuseAll, "is good", "550 The content check refused the file. (a)"},
		{config.Inspect{}, "is bad", "226 "},
	} {
		cfg = changed(t, cfg, func(next *config.Config) { next.Tenants["acme"].Inspect = step.inspect }, "acme")
		reload(t, srv, cfg)
		reply, err := session(t, srv, "alice").Upload("STOR a", step.bad)
		if err != nil || !strings.HasPrefix(reply, step.want) {
			t.Errorf("got %q, %v; want %q", reply, err, step.want)
		}
		before.Store("before", "is bad") // the session keeps its old inspector
	}
}
