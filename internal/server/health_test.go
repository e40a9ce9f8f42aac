package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMetricsListener(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	srv := start(t, servicetest.NewConfig(t, s), Options{AWS: s.AWSConfig(), Version: "v1.2.3"})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice", servicetest.Password)
	c.Store("file", "seven b")
	c.Command(500, "PEANUTS argument")
	c.Command(550, "SIZE missing")
	c.Command(200, "LANG fr")
	c.Command(221, "QUIT")
	refused := ftptest.Dial(t, srv.Addr().String())
	refused.Command(331, "USER alice")
	refused.Command(530, "PASS wrong")

	status, body := get(t, srv, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: got status %d", status)
	}
	for _, line := range []string{
		`babelftp_build_info{version="v1.2.3"} 1`,
		"babelftp_sessions_total 2",
		`babelftp_logins_total{result="accepted",tenant="acme"} 1`,
		`babelftp_logins_total{result="refused",tenant="acme"} 1`,
		`babelftp_commands_total{code="500",command="other"} 1`,
		`babelftp_replies_total{language="fr"} 2`,
		`babelftp_commands_total{code="550",command="SIZE"} 1`,
		`babelftp_commands_total{code="226",command="STOR"} 1`,
		`babelftp_transfers_total{direction="upload",result="complete",tenant="acme"} 1`,
		`babelftp_transfer_bytes_total{direction="upload",tenant="acme"} 7`,
		`babelftp_s3_requests_total{operation="PutObject",status="200",tenant="acme"} 1`,
		`babelftp_s3_requests_total{operation="HeadBucket",status="200",tenant=""} 1`,
		`babelftp_bucket_up{folder="",tenant="acme"} 1`,
		`babelftp_s3_request_duration_seconds_count{operation="PutObject"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	// users are only counted by their tenant
	for _, chosen := range []string{"PEANUTS", "argument", "missing", "alice"} {
		if strings.Contains(body, chosen) {
			t.Errorf("a client can choose a label: %s", chosen)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n"} {
		if status, body := get(t, srv, path); status != http.StatusOK || body != want {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
	if status, _ := get(t, srv, "/"); status != http.StatusNotFound {
		t.Errorf("/: got status %d", status)
	}
}
