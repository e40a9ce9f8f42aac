package kubetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
)

// TestAlerts evaluates the alerts by Prometheus's own engine, after half an hour with a sample a minute. One client that
// fails, or a scan of ports, fires none.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../babelftp/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []struct{ Alert, Expr string }
	if err := yamlutil.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, a := range alerts {
		exprs[a.Alert] = strings.ReplaceAll(a.Expr, "$job", "ftp")
	}
	const (
		never, once, often, always = "0x30", "0x25 1x5", "0+1x30", "0+20x30" // of a counter
		logins                     = `babelftp_logins_total{tenant="acme",result="%s"} `
		requests                   = `babelftp_s3_requests_total{operation="GetObject",status="%s"} `
		transfers                  = `babelftp_transfers_total{tenant="acme",result="%s"} `
		noPorts                    = `babelftp_refusals_total{limit="passive.ports"} `
		noSessions                 = `babelftp_refusals_total{limit="server.sessions",tenant=""} `
		unmatched                  = `babelftp_relays_total{result="unmatched"} `
		missed                     = `babelftp_data_connections_missed_total{} `
		noHeaders                  = `babelftp_proxy_protocol_refused_total{} `
		sessions                   = `babelftp_sessions_total{} `
	)
	of := func(metric, label, values string) string { return fmt.Sprintf(metric, label) + values }
	for _, tt := range []struct {
		name, alert string
		series      []string
		fires       bool
	}{
		{"one-login", "BabelftpLoginsFail", []string{of(logins, "failed", once), of(logins, "accepted", never)}, false},
		{"few-of-many-logins", "BabelftpLoginsFail",
			[]string{of(logins, "failed", often), of(logins, "accepted", always)}, false},
		{"scan-of-passwords", "BabelftpLoginsFail",
			[]string{of(logins, "refused", always), of(logins, "abandoned", always)}, false},
		{"all-logins", "BabelftpLoginsFail",
			[]string{of(logins, "failed", often), of(logins, "abandoned", always)}, true},
		{"one-request", "BabelftpS3Errors", []string{of(requests, "503", once), of(requests, "200", never)}, false},
		{"s3-is-down", "BabelftpS3Errors", []string{of(requests, "error", often), of(requests, "200", often)}, true},
		{"one-transfer", "BabelftpTransfersFail",
			[]string{of(transfers, "failed", once), of(transfers, "complete", never)}, false},
		{"most-transfers", "BabelftpTransfersFail",
			[]string{of(transfers, "failed", often), of(transfers, "complete", often)}, true},
		{"client-above-its-share", "BabelftpPassivePortsUsedUp",
			[]string{noPorts + "0x20 40x10", of(transfers, "complete", "0+100x30")}, false},
		{"no-passive-ports", "BabelftpPassivePortsUsedUp", []string{noPorts + always}, true},
		{"scan-of-passive-ports", "BabelftpRelaysFail",
			[]string{unmatched + "0x20 40x10", missed + "0x20 12x10", of(transfers, "complete", "0+100x30")}, false},
		{"load-balancer-hides-addresses", "BabelftpRelaysFail", []string{unmatched + always, missed + always}, true},
		{"one-session", "BabelftpSessionsRefused", []string{noSessions + once}, false},
		{"full", "BabelftpSessionsRefused", []string{noSessions + always}, true},
		{"scan-of-the-load-balancers-network", "BabelftpProxyHeadersMissing",
			[]string{noHeaders + "0x20 40x10", sessions + "0+100x30"}, false},
		{"headers-are-off", "BabelftpProxyHeadersMissing", []string{noHeaders + always, sessions + never}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var load strings.Builder
			load.WriteString("load 1m\n")
			for _, s := range tt.series {
				load.WriteString("  " + strings.Replace(strings.Replace(s, "{", `{job="ftp",`, 1), ",}", "}", 1) + "\n")
			}
			storage := promqltest.LoadedStorage(t, load.String())
			defer storage.Close()
			query, err := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery).NewInstantQuery(
				t.Context(), storage, nil, exprs[tt.alert], time.Unix(30*60, 0))
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			result := query.Exec(t.Context())
			vector, err := result.Vector()
			if err != nil {
				t.Fatal(err)
			}
			if fires := len(vector) > 0; fires != tt.fires {
				t.Errorf("%s fires: %t, %v", tt.alert, fires, vector)
			}
		})
	}
}
