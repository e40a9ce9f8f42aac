package admin

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A partCollector reads the state of a part of the server on each scrape.
type partCollector struct {
	metrics []metric // all metrics that collect may send
	collect func(to chan<- prometheus.Metric)
}

// Describe implements [prometheus.Collector].
func (c *partCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		descs <- m.desc
	}
}

// Collect implements [prometheus.Collector].
func (c *partCollector) Collect(to chan<- prometheus.Metric) { c.collect(to) }

// A metric is a metric of a [partCollector].
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newGauge(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(namespace+"_"+name, help, labels, nil), prometheus.GaugeValue}
}

func newCounter(name, help string, labels ...string) metric {
	return metric{prometheus.NewDesc(namespace+"_"+name, help, labels, nil), prometheus.CounterValue}
}

// send sends a value with the values of the labels.
func (m metric) send(to chan<- prometheus.Metric, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

// CollectAudit returns a collector for the lines of the audit log that wait for a destination.
func CollectAudit(backlogs func() []audit.Backlog) prometheus.Collector {
	waiting := newGauge("audit_lines_waiting",
		"Lines of the audit log that wait for file, stdout or webhook. Beyond 16 MiB for one of them, lines are lost.",
		"destination")
	delay := newGauge("audit_delay_seconds",
		"How long the oldest waiting line of the audit log has waited for file, stdout or webhook; 0 if no line waits.",
		"destination")
	return &partCollector{[]metric{waiting, delay}, func(to chan<- prometheus.Metric) {
		for _, b := range backlogs() {
			waiting.send(to, float64(b.Lines), b.Destination)
			delay.send(to, b.Delay.Seconds(), b.Destination)
		}
	}}
}

// CollectBans returns a collector for the active bans of a list.
func CollectBans(list *bans.List) prometheus.Collector {
	active := newGauge("bans_active", "Active bans of this kind: address, network or user.", "kind")
	return &partCollector{[]metric{active}, func(to chan<- prometheus.Metric) {
		count := map[string]int{"address": 0, "network": 0, "user": 0}
		for _, b := range list.All() {
			count[b.Kind()]++
		}
		for kind, n := range count {
			active.send(to, float64(n), kind)
		}
	}}
}

// CollectBuckets returns a collector for the availability of buckets. A bucket appears after its first check.
func CollectBuckets(all func() []*s3client.Bucket) prometheus.Collector {
	up := newGauge(
		"bucket_up", "1 if the bucket of a tenant, or of one of its folders, could be used at the last check, else 0.",
		"tenant", "folder")
	return &partCollector{[]metric{up}, func(to chan<- prometheus.Metric) {
		for _, b := range all() {
			switch known, err := b.Up(); {
			case !known:
			case err != nil:
				up.send(to, 0, b.Tenant, b.Folder)
			default:
				up.send(to, 1, b.Tenant, b.Folder)
			}
		}
	}}
}

// CollectState returns a collector for the availability of the shared state.
func CollectState(store *state.Store) prometheus.Collector {
	up := newGauge("state_up", "1 if the shared state could be read within the last seconds, else 0. Only with state.")
	return &partCollector{[]metric{up}, func(to chan<- prometheus.Metric) {
		value := 0.0
		if store.Up() {
			value = 1
		}
		up.send(to, value)
	}}
}

// CollectKubernetes returns a collector that shows whether changes of custom resources arrive. problem returns why not.
func CollectKubernetes(problem func() (since time.Time, err error)) prometheus.Collector {
	up := newGauge("kubernetes_up",
		"1 if changes of custom resources arrive from the Kubernetes API server, else 0. Only with custom resources.")
	return &partCollector{[]metric{up}, func(to chan<- prometheus.Metric) {
		value := 1.0
		if _, err := problem(); err != nil {
			value = 0
		}
		up.send(to, value)
	}}
}

// CollectCertificates returns a collector for the expiry of certificates. Changed files are read first.
func CollectCertificates(set *certs.Set) prometheus.Collector {
	ends := newGauge(
		"tls_certificate_expiry_timestamp_seconds",
		"When a certificate expires, in seconds since 1970. Its host is its first name.", "tenant", "host")
	return &partCollector{[]metric{ends}, func(to chan<- prometheus.Metric) {
		for _, c := range set.Certificates() {
			ends.send(to, float64(c.NotAfter.Unix()), c.Tenant, c.Host)
		}
	}}
}

// CollectResources returns a collector for the custom resources of Kubernetes. leads reports whether this replica
// writes their status.
func CollectResources(merged func() *config.ResourceMerge, leads func() bool) prometheus.Collector {
	count := newGauge("custom_resources",
		"Custom resources of a kind. accepted is true if their current version is in use, else false.", "kind", "accepted")
	leader := newGauge("custom_resources_leader", "1 if this replica writes the status of custom resources, else 0.")
	return &partCollector{[]metric{count, leader}, func(to chan<- prometheus.Metric) {
		type label struct {
			kind     config.ResourceKind
			accepted bool
		}
		counts := map[label]int{}
		for _, kind := range []config.ResourceKind{config.TenantResource, config.UserResource} {
			counts[label{kind, true}], counts[label{kind, false}] = 0, 0
		}
		if m := merged(); m != nil {
			for _, o := range m.Outcomes {
				counts[label{o.Resource.Kind, o.Reason == config.ResourceAccepted}]++
			}
		}
		for l, n := range counts {
			count.send(to, float64(n), string(l.kind), strconv.FormatBool(l.accepted))
		}
		value := 0.0
		if leads() {
			value = 1
		}
		leader.send(to, value)
	}}
}

// CollectInspectors returns a collector that shows whether the inspector of each tenant gave a verdict on the
// file of the last probe. A tenant appears after its first probe.
func CollectInspectors(up func() map[string]bool) prometheus.Collector {
	shown := newGauge("inspector_up",
		"1 if the inspector of a tenant judged the file of the last probe, else 0. There is one probe a minute.", "tenant")
	return &partCollector{[]metric{shown}, func(to chan<- prometheus.Metric) {
		for tenant, works := range up() {
			value := 0.0
			if works {
				value = 1
			}
			shown.send(to, value, tenant)
		}
	}}
}

// CollectMemory returns a collector for the memory budget that parts of uploads share.
func CollectMemory(budget *driver.Budget) prometheus.Collector {
	limit := newGauge("memory_limit_bytes", "Memory for parts of uploads, and for what is read ahead (memory).")
	used := newGauge("memory_used_bytes", "Memory in use, of babelftp_memory_limit_bytes.")
	waiting := newGauge("memory_waiting_parts", "Parts of uploads that wait for memory. Their clients wait too.")
	waits := newCounter("memory_waits_total", "Parts of uploads that had to wait for memory.")
	waited := newCounter("memory_wait_seconds_total", "Time that parts of uploads waited for memory.")
	return &partCollector{[]metric{limit, used, waiting, waits, waited}, func(to chan<- prometheus.Metric) {
		w := budget.Waits()
		limit.send(to, float64(budget.Limit()))
		used.send(to, float64(budget.Used()))
		waiting.send(to, float64(w.Waiting))
		waits.send(to, float64(w.Total))
		waited.send(to, w.Time.Seconds())
	}}
}

// CollectPanics returns a collector for the panics that a guard has recovered.
func CollectPanics(guard *panics.Guard) prometheus.Collector {
	total := newCounter(
		"panics_total",
		"Bugs that have ended a session, a data connection or a relay. The log has their stacks; report them.")
	return &partCollector{[]metric{total}, func(to chan<- prometheus.Metric) { total.send(to, float64(guard.Count())) }}
}

// CollectPassivePorts returns a collector for the passive ports in use.
func CollectPassivePorts(ports *dataconn.Ports) prometheus.Collector {
	used := newGauge("passive_ports", "Passive ports on which sessions wait for their clients.")
	return &partCollector{[]metric{used}, func(to chan<- prometheus.Metric) { used.send(to, float64(ports.InUse())) }}
}

// CollectQuotas returns a collector for quotas and their usage. The usage appears after the first count.
func CollectQuotas(all func() []*account.Quota) prometheus.Collector {
	limit := newGauge("quota_limit_bytes", "Quota; without a user, of the tenant.", "tenant", "user")
	used := newGauge("quota_used_bytes", "Stored bytes that count for the quota.", "tenant", "user")
	return &partCollector{[]metric{limit, used}, func(to chan<- prometheus.Metric) {
		for _, q := range all() {
			limit.send(to, float64(q.Limit), q.Tenant, q.User)
			if bytes, known := q.Used(); known {
				used.send(to, float64(bytes), q.Tenant, q.User)
			}
		}
	}}
}

// CollectOldKeys returns a collector for the sessions, by tenant, that still use an S3 access key which was
// removed from the configuration.
func CollectOldKeys(sessions func() map[string]int) prometheus.Collector {
	old := newGauge("sessions_with_old_s3_key",
		"Sessions that still use an S3 access key that the configuration no longer has for their tenant.", "tenant")
	return &partCollector{[]metric{old}, func(to chan<- prometheus.Metric) {
		for tenant, n := range sessions() {
			old.send(to, float64(n), tenant)
		}
	}}
}

// CollectTraces returns a collector for the spans that have ended, and for those that the trace collector has
// accepted.
func CollectTraces(spans func() (ended, sent int64)) prometheus.Collector {
	ended := newCounter("trace_spans_ended_total", "Spans of traced sessions that have ended.")
	sent := newCounter(
		"trace_spans_sent_total",
		"Spans that the collector of traces has taken. Of the others some may still wait, and the rest are lost.")
	return &partCollector{[]metric{ended, sent}, func(to chan<- prometheus.Metric) {
		e, s := spans()
		ended.send(to, float64(e))
		sent.send(to, float64(s))
	}}
}

// CollectUploads returns a collector for the multipart uploads of buckets, as counted by their journals. A
// bucket that has not been usable yet has no journal.
func CollectUploads(buckets func() []*s3client.Bucket) prometheus.Collector {
	open := newGauge("uploads_open", "Multipart uploads on which this process works.", "tenant")
	interrupted := newCounter(
		"uploads_interrupted_total", "Multipart uploads that were interrupted and can be resumed.", "tenant")
	swept := newCounter(
		"uploads_swept_total", "Abandoned multipart uploads that this process has removed.", "tenant")
	return &partCollector{[]metric{open, interrupted, swept}, func(to chan<- prometheus.Metric) {
		type counts struct{ open, interrupted, swept int64 }
		byTenant := map[string]counts{}
		for _, b := range buckets() {
			c := byTenant[b.Tenant]
			if b.Usable() && b.Journal != nil {
				s := b.Journal.Stats()
				c.open, c.interrupted, c.swept = c.open+s.Open, c.interrupted+s.Interrupted, c.swept+s.Swept
			}
			byTenant[b.Tenant] = c
		}
		for tenant, c := range byTenant {
			open.send(to, float64(c.open), tenant)
			interrupted.send(to, float64(c.interrupted), tenant)
			swept.send(to, float64(c.swept), tenant)
		}
	}}
}
