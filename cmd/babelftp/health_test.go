package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestHealth(t *testing.T) {
	var status atomic.Int64
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("unexpected request for %s", r.URL)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("ok\n"))
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	file := func(metricsListen string) string {
		name := filepath.Join(t.TempDir(), "babelftp.yaml")
		text := `tenants: {acme: {bucket: acme-data, users: {alice: {password_hash: "` + validHash + `"}}}}` + "\n" +
			metricsListen + "\n"
		must.WriteFile(t, name, text)
		return name
	}
	for _, args := range [][]string{
		{"--address", address}, {"--address", ":" + port}, {"--config", file("metrics_listen: \":" + port + "\"")},
		{"--config", file("metrics_listen: \"0.0.0.0:" + port + "\"")},
	} {
		if code, stdout, stderr := output(t, "", append([]string{"health"}, args...)...); code != 0 ||
			stdout != "ok\n" || stderr != "" {
			t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	status.Store(http.StatusServiceUnavailable)
	const unhealthy = "babelftp: not healthy: 503 Service Unavailable: ok\n"
	if code, _, stderr := output(t, "", "health", "--address", address); code != 1 || stderr != unhealthy {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	server.Close()
	refused := "babelftp: cannot get /healthz from " + address + ": connect: connection refused: see the log of the " +
		"server, or pass its metrics_listen with --address or --config\n"
	if code, _, stderr := output(t, "", "health", "--address", ":"+port); code != 1 || stderr != refused {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := output(t, "", "health", "--config", file(`metrics_listen: ""`)); code != 1 ||
		stderr != "babelftp: "+errNoMetricsListen.Error()+"\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, _, stderr := output(t, "", "health", "--config", "x", "--address", address); code != 2 ||
		!strings.Contains(stderr, "cannot be combined") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// validHash is a valid argon2id hash.
const validHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"
