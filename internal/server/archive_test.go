package server

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// changedAnswers is a transport that changes the responses of S3.
type changedAnswers struct {
	s3.HTTPClient
	change func(*http.Response)
}

func (c changedAnswers) Do(request *http.Request) (*http.Response, error) {
	response, err := c.HTTPClient.Do(request)
	if err == nil {
		c.change(response)
	}
	return response, err
}

// The reply for an archived file names the archive, so that the client does not suspect missing permissions.
func TestArchivedFile(t *testing.T) {
	s, cfg := simulated(t)
	put(t, s, cfg, "alice/archived")
	reach := s.AWSConfig()
	reach.HTTPClient = changedAnswers{reach.HTTPClient, func(response *http.Response) {
		request := response.Request
		reads := request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/archived")
		if reads || request.Header.Get("X-Amz-Copy-Source") != "" { // as S3 does with objects in Glacier
			response.StatusCode = http.StatusForbidden
			response.Body = io.NopCloser(strings.NewReader("<Error><Code>InvalidObjectState</Code></Error>"))
			response.Header, response.ContentLength = http.Header{}, -1
		}
	}}
	c := session(t, start(t, cfg, Options{AWS: reach}), "alice")
	const text = "The file is archived and must be restored before it can be read."
	archived := func(path, reply string) {
		t.Helper()
		if reply != text+" ("+path+")" {
			t.Errorf("got %q", reply)
		}
	}
	c.Command(200, "TYPE I")
	conn := c.Data()
	defer conn.Close()
	archived("archived", c.Command(550, "RETR archived"))
	c.Command(350, "RNFR archived")
	archived("archived -> moved", c.Command(550, "RNTO moved"))
	c.Command(213, "SIZE archived")
}

// A glacier is an S3 server whose objects are archived until they are restored.
type glacier struct {
	s3.HTTPClient
	restoring bool
	restored  bool
	asked     []string // queries of RestoreObject requests
	days      int
	tier      string
}

func (g *glacier) Do(request *http.Request) (*http.Response, error) {
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Request: request,
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	archived := strings.HasSuffix(request.URL.Path, "/archived") && !g.restored
	switch q := request.URL.Query(); {
	case q.Has("restore"):
		var in struct {
			Days                 int
			GlacierJobParameters struct{ Tier string }
		}
		if err := xml.NewDecoder(request.Body).Decode(&in); err != nil {
			return nil, err
		}
		g.restoring, g.days, g.tier = true, in.Days, in.GlacierJobParameters.Tier
		g.asked = append(g.asked, q.Get("versionId"))
		return answer(http.StatusAccepted, "")
	case request.Method == http.MethodGet && archived:
		return answer(http.StatusForbidden, "<Error><Code>InvalidObjectState</Code></Error>")
	}
	response, err := g.HTTPClient.Do(request)
	if err == nil && request.Method == http.MethodHead && archived {
		response.Header.Set("X-Amz-Storage-Class", "DEEP_ARCHIVE")
		if g.restoring {
			response.Header.Set("X-Amz-Restore", `ongoing-request="true"`)
		}
	}
	return response, err
}

// An archived file or version is restored once, and clients learn when to try again.
func TestRestore(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	cfg := versionedConfig(t, s)
	cfg.Tenants["acme"].Restore = config.Restore{Days: 3, Tier: config.BulkRestore}
	put(t, s, cfg, "alice/archived")
	for _, name := range []string{"archived", "/.versions/" + time.Now().UTC().Format(time.DateOnly+"T15:04:05Z") +
		"/alice/archived"} {
		reach := s.AWSConfig()
		g := &glacier{HTTPClient: reach.HTTPClient}
		reach.HTTPClient = g
		c := session(t, start(t, cfg, Options{AWS: reach}), "alice")
		c.Command(200, "TYPE I")
		for range 2 {
			conn := c.Data()
			text := c.Command(450, "RETR "+name)
			_ = conn.Close()
			before := strings.TrimSuffix(text, " ("+name+")")
			ready, err := time.Parse("2006-01-02 15:04 UTC-07:00.", before[max(0, len(before)-len("2006-01-02 15:04 UTC-07:00.")):])
			wait := time.Until(ready)
			if err != nil || wait < 47*time.Hour || wait > 48*time.Hour ||
				!strings.HasPrefix(text, "The file is being restored from the archive") {
				t.Errorf("got %q, %v", text, err)
			}
		}
		past := name != "archived"
		if len(g.asked) != 1 || (g.asked[0] != "") != past || g.days != 3 || g.tier != "Bulk" {
			t.Errorf("%s: got restore requests %q, for %d days in tier %q", name, g.asked, g.days, g.tier)
		}
		if facts := c.Command(250, "MLST "+name); !strings.Contains(facts, ";x.archive=DEEP_ARCHIVE; ") {
			t.Errorf("MLST: %s", facts)
		}
		g.restored = true
		c.Want("content", "RETR "+name)
	}
}
