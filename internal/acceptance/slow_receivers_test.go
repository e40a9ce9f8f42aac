package acceptance_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestTracesOfAnotherUser: mallory sends commands while the collector does not respond. Afterwards the spans of
// alice must still arrive.
func TestTracesOfAnotherUser(t *testing.T) {
	t.Parallel()
	collector := servicetest.StartCollector(t)
	to, err := url.Parse(collector.URL)
	must.OK(t, err)
	gate := make(chan struct{})
	open := sync.OnceFunc(func() { close(gate) })
	forward := httputil.NewSingleHostReverseProxy(to)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-gate
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(open)
	s := &site{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + slow.URL, "OTEL_EXPORTER_OTLP_TIMEOUT=120000"}}
	s.open(t, s3test.Start(t, "minio"), mallory())
	attacker, alice := ftptest.Dial(t, s.address), ftptest.Dial(t, s.address)
	attacker.Login("mallory@acme", servicetest.Password)
	alice.Login("alice@acme", password)
	const flood, asked = 6000, 300
	for range flood {
		attacker.Command(200, "NOOP")
	}
	for range asked {
		alice.Command(257, "PWD")
	}
	open()
	alice.Command(221, "QUIT")
	s.stop(t) // flushes pending spans
	spans := map[string]int{}
	for _, span := range collector.Spans() {
		spans[span.Name]++
	}
	if spans["PWD"] != asked || spans["NOOP"] == 0 || spans["NOOP"] > flood/2 {
		t.Errorf("got %v, want %d spans of PWD and a share of NOOP", spans, asked)
	}
}
