package server

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/ftp/relay"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

var update = flag.Bool("update", false, "write the table of metrics in docs/guides/monitoring.md")

// A described metric is what its collector says of it.
type described struct{ name, help, labels string }

func describedBy(t *testing.T, desc *prometheus.Desc) described {
	t.Helper()
	found := regexp.MustCompile(
		`fqName: "(.*?)", help: "(.*?)",.* constLabels: \{(\w*).*?\}, variableLabels: \{(.*)\}\}`).FindStringSubmatch(desc.String())
	if found == nil {
		t.Fatalf("%v", desc)
	}
	return described{found[1], found[2], strings.ReplaceAll(strings.Trim(found[3]+","+found[4], ","), ",", ", ")}
}

// describe returns all metrics of the project that a server may show.
func describe(t *testing.T, m *admin.Metrics) map[string]described {
	t.Helper()
	all := map[string]described{}
	for _, c := range m.Collectors() {
		descs := make(chan *prometheus.Desc)
		go func() {
			c.Describe(descs)
			close(descs)
		}()
		for desc := range descs {
			if d := describedBy(t, desc); strings.HasPrefix(d.name, "babelftp_") {
				all[d.name] = d
			}
		}
	}
	return all
}

// everything is a server with all that has metrics.
func everything(t *testing.T) *Server {
	t.Helper()
	s, cfg := simulated(t)
	inCluster(cfg, 1)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	return srv
}

// The table in the guide has exactly the metrics that the server may show, in the words of /metrics.
func TestMetricsTable(t *testing.T) {
	const begin, end = "<!-- begin metrics: go test ./internal/server -run TestMetricsTable -update -->\n",
		"<!-- end -->"
	const file = "../../docs/guides/monitoring.md"
	all := describe(t, everything(t).metrics)
	table := "| metric and labels | what it shows |\n| --- | --- |\n"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		labels := all[name].labels
		if labels != "" {
			labels = "{" + labels + "}"
		}
		table += fmt.Sprintf("| `%s%s` | %s |\n", name, labels, all[name].help)
	}
	text := must.ReadFile(t, file)
	before, rest, found := strings.Cut(text, begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	if old == table {
		return
	}
	if !*update {
		t.Fatalf(
			"%s does not show the metrics as they are: run go test ./internal/server -run TestMetricsTable -update",
			file)
	}
	must.OK(t, os.WriteFile(file, []byte(before+begin+table+end+after), 0o644))
}

// An alert or a panel of the dashboard that selects a metric or a label which the server does not have shows nothing.
func TestSelectors(t *testing.T) {
	all := describe(t, everything(t).metrics)
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		text := must.ReadFile(t, filepath.Join("../../deploy/babelftp/files", file))
		selectors := regexp.MustCompile(`\b(babelftp_[a-z0-9_]+?)(?:_bucket|_count|_sum)?(?:\{([^{}]*)\}|\b)`).
			FindAllStringSubmatch(strings.ReplaceAll(text, `\"`, `"`), -1)
		if len(selectors) < 10 {
			t.Errorf("%s selects %d metrics", file, len(selectors))
		}
		for _, selector := range selectors {
			m, known := all[selector[1]]
			if !known {
				t.Errorf("%s: there is no metric %s", file, selector[1])
			}
			labels := append(strings.Split(m.labels, ", "), "job", "pod", "instance", "le")
			for _, label := range regexp.MustCompile(`(\w+)\s*(?:=~|=|!=|!~)\s*"`).FindAllStringSubmatch(selector[2], -1) {
				if !slices.Contains(labels, label[1]) {
					t.Errorf("%s: %s has no label %s", file, selector[1], label[1])
				}
			}
		}
	}
}

// The metrics follow the conventions of Prometheus, those too that have no value yet.
func TestMetricsFollowConventions(t *testing.T) {
	m := everything(t).metrics
	for _, c := range m.Collectors() {
		descs := make(chan *prometheus.Desc, 1)
		switch c := c.(type) {
		case *prometheus.CounterVec:
			c.Describe(descs)
			c.WithLabelValues(strings.Split(describedBy(t, <-descs).labels, ", ")...)
		case *admin.TenantCounter:
			c.Describe(descs)
			c.WithLabelValues(strings.Split(describedBy(t, <-descs).labels, ", ")...)
		case *prometheus.HistogramVec:
			c.Describe(descs)
			c.WithLabelValues(strings.Split(describedBy(t, <-descs).labels, ", ")...)
		case *admin.RelayMetrics:
			c.RelayClosed(relay.Complete)
			c.RelayRefused(relay.NoPeer)
		}
	}
	problems, err := testutil.GatherAndLint(m)
	must.OK(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "babelftp_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// Bytes count while they move, and the transfer as running.
func TestMetricsOfRunningTransfer(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	srv := start(t, servicetest.NewConfig(t, s), Options{AWS: s.AWSConfig()})
	c := session(t, srv, "alice")
	data := c.Data()
	c.Command(150, "STOR f")
	must.Write(t, data, "seven b")
	metric(t, srv, `babelftp_transfer_bytes_total{direction="upload",tenant="acme"} 7`)
	metric(t, srv, `babelftp_transfers_active{direction="upload",tenant="acme"} 1`)
	if hasMetric(t, srv, `babelftp_transfers_total{direction="upload",result="complete",tenant="acme"} 1`) {
		t.Error("the transfer counts before its end")
	}
	must.OK(t, data.Close())
	c.Reply(226)
	c.Transfer("LIST")
	c.Command(221, "QUIT")
	wantMetrics(t, srv,
		`babelftp_transfer_bytes_total{direction="upload",tenant="acme"} 7`,
		`babelftp_transfers_active{direction="upload",tenant="acme"} 0`,
		`babelftp_transfers_total{direction="upload",result="complete",tenant="acme"} 1`,
		`babelftp_transfers_total{direction="listing",result="complete",tenant="acme"} 1`,
		`babelftp_transfer_duration_seconds_count{direction="upload"} 1`,
		`babelftp_transfer_first_byte_seconds_count{direction="upload"} 1`,
		`babelftp_s3_requests_total{operation="PutObject",status="200",tenant="acme"} 1`,
		`babelftp_memory_waiting_parts 0`,
		`babelftp_uploads_open{tenant="acme"} 0`,
		`babelftp_bans_active{kind="user"} 0`,
	)
}

// A request that the SDK repeats counts twice, and once as a repetition. One that gets no answer has the status error.
func TestMetricsOfRetries(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	proxy := s3test.StartProxy(t, s)
	srv := start(t, servicetest.NewConfig(t, proxy.Server()), Options{AWS: proxy.Server().AWSConfig()})
	c := session(t, srv, "alice")
	proxy.Inject(
		s3test.Fault{Operation: "PutObject", Times: 1,
			Effect: s3test.Refuse(http.StatusServiceUnavailable, "SlowDown")})
	c.Store("f", "content")
	proxy.Inject(s3test.Fault{Operation: "DeleteObject", Times: 1, Effect: s3test.ResetRequest()})
	c.Command(250, "DELE f")
	wantMetrics(t, srv,
		`babelftp_s3_requests_total{operation="PutObject",status="503",tenant="acme"} 1`,
		`babelftp_s3_requests_total{operation="DeleteObject",status="error",tenant="acme"} 1`,
		`babelftp_s3_requests_total{operation="PutObject",status="200",tenant="acme"} 1`,
		`babelftp_s3_retries_total{operation="PutObject",tenant="acme"} 1`,
		`babelftp_s3_retries_total{operation="DeleteObject",tenant="acme"} 1`,
	)
}

// A reload removes the series of a tenant that is gone. What its last sessions do counts without a name, and when the
// tenant comes back it counts again.
func TestMetricsOfRemovedTenant(t *testing.T) {
	s, cfg := simulated(t)
	other := servicetest.NewConfig(t, s).Tenants["acme"]
	other.Hosts = []string{"ftp.other.example"}
	cfg.Tenants["other"] = other
	cfg.Tenants["acme"].Quota = 1000
	cfg.Tenants["acme"].Limits.Tenant.Transfers = 1
	cfg.Tenants["acme"].Webhook = config.Webhook{Receiver: config.Receiver{URL: "http://127.0.0.1:1/",
		Secret: value.NewSecret("0123456789abcdef")}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	c := session(t, srv, "alice")
	c.Store("first", "content")
	second := session(t, srv, "alice")
	data := c.Data()
	c.Command(150, "STOR f")
	must.Write(t, data, "seven b")
	second.Data()
	second.Command(450, "STOR g")
	metric(t, srv, `babelftp_transfer_bytes_total{direction="upload",tenant="acme"} 14`)
	wantMetrics(t, srv,
		`babelftp_logins_total{result="accepted",tenant="acme"} 2`,
		`babelftp_refusals_total{limit="tenant.transfers",tenant="acme"} 1`,
		`babelftp_transfers_active{direction="upload",tenant="acme"} 1`,
		`babelftp_transfers_total{direction="upload",result="complete",tenant="acme"} 1`,
		`babelftp_webhook_events_total{result="delivered",tenant="acme"} 0`,
	)
	if _, body := get(t, srv, "/metrics"); !strings.Contains(
		body, `babelftp_s3_requests_total{operation="PutObject",status="200",tenant="acme"}`) {
		t.Error("/metrics lacks the requests of the tenant")
	}
	reload(t, srv, changed(t, cfg, func(next *config.Config) { delete(next.Tenants, "acme") }))
	none := func() {
		t.Helper()
		_, body := get(t, srv, "/metrics")
		for line := range strings.Lines(body) {
			if strings.Contains(line, `tenant="acme"`) {
				t.Errorf("/metrics has %s", line)
			}
		}
	}
	none()
	wantMetrics(t, srv,
		`babelftp_transfers_active{direction="upload",tenant=""} 1`,
		`babelftp_transfer_bytes_total{direction="upload",tenant=""} 7`,
	)
	must.OK(t, data.Close())
	c.Reply(226)
	c.Transfer("LIST")
	c.Command(221, "QUIT")
	second.Command(221, "QUIT")
	none()
	wantMetrics(t, srv,
		`babelftp_transfers_active{direction="upload",tenant=""} 0`,
		`babelftp_transfer_bytes_total{direction="upload",tenant=""} 7`,
		`babelftp_transfers_total{direction="upload",result="complete",tenant=""} 1`,
		`babelftp_transfers_total{direction="listing",result="complete",tenant=""} 1`,
	)
	reload(t, srv, cfg)
	session(t, srv, "alice")
	metric(t, srv, `babelftp_logins_total{result="accepted",tenant="acme"} 1`)
	wantMetrics(t, srv, `babelftp_config_reloads_total{result="accepted"} 2`)
}
