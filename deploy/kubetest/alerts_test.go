package kubetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/template"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
)

// TestAlerts evaluates the alerts and their summaries with the engine of Prometheus, after half an hour with
// one sample per minute. A single failing client or a port scan triggers no alert. Each alert fires with
// every label that may be empty.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../babelftp/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []struct {
		Alert, Expr string
		Annotations map[string]string
	}
	if err := yamlutil.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	exprs, summaries, fired := map[string]string{}, map[string]string{}, map[string]bool{}
	for _, a := range alerts {
		exprs[a.Alert], summaries[a.Alert] = strings.ReplaceAll(a.Expr, "$job", "ftp"), a.Annotations["summary"]
	}
	const (
		never, once, often, always = "0x30", "0x25 1x5", "0+1x30", "0+20x30" // values of a counter
		logins                     = `babelftp_logins_total{tenant="acme",result="%s"} `
		requests                   = `babelftp_s3_requests_total{operation="GetObject",status="%s"} `
		transfers                  = `babelftp_transfers_total{tenant="acme",result="%s"} `
		noPorts                    = `babelftp_refusals_total{limit="passive.ports"} `
		noSessions                 = `babelftp_refusals_total{limit="server.sessions",tenant=""} `
		unmatched                  = `babelftp_relays_total{result="unmatched"} `
		missed                     = `babelftp_data_connections_missed_total{} `
		noHeaders                  = `babelftp_proxy_protocol_refused_total{} `
		sessions                   = `babelftp_sessions_total{} `
		quota                      = `babelftp_quota_%s_bytes{tenant="scans",user="%s"} `
		delay                      = `babelftp_audit_delay_seconds{destination="webhook"} `
		inspector                  = `babelftp_inspector_up{tenant="acme",pod="%s"} `
		oldKeys                    = `babelftp_sessions_with_old_s3_key{tenant="%s"} `
		expiry                     = `babelftp_tls_certificate_expiry_timestamp_seconds{tenant="%s",host="%s"} `
		leader                     = `babelftp_custom_resources_leader{pod="%s"} `
		stateUp                    = `babelftp_state_up{pod="%s"} `
		kubernetesUp               = `babelftp_kubernetes_up{pod="%s"} `
		bucket                     = `babelftp_bucket_up{tenant="acme",folder="%s"} `
		webhook                    = `babelftp_webhook_events_total{tenant="%s",result="postponed"} `
	)
	of := func(metric, label, values string) string { return fmt.Sprintf(metric, label) + values }
	for _, tt := range []struct {
		name, alert string
		series      []string
		summary     string // empty if the alert does not fire
	}{
		{"one-login", "BabelftpLoginsFail", []string{of(logins, "failed", once), of(logins, "accepted", never)}, ""},
		{"few-of-many-logins", "BabelftpLoginsFail",
			[]string{of(logins, "failed", often), of(logins, "accepted", always)}, ""},
		{"scan-of-passwords", "BabelftpLoginsFail",
			[]string{of(logins, "refused", always), of(logins, "abandoned", always)}, ""},
		{"all-logins", "BabelftpLoginsFail",
			[]string{of(logins, "failed", often), of(logins, "abandoned", always)},
			"Users of the tenant acme cannot log in, because of an error."},
		{"logins-without-a-tenant", "BabelftpLoginsFail",
			[]string{`babelftp_logins_total{tenant="",result="failed"} ` + often},
			"Users cannot log in, because of an error."},
		{"one-request", "BabelftpS3Errors", []string{of(requests, "503", once), of(requests, "200", never)}, ""},
		{"s3-is-down", "BabelftpS3Errors", []string{of(requests, "error", often), of(requests, "200", often)},
			"50% of the requests GetObject to S3 fail."},
		{"one-transfer", "BabelftpTransfersFail",
			[]string{of(transfers, "failed", once), of(transfers, "complete", never)}, ""},
		{"most-transfers", "BabelftpTransfersFail",
			[]string{of(transfers, "failed", often), of(transfers, "complete", often)},
			"50% of the transfers of the tenant acme fail."},
		{"transfers-of-removed-tenants", "BabelftpTransfersFail",
			[]string{`babelftp_transfers_total{tenant="",result="failed"} ` + often}, "100% of the transfers fail."},
		{"client-above-its-share", "BabelftpPassivePortsUsedUp",
			[]string{noPorts + "0x20 40x10", of(transfers, "complete", "0+100x30")}, ""},
		{"no-passive-ports", "BabelftpPassivePortsUsedUp", []string{noPorts + always},
			"Clients get 425, because no passive port is free for them."},
		{"scan-of-passive-ports", "BabelftpRelaysFail",
			[]string{unmatched + "0x20 40x10", missed + "0x20 12x10", of(transfers, "complete", "0+100x30")}, ""},
		{"load-balancer-hides-addresses", "BabelftpRelaysFail", []string{unmatched + always, missed + always},
			"Replicas do not pass data connections on (unmatched), so transfers get 425."},
		{"one-session", "BabelftpSessionsRefused", []string{noSessions + once}, ""},
		{"full", "BabelftpSessionsRefused", []string{noSessions + always},
			"Clients get 421, because the server has reached server.sessions."},
		{"scan-of-the-load-balancers-network", "BabelftpProxyHeadersMissing",
			[]string{noHeaders + "0x20 40x10", sessions + "0+100x30"}, ""},
		{"headers-are-off", "BabelftpProxyHeadersMissing", []string{noHeaders + always, sessions + never},
			"A load balancer sends no PROXY headers, so its clients are refused."},
		{"quota-of-a-user", "BabelftpQuotaNearlyUsed",
			[]string{fmt.Sprintf(quota, "used", "kenji") + "95x30", fmt.Sprintf(quota, "limit", "kenji") + "100x30"},
			"95% of the quota of the user kenji of the tenant scans is used."},
		{"quota-of-a-tenant", "BabelftpQuotaNearlyUsed",
			[]string{fmt.Sprintf(quota, "used", "") + "95x30", fmt.Sprintf(quota, "limit", "") + "100x30"},
			"95% of the quota of the tenant scans is used."},
		{"quota-with-room", "BabelftpQuotaNearlyUsed",
			[]string{fmt.Sprintf(quota, "used", "") + "80x30", fmt.Sprintf(quota, "limit", "") + "100x30"}, ""},
		{"audit-lines-that-wait-a-moment", "BabelftpAuditBehind", []string{delay + "3x30"}, ""},
		{"audit-webhook-down", "BabelftpAuditBehind", []string{delay + "0+60x30"},
			"The audit log for webhook is 30m 0s behind."},
		{"inspector-up", "BabelftpInspectorDown", []string{of(inspector, "a", "1x30"), of(inspector, "b", "1x30")}, ""},
		{"inspector-missed-a-probe", "BabelftpInspectorDown", []string{of(inspector, "a", "1x28 0 1")}, ""},
		{"inspector-of-one-replica-down", "BabelftpInspectorDown",
			[]string{of(inspector, "a", "1x30"), of(inspector, "b", "0x30")},
			"The inspector of the tenant acme judges no files."},
		{"s3-key-in-use", "BabelftpOldS3KeyInUse", []string{of(oldKeys, "acme", "0x30")}, ""},
		{"rotated-s3-key-in-use", "BabelftpOldS3KeyInUse", []string{of(oldKeys, "acme", "2x30")},
			"2 sessions of the tenant acme still use an S3 access key that the configuration no longer has."},
		{"s3-key-of-removed-tenants", "BabelftpOldS3KeyInUse", []string{of(oldKeys, "", "2x30")},
			"2 sessions of tenants that were removed still use an S3 access key that the configuration no longer has."},
		{"certificate", "BabelftpCertificateExpires",
			[]string{fmt.Sprintf(expiry, "acme", "ftp.acme.example") + "88200x30"},
			"The certificate of ftp.acme.example (tenant acme) expires in 1d 0h 0m 0s."},
		{"certificate-without-a-name", "BabelftpCertificateExpires", []string{fmt.Sprintf(expiry, "", "") + "1x30"},
			"The certificate has expired."},
		{"state-available", "BabelftpStateUnavailable", []string{fmt.Sprintf(stateUp, "a") + "1x10 0x3 1x17"}, ""},
		{"state-unavailable", "BabelftpStateUnavailable",
			[]string{fmt.Sprintf(stateUp, "a") + "0x30", fmt.Sprintf(stateUp, "b") + "1x30"},
			"The replica a of babelftp cannot read or write the state that replicas share."},
		{"kubernetes-available", "BabelftpKubernetesUnavailable", []string{fmt.Sprintf(kubernetesUp, "a") + "1x10 0x3 1x17"}, ""},
		{"kubernetes-unavailable", "BabelftpKubernetesUnavailable",
			[]string{fmt.Sprintf(kubernetesUp, "a") + "0x30", fmt.Sprintf(kubernetesUp, "b") + "1x30"},
			"The replica a of babelftp does not learn of changes of custom resources."},
		{"other-leader", "BabelftpResourceStatusNotWritten",
			[]string{fmt.Sprintf(leader, "a") + "1x15 0x15", fmt.Sprintf(leader, "b") + "0x15 1x15",
				fmt.Sprintf(kubernetesUp, "a") + "1x30"}, ""},
		{"no-leader-without-kubernetes", "BabelftpResourceStatusNotWritten",
			[]string{fmt.Sprintf(leader, "a") + "0x30", fmt.Sprintf(kubernetesUp, "a") + "0x30"}, ""},
		{"no-leader", "BabelftpResourceStatusNotWritten",
			[]string{fmt.Sprintf(leader, "a") + "1x10 0x20", fmt.Sprintf(leader, "b") + "0x30",
				fmt.Sprintf(kubernetesUp, "a") + "1x30"},
			"No replica of babelftp writes the status of FTPTenants and FTPUsers."},
		{"bucket", "BabelftpBucketUnusable", []string{of(bucket, "", "0x30")},
			"The bucket of the tenant acme cannot be used."},
		{"bucket-of-a-folder", "BabelftpBucketUnusable", []string{of(bucket, "/in", "0x30")},
			"The bucket of the folder /in of the tenant acme cannot be used."},
		{"webhook-down", "BabelftpWebhookPostponed", []string{of(webhook, "acme", often)},
			"The webhook of the tenant acme takes no events."},
		{"webhook-of-a-removed-tenant", "BabelftpWebhookPostponed", []string{of(webhook, "", often)},
			"The webhook of a tenant that was removed takes no events."},
		{"no-replica", "BabelftpDown", []string{`up{pod="a"} 0x30`}, "No replica of babelftp answers Prometheus."},
		{"one-replica-down", "BabelftpReplicaDown", []string{`up{pod="a"} 0x30`, `up{pod="b"} 1x30`},
			"The replica a of babelftp does not answer Prometheus."},
		{"replica-without-a-pod", "BabelftpReplicaDown", []string{`up{instance="192.0.2.7:9121"} 0x30`},
			"The replica 192.0.2.7:9121 of babelftp does not answer Prometheus."},
		{"configuration", "BabelftpConfigurationRefused", []string{`babelftp_config_reload_success{} 0x30`},
			"A replica has refused a changed configuration, and still uses the previous one."},
		{"acme", "BabelftpCertificateNotRenewed", []string{`babelftp_acme_certificates_total{result="failed"} ` + often},
			"ACME has refused a certificate several times in a day."},
		{"audit-lines-lost", "BabelftpAuditLinesLost",
			[]string{`babelftp_audit_lines_lost_total{destination="file"} ` + often},
			"The audit log has lost lines for file."},
		{"panic", "BabelftpPanics", []string{`babelftp_panics_total{} ` + often},
			"A bug has ended a session, a data connection or a relay."},
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
			if fires := len(vector) > 0; fires != (tt.summary != "") {
				t.Fatalf("%s fires: %t, %v", tt.alert, fires, vector)
			}
			for _, sample := range vector {
				fired[tt.alert] = true
				data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
				summary, err := template.NewTemplateExpander(
					t.Context(), "{{$labels := .Labels}}{{$value := .Value}}"+summaries[tt.alert], tt.alert, data,
					model.TimeFromUnix(30*60), nil, nil, nil).Expand()
				if err != nil || summary != tt.summary {
					t.Errorf("the summary is %q, %v; want %q", summary, err, tt.summary)
				}
			}
		})
	}
	for alert := range exprs {
		if !fired[alert] {
			t.Errorf("%s never fires here", alert)
		}
	}
}
