package deploy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

var minimal = filepath.Join(chart, "ci", "minimal-values.yaml")

// TestValuesForPods checks values that add to the pods and to related objects.
func TestValuesForPods(t *testing.T) {
	file := filepath.Join(t.TempDir(), "values.yaml")
	minimalText := must.ReadFile(t, minimal)
	writeFile(t, file, minimalText+`
commonLabels: {example.com/team: storage}
statefulSetAnnotations: {reloader.stakater.com/auto: "true"}
hostNetwork: true
replicas: 1
dnsConfig: {options: [{name: ndots, value: "1"}]}
initContainers: [{name: wait, image: busybox}]
extraContainers: [{name: logs, image: busybox}]
startupProbe: {failureThreshold: 200}
livenessProbe: {timeoutSeconds: 9}
readinessProbe: {failureThreshold: 3}
drainTimeoutSeconds: 600
tests: {login: {existingSecret: test-user}}
`)
	r := render(t, file)
	pod := r.pod()
	if !pod.HostNetwork || pod.DNSPolicy != "ClusterFirstWithHostNet" || len(pod.DNSConfig) == 0 ||
		len(pod.InitContainers) != 1 || len(pod.Containers) != 2 || r.container().Args[0] != "serve" {
		t.Errorf("the pod: %+v", pod)
	}
	if check := r.check.Spec.Template.Spec; check.HostNetwork || check.InitContainers != nil ||
		len(check.DNSConfig) == 0 {
		t.Errorf("the pod of the check: %+v", check)
	}
	c := r.container()
	if c.StartupProbe.FailureThreshold != 200 || c.StartupProbe.PeriodSeconds != 2 ||
		c.LivenessProbe.TimeoutSeconds != 9 || c.ReadinessProbe.FailureThreshold != 3 {
		t.Errorf("the probes: %+v, %+v, %+v", c.StartupProbe, c.LivenessProbe, c.ReadinessProbe)
	}
	if r.statefulSet.Metadata.Annotations["reloader.stakater.com/auto"] != "true" {
		t.Errorf("the StatefulSet has %v", r.statefulSet.Metadata.Annotations)
	}
	labels := map[string]map[string]string{"pods": r.statefulSet.Spec.Template.Metadata.Labels,
		"pods of the check": r.check.Spec.Template.Metadata.Labels}
	for _, o := range r.objects {
		labels[o.Kind+" "+o.Metadata.Name] = o.Metadata.Labels
	}
	for name, got := range labels {
		if got["example.com/team"] != "storage" || got["app.kubernetes.io/name"] != "babelftp" {
			t.Errorf("%s: labels %v", name, got)
		}
	}
	if strings.Contains(fmt.Sprint(r.statefulSet.Spec.Selector), "team") {
		t.Errorf("the StatefulSet selects by common labels, which may change: %v", r.statefulSet.Spec.Selector)
	}
}

// TestRequestedMemory checks that a pod requests the memory calculated in docs/guides/sizing-and-limits.md,
// unless a value overrides it.
func TestRequestedMemory(t *testing.T) {
	for _, tt := range []struct{ set, want string }{
		{"preStopSeconds=5", "466Mi"}, // 114 MiB and 22/16 of 256 MiB
		{"config.memory=512MiB,resources.limits.memory=2Gi", "818Mi"},
		{"config.memory=512MiB,resources.limits.memory=800Mi", "800Mi"}, // limited by the limit
		{"resources.requests.memory=1Gi,resources.limits.memory=1Gi", "1Gi"},
		{"resources=null", "466Mi"},
	} {
		r := render(t, minimal, tt.set)
		for name, pod := range r.pods() {
			if got := pod.Containers[0].Resources.Requests["memory"]; got != tt.want {
				t.Errorf("--set %s: the pod of the %s requests %s, want %s", tt.set, name, got, tt.want)
			}
		}
	}
}

// TestACME checks that the load balancer and the network policy let the ACME authority reach the pods, and
// that the pods share a directory for certificates.
func TestACME(t *testing.T) {
	r := render(t, filepath.Join(chart, "ci", "metallb-values.yaml"), acmeVolume, "config.tls.required=true",
		"tls.existingSecret=",
		"config.tls.acme.hosts={ftp.acme.example}",
		"config.tls.acme.http_listen=:8080,config.tls.acme.tls_listen=:8443", "tls.implicit=true")
	cfg := loadConfig(t, r)
	if cfg.TLS.ImplicitListen == "" || !cfg.TLS.IsRequired() || cfg.TLS.CertFile != "" {
		t.Errorf("TLS: %+v", cfg.TLS)
	}
	inContainer := map[string]int{}
	for _, p := range r.container().Ports {
		inContainer[p.Name] = p.ContainerPort
	}
	for name, want := range map[string][2]int{"acme-http": {80, 8080}, "acme-tls": {443, 8443}} {
		if !slices.ContainsFunc(r.service.Spec.Ports, func(p servicePort) bool {
			return p.TargetPort == name && p.Port == want[0]
		}) || inContainer[name] != want[1] {
			t.Errorf("%s: the Service has %v, and the pod %v", name, r.service.Spec.Ports, inContainer)
		}
		if !slices.ContainsFunc(ingress(r, name), func(from []policyPeer) bool { return from == nil }) {
			t.Errorf("the network policy blocks the authority from %s", name)
		}
	}
}

// ingress returns the peers that may reach a port, for each rule of the network policy with this port.
func ingress(r release, port string) (from [][]policyPeer) {
	for _, rule := range r.find("NetworkPolicy", r.statefulSet.Metadata.Name).Spec.Ingress {
		for _, p := range rule.Ports {
			if p.Port == port {
				from = append(from, rule.From)
			}
		}
	}
	return from
}

// TestAdminPassesThePolicy checks that a network policy lets in clients of config.admin.listen.
func TestAdminPassesThePolicy(t *testing.T) {
	for address, want := range map[string]int{"127.0.0.1:9443": 0, "[::1]:9443": 0, "localhost:9443": 0, ":9443": 1,
		"0.0.0.0:9443": 1} {
		file := filepath.Join(t.TempDir(), "values.yaml")
		writeFile(t, file, fmt.Sprintf(`
config: {admin: {listen: %q, users_file: /run/babelftp/secrets/admin/users}}
networkPolicy: {admin: [{podSelector: {matchLabels: {role: admin}}}], ingress: [{ports: [{port: 8000}]}]}
`, address))
		r := parse(t, helmTemplate(
			t, "--values", filepath.Join(chart, "ci", "metallb-values.yaml"), "--values", file))
		rules := ingress(r, "admin")
		if len(rules) != want || want == 1 && (len(rules[0]) != 1 || !selects(rules[0][0].PodSelector,
			map[string]string{"role": "admin"})) {
			t.Errorf("config.admin.listen: %s is let in from %v", address, rules)
		}
		if want == 1 && !slices.ContainsFunc(r.container().Ports, func(p containerPort) bool {
			return p.Name == "admin" && p.ContainerPort == 9443
		}) {
			t.Errorf("the container has the ports %v", r.container().Ports)
		}
	}
}

// TestMeasuresOfAutoscaling checks that autoscaling by CPU needs no metrics adapter, and autoscaling by
// sessions is only used on request.
func TestMeasuresOfAutoscaling(t *testing.T) {
	for set, want := range map[string][]string{
		"autoscaling.sessions=0":                    {"cpu 700m"},
		"autoscaling.sessions=500":                  {"cpu 700m", "babelftp_sessions 500"},
		"autoscaling.cpu=,autoscaling.sessions=200": {"babelftp_sessions 200"},
	} {
		r := render(t, minimal, "autoscaling.enabled=true", set)
		var got []string
		for _, m := range r.only(t, "HorizontalPodAutoscaler").Spec.Metrics {
			got = append(got, m.Resource.Name+m.Pods.Metric.Name+" "+
				m.Resource.Target.AverageValue+m.Pods.Target.AverageValue)
		}
		if !slices.Equal(got, want) {
			t.Errorf("--set %s: got %q, want %q", set, got, want)
		}
	}
}

// TestRelabelings checks that both monitors support relabelings.
func TestRelabelings(t *testing.T) {
	for kind, value := range map[string]string{"PodMonitor": "podMonitor", "ServiceMonitor": "serviceMonitor"} {
		at := "metrics." + value
		r := render(t, minimal, at+".enabled=true", at+".relabelings[0].targetLabel=site",
			at+".metricRelabelings[0].action=drop", at+".scrapeTimeout=5s")
		spec := r.only(t, kind).Spec
		ends := slices.Concat(spec.PodMetricsEndpoints, spec.Endpoints)
		if len(ends) != 1 || ends[0].Relabelings[len(ends[0].Relabelings)-1]["targetLabel"] != "site" ||
			len(ends[0].MetricRelabelings) != 1 || ends[0].ScrapeTimeout != "5s" {
			t.Errorf("the %s calls %+v", kind, ends)
		}
	}
}

// TestServiceMonitor checks that a ServiceMonitor selects one Service with the metrics of all pods, and that
// the job label matches the alerts.
func TestServiceMonitor(t *testing.T) {
	r := render(t, minimal, "metrics.serviceMonitor.enabled=true")
	monitor := r.only(t, "ServiceMonitor").Spec
	var found []string
	for _, o := range r.objects {
		if o.Kind == "Service" && selects(monitor.Selector, o.Metadata.Labels) {
			found = append(found, o.Metadata.Name)
		}
	}
	hasPort := func(p servicePort) bool { return p.Name == monitor.Endpoints[0].Port }
	if !slices.Equal(found, []string{r.headless.Metadata.Name}) ||
		!slices.ContainsFunc(r.headless.Spec.Ports, hasPort) {
		t.Errorf("the ServiceMonitor finds the Services %q", found)
	}
	job := map[string]any{"targetLabel": "job", "replacement": "ftp/test-babelftp"}
	if got := monitor.Endpoints[0].Relabelings; len(got) != 1 || !reflect.DeepEqual(got[0], job) {
		t.Errorf("the ServiceMonitor relabels %v", got)
	}
}

// TestNetworkPolicy checks which addresses can reach which ports.
func TestNetworkPolicy(t *testing.T) {
	const subnet, client, monitoring = "192.168.0.10", "203.0.113.99", "10.0.0.1"
	aws, metallb := filepath.Join(chart, "ci", "aws-values.yaml"), filepath.Join(chart, "ci", "metallb-values.yaml")
	own := "networkPolicy.loadBalancers=null,networkPolicy.metrics[0].namespaceSelector=null," +
		"networkPolicy.metrics[0].ipBlock.cidr=192.168.0.0/16"
	for _, tt := range []struct {
		name, values, set, from string
		port                    any
		want                    bool
	}{
		{"aws-health-check", aws, "replicas=2", subnet, "metrics", true},
		{"aws-health-check-of-ftp", aws, "replicas=2", subnet, "ftp", true},
		{"aws-health-check-of-a-passive-port", aws, "replicas=2", subnet, 30007, true},
		{"aws-health-check-in-metrics", aws, own, subnet, "metrics", true},
		{"aws-client", aws, "replicas=2", client, "ftp", true},
		{"aws-client-of-metrics", aws, "replicas=2", client, "metrics", false},
		{"aws-some-clients", aws, "networkPolicy.clients[0].ipBlock.cidr=198.51.100.0/24", client, "ftp", false},
		{"aws-some-clients-with-proxy-headers", aws, "networkPolicy.clients[0].ipBlock.cidr=198.51.100.0/24", subnet, "ftp",
			true},
		{"aws-no-implicit-tls", aws, "replicas=2", subnet, "ftps", false},
		{"aws-implicit-tls", aws, "tls.implicit=true", subnet, "ftps", true},
		{"metallb-client", metallb, "replicas=2", client, "ftp", true},
		{"metallb-excepted-client", metallb, "replicas=2", "192.0.2.9", "ftp", false},
		{"metallb-metrics", metallb, "replicas=2", monitoring, "metrics", false},
		{"metallb-all-metrics", metallb, "networkPolicy.metrics=null", monitoring, "metrics", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, tt.values, tt.set)
			got := letsIn(r.only(t, "NetworkPolicy").Spec.Ingress, netip.MustParseAddr(tt.from), tt.port)
			if got != tt.want {
				t.Errorf("%s reaches port %v: %t, want %t", tt.from, tt.port, got, tt.want)
			}
		})
	}
}

// TestHealthCheckPassesThePolicy checks that the network policy opens the health check port of the load
// balancer in testdata/nlb.yaml, which the controller creates from aws-values.yaml, to its subnet.
func TestHealthCheckPassesThePolicy(t *testing.T) {
	var made struct {
		EachPort struct {
			TargetGroup struct {
				HealthCheckConfig struct {
					Port int `yaml:"port"`
				} `yaml:"healthCheckConfig"`
			} `yaml:"targetGroup"`
		} `yaml:"eachPort"`
	}
	must.OK(t, yaml.Unmarshal([]byte(must.ReadFile(t, filepath.Join("testdata", "nlb.yaml"))), &made))
	r := render(t, filepath.Join(chart, "ci", "aws-values.yaml"))
	asked := made.EachPort.TargetGroup.HealthCheckConfig.Port
	i := slices.IndexFunc(r.container().Ports, func(p containerPort) bool { return p.ContainerPort == asked })
	if i < 0 || !letsIn(r.only(t, "NetworkPolicy").Spec.Ingress, netip.MustParseAddr("192.168.0.10"),
		r.container().Ports[i].Name) {
		t.Errorf("the load balancer finds no pod healthy at port %d", asked)
	}
	const want = "networkPolicy.loadBalancers is empty, and networkPolicy.metrics allows no addresses"
	wantRefused(t, filepath.Join(chart, "ci", "aws-values.yaml"), "networkPolicy.loadBalancers=null", want)
}

// letsIn reports whether the rules let an address reach a port of the pod. The port is a name or a number.
func letsIn(rules []policyRule, from netip.Addr, port any) bool {
	contains := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(from) }
	for _, rule := range rules {
		for _, p := range rule.Ports {
			number, isNumber := port.(int)
			first, isRange := p.Port.(int)
			inRange := isNumber && isRange && first <= number && number <= p.EndPort
			if p.Port != port && !inRange {
				continue
			}
			if rule.From == nil || slices.ContainsFunc(rule.From, func(peer policyPeer) bool {
				return peer.IPBlock.CIDR != "" && contains(peer.IPBlock.CIDR) &&
					!slices.ContainsFunc(peer.IPBlock.Except, contains)
			}) {
				return true
			}
		}
	}
	return false
}

// TestCheckOfSecretsOfTheRelease checks that the check hook runs after Helm creates the Secret if it belongs
// to the release, and before Helm changes anything otherwise.
func TestCheckOfSecretsOfTheRelease(t *testing.T) {
	const before, after = "pre-install,pre-upgrade", "post-install,post-upgrade"
	const own = "secrets.acme.existingSecret=acme-users"
	for _, tt := range []struct {
		name, want string
		set        []string
	}{
		{"no-secrets", before, nil},
		{"secret-that-exists", before, []string{own}},
		{"secret-of-extra-objects", after, []string{own,
			"extraObjects[0].kind=Secret,extraObjects[0].metadata.name=acme-users"}},
		{"external-secret", after, []string{own,
			"extraObjects[0].kind=ExternalSecret,extraObjects[0].spec.target.name=acme-users"}},
		{"certificate", after, []string{"tls.existingSecret=tls",
			"extraObjects[0].kind=Certificate,extraObjects[0].spec.secretName=tls"}},
		{"other-object", before, []string{own,
			"extraObjects[0].kind=ConfigMap,extraObjects[0].metadata.name=other"}},
		{"secret-of-a-parent-chart", after, []string{own, "check.when=after"}},
		{"in-any-case-before", before, []string{own, "check.when=before",
			"extraObjects[0].kind=Secret,extraObjects[0].metadata.name=acme-users"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, minimal, tt.set...)
			if got := r.check.Metadata.Annotations["helm.sh/hook"]; got != tt.want {
				t.Errorf("the check runs at %s, want %s", got, tt.want)
			}
			var names []string
			for _, v := range r.check.Spec.Template.Spec.Volumes {
				names = append(names, v.Secret.SecretName)
			}
			copied := slices.Contains(names, "test-babelftp-check")
			if copied != (tt.want == before) || copied != (r.find("Secret", "test-babelftp-check").Kind != "") {
				t.Errorf("the check mounts %q", names)
			}
		})
	}
}

// exampleLine matches a comment that contains YAML and not prose.
var exampleLine = regexp.MustCompile(`^( *)# ( *(?:- |[\w/.-]+:(?: |$)).*)$`)

// TestCommentedValues uncomments all values in the comments of values.yaml like an editor and renders the
// chart with them, to check that each has the right parent.
func TestCommentedValues(t *testing.T) {
	text := must.ReadFile(t, filepath.Join(chart, "values.yaml"))
	lines := strings.Split(text, "\n")
	shown := 0
	for i, line := range lines {
		if m := exampleLine.FindStringSubmatch(line); m != nil {
			lines[i] = m[1] + m[2]
			shown++
			if before := lines[max(i-1, 0)]; strings.HasSuffix(before, ": {}") {
				lines[i-1] = strings.TrimSuffix(before, " {}")
			}
		}
	}
	if shown == 0 {
		t.Fatal("values.yaml shows no values in comments")
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, file, strings.ReplaceAll(strings.Join(lines, "\n"), "$argon2id$v=19$...", someHash))
	cfg := loadConfig(t, render(t, file, "customResources.enabled=true"))
	if cfg.S3.Endpoint == "" || cfg.S3.AccessKeyID == "" || cfg.Tenants["acme"].Users["alice"] == nil ||
		cfg.Auth.LDAP.BindPassword.Empty() {
		t.Errorf("the configuration lacks values: %+v", cfg.S3)
	}
}

// TestReadme compares the table of values in the chart's README with values.yaml. To write the table: go test
// ./deploy -run TestReadme -update
func TestReadme(t *testing.T) {
	const file, begin, end = chart + "/README.md", "<!-- begin values: go test ./deploy -run TestReadme -update -->\n",
		"<!-- end -->\n"
	now, err := os.ReadFile(file)
	must.OK(t, err)
	head, rest, found := strings.Cut(string(now), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s lacks the lines %s and %s", file, begin, end)
	}
	want := head + begin + valuesTable(t) + end + tail
	if *update {
		must.WriteFile(t, file, want)
		return
	}
	if string(now) != want {
		t.Errorf("%s is not what values.yaml has now: go test ./deploy -run TestReadme -update", file)
	}
}

// valuesTable returns a table of the chart's values with their defaults and comments.
func valuesTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	must.OK(t, err)
	var document yaml.Node
	must.OK(t, yaml.Unmarshal(text, &document))
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n| --- | --- | --- |\n")
	writeValues(t, &table, "", document.Content[0])
	return table.String()
}

// writeValues writes a row for each value in a mapping, and for each nested mapping with a comment.
func writeValues(t *testing.T, table *strings.Builder, path string, mapping *yaml.Node) {
	t.Helper()
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := path + key.Value
		nested := value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && len(value.Content) > 0 &&
			!slices.Contains([]string{"config", "autoscaling.behavior", "metrics.dashboard.labels"}, name)
		about := comment(key.HeadComment, key.LineComment, value.LineComment)
		if nested && about == "" {
			writeValues(t, table, name+".", value)
			continue
		}
		shown := ""
		if !nested {
			shown = defaultOf(t, value)
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, shown, about)
		if nested {
			writeValues(t, table, name+".", value)
		}
	}
}

// defaultOf formats a default value in one line, shortened for the table if needed.
func defaultOf(t *testing.T, value *yaml.Node) string {
	t.Helper()
	var v any
	must.OK(t, value.Load(&v))
	if v == "" {
		return ""
	}
	text, err := json.Marshal(v)
	must.OK(t, err)
	if len(text) > 80 || strings.Contains(string(text), "://") {
		return "see values.yaml"
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// comment returns the prose of comments, without commented values.
func comment(parts ...string) string {
	var words []string
	for _, part := range parts {
		paragraphs := strings.Split(part, "\n\n") // the last one describes the value
		for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
			line = strings.TrimSpace(line)
			if !exampleLine.MatchString(line) {
				words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
			}
		}
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(words, " "), "|", "\\|"))
}
