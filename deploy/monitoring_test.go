package deploy

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

const monitoring = "../docs/guides/monitoring.md"

// TestAlerts checks that the guide to monitoring explains each alert. A test of internal/server checks that
// its metrics exist.
func TestAlerts(t *testing.T) {
	page := must.ReadFile(t, monitoring)
	headings := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^### (Babelftp\w+)$`).FindAllStringSubmatch(page, -1) {
		headings[strings.ToLower(m[1])] = m[1]
	}
	r := render(t, filepath.Join(chart, "ci", "metallb-values.yaml"))
	groups := r.only(t, "PrometheusRule").Spec.Groups
	if len(groups) != 1 {
		t.Fatalf("%d groups of rules", len(groups))
	}
	own := 0
	for _, alert := range groups[0].Rules {
		_, anchor, _ := strings.Cut(alert.Annotations["runbook_url"], "#")
		if anchor == "" {
			continue // an additional rule from the values
		}
		own++
		if headings[anchor] != alert.Alert {
			t.Errorf("%s: %s has no heading %q", alert.Alert, monitoring, "### "+alert.Alert)
		}
		delete(headings, anchor)
		if alert.Annotations["summary"] == "" || alert.Labels["severity"] == "" || alert.Labels["team"] != "storage" {
			t.Errorf("%s: annotations %v, labels %v", alert.Alert, alert.Annotations, alert.Labels)
		}
		if !strings.Contains(alert.Expr, `job="ftp/test-babelftp"`) {
			t.Errorf("%s also selects other releases: %s", alert.Alert, alert.Expr)
		}
	}
	if own == 0 || len(headings) > 0 {
		t.Errorf(
			"%d alerts; %s has headings without an alert: %v", own, monitoring, slices.Collect(maps.Values(headings)))
	}
}

// TestDashboard checks that panels use existing metrics and do not overlap.
func TestDashboard(t *testing.T) {
	r := render(t, filepath.Join(chart, "ci", "metallb-values.yaml"))
	o := r.find("ConfigMap", "test-babelftp-dashboard")
	if o.Metadata.Labels["grafana_dashboard"] != "1" {
		t.Errorf("the sidecar of Grafana does not find the dashboard by the labels %v", o.Metadata.Labels)
	}
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	must.OK(t, json.Unmarshal([]byte(o.Data["babelftp.json"]), &dashboard))
	if len(dashboard.Panels) == 0 {
		t.Error("no panels")
	}
	taken := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s: no expressions", p.Title)
		}
		for _, target := range p.Targets {
			if !strings.Contains(target.Expr, `job="$job"`) {
				t.Errorf("%s also shows other releases: %s", p.Title, target.Expr)
			}
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, there := taken[[2]int{x, y}]; there || x >= 24 {
					t.Fatalf("%s overlaps %q or is outside of the grid", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
