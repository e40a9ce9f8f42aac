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
	"text/template"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

var update = flag.Bool("update", false, "write the table of metrics in docs/guides/monitoring.md")

// A described metric is a metric as its collector describes it.
type described struct{ name, help, labels string }

func describedBy(t *testing.T, desc *prometheus.Desc) described {
	t.Helper()
	found := regexp.MustCompile(
		`fqName: "(.*?)", help: "(.*?)",.* constLabels: \{(\w*).*?\}, variableLabels: \{(.*)\}\}`).FindStringSubmatch(desc.String())
	if found == nil {
		t.Fatalf("got %v", desc)
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

// everything returns a server with all features that have metrics.
func everything(t *testing.T) *Server {
	t.Helper()
	s, cfg := simulated(t)
	inCluster(cfg, 1)
	cfg.State = stateConfig(t, s).State
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig(), Resources: newMemorySource()})
	must.OK(t, err)
	return srv
}

// The table in the guide has exactly the metrics that the server can show, with the descriptions of /metrics.
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
			"%s is not up to date: run go test ./internal/server -run TestMetricsTable -update",
			file)
	}
	must.OK(t, os.WriteFile(file, []byte(before+begin+table+end+after), 0o644))
}

// Alerts and dashboard panels only select metrics and labels that the server has. Otherwise they would show nothing.
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
				t.Errorf("%s: unknown metric %s", file, selector[1])
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

// The summary of an alert only uses labels that its expression keeps, and reads well without those that may be empty.
func TestSummariesOfAlerts(t *testing.T) {
	var alerts []struct {
		Alert, Expr string
		Annotations map[string]string
	}
	must.OK(t, yaml.Unmarshal([]byte(must.ReadFile(t, "../../deploy/babelftp/files/alerts.yaml")), &alerts))
	functions := template.FuncMap{
		"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", v*100) },
		"humanizeDuration":   func(v float64) string { return fmt.Sprintf("%.4gs", v) },
	}
	// A series may belong to no tenant, to the tenant itself, to its own bucket, or to a certificate without names.
	for _, a := range alerts {
		mayBeEmpty := []string{"user", "folder", "host"}
		// always has a configured tenant
		if !regexp.MustCompile(`babelftp_(bucket|quota|inspector)_`).MatchString(a.Expr) {
			mayBeEmpty = append(mayBeEmpty, "tenant")
		}
		labels := []string{"pod", "instance"} // labels of expressions without aggregation
		if m := regexp.MustCompile(`by \((.*?)\)`).FindStringSubmatch(a.Expr); m != nil {
			labels = strings.Split(m[1], ", ")
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.Annotations["summary"], -1) {
			if !slices.Contains(labels, m[1]) {
				t.Errorf("%s: the expression has no label %s", a.Alert, m[1])
			}
		}
		summary, err := template.New(a.Alert).Funcs(functions).Parse(
			"{{$labels := .Labels}}{{$value := .Value}}" + a.Annotations["summary"])
		must.OK(t, err)
		for empty := range 1 << len(mayBeEmpty) {
			values := map[string]string{}
			for _, label := range labels {
				if at := slices.Index(mayBeEmpty, label); at < 0 || empty>>at&1 == 0 {
					values[label] = "x"
				}
			}
			var text strings.Builder
			must.OK(t, summary.Execute(&text, map[string]any{"Labels": values, "Value": 0.95}))
			if regexp.MustCompile(`<no value>|  |\(\)| [.,)]|\( `).MatchString(text.String()) ||
				regexp.MustCompile(`\b(?:of|the|tenant|user) (?:is|are|has|cannot|fail|expires|takes|judges|still)\b`).
					MatchString(text.String()) {
				t.Errorf("%s with %v: %q", a.Alert, values, text.String())
			}
		}
	}
}

// The alerts only select limits that the server counts.
func TestSelectedLimits(t *testing.T) {
	text := must.ReadFile(t, "../../deploy/babelftp/files/alerts.yaml")
	selected := regexp.MustCompile(`limit=~?"(.*?)"`).FindAllStringSubmatch(text, -1)
	if len(selected) == 0 {
		t.Error("no alert selects a limit")
	}
	for _, m := range selected {
		for _, limit := range strings.Split(m[1], "|") {
			if !slices.Contains(limits.ServerWide(), limit) {
				t.Errorf("an alert selects refusals by %q, which is not a limit of the server", limit)
			}
		}
	}
}

func TestAuditBacklog(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Audit.Webhook = config.Receiver{URL: "http://127.0.0.1:1/", Secret: value.NewSecret("0123456789abcdef")}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	metric(t, srv, `babelftp_audit_lines_waiting{destination="webhook"} 0`)
	metric(t, srv, `babelftp_audit_delay_seconds{destination="webhook"} 0`)
	session(t, srv, "alice")
	metric(t, srv, `babelftp_audit_lines_waiting{destination="webhook"} 1`)
	if hasMetric(t, srv, `babelftp_audit_delay_seconds{destination="webhook"} 0`) {
		t.Error("the waiting line has no delay")
	}
}

// TestInspectorUp checks the metric of two inspectors, one of them down, and of one that a reload removes.
func TestInspectorUp(t *testing.T) {
	s, cfg := simulated(t)
	other := *cfg.Tenants["acme"]
	other.Hosts = []string{"ftp.other.example"}
	cfg.Tenants["other"] = &other
	cfg.Tenants["acme"].Inspect = inspectedBy(t, refuseBad)
	other.Inspect = config.Inspect{Clamd: "tcp://127.0.0.1:1"}
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	metric(t, srv, `babelftp_inspector_up{tenant="acme"} 1`)
	metric(t, srv, `babelftp_inspector_up{tenant="other"} 0`)
	srv.probeInspectors(t.Context())
	if n := strings.Count(log.String(), "inspector failed"); n != 1 {
		t.Errorf("got %d log lines about the inspector", n)
	}
	reload(t, srv, changed(t, cfg, func(next *config.Config) {
		next.Tenants["other"].Inspect = inspectedBy(t, refuseBad)
		next.Tenants["acme"].Inspect = config.Inspect{}
	}, "other", "acme"))
	srv.probeInspectors(t.Context())
	metric(t, srv, `babelftp_inspector_up{tenant="other"} 1`)
	if _, body := get(t, srv, "/metrics"); strings.Contains(body, `babelftp_inspector_up{tenant="acme"}`) {
		t.Error("unexpected series of a tenant without an inspector")
	}
}

// TestSessionsWithOldKeys checks the metric for sessions that began before an access key was replaced.
func TestSessionsWithOldKeys(t *testing.T) {
	s, cfg := simulated(t)
	other := *cfg.Tenants["acme"]
	other.Hosts = []string{"ftp.other.example"}
	cfg.Tenants["other"] = &other
	const old, gone = `babelftp_sessions_with_old_s3_key{tenant="acme"} `, `babelftp_sessions_with_old_s3_key{tenant=""} `
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	first, second := session(t, srv, "alice"), session(t, srv, "alice")
	wantMetrics(t, srv, old+"0")
	// Keep the key, and change another setting.
	reload(t, srv, changed(t, cfg, func(next *config.Config) {
		next.Tenants["acme"].Prefix = "elsewhere/"
	}, "acme"))
	wantMetrics(t, srv, old+"0")
	rotated := changed(t, cfg, func(next *config.Config) {
		next.S3.SecretAccessKey = value.NewSecret("another")
	}, "acme")
	reload(t, srv, rotated)
	wantMetrics(t, srv, old+"2")
	session(t, srv, "alice")
	wantMetrics(t, srv, old+"2")
	first.Command(221, "QUIT")
	metric(t, srv, old+"1")
	reload(t, srv, changed(t, rotated, func(next *config.Config) { delete(next.Tenants, "acme") }))
	wantMetrics(t, srv, gone+"2")
	second.Command(221, "QUIT")
	metric(t, srv, gone+"1")
}

// The metrics follow the conventions of Prometheus, including those that have no value yet.
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

// Bytes are counted while they move, and the transfer counts as active.
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
		t.Error("the transfer was counted before its end")
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

// A request that the SDK retries counts as two requests and one retry. A request without a response has the status
// "error".
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

// A reload removes the series of a removed tenant. Its last sessions are counted without a tenant name, until the
// tenant is configured again.
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
				t.Errorf("/metrics: unexpected %s", line)
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
