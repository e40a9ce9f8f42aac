package deploy

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/ftp/relay"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestLintStrict(t *testing.T) {
	for _, values := range append(valueFiles(t), filepath.Join(chart, "values.yaml")) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			for _, run := range runHelm(t, "lint", "--strict", chart, "--values", values) {
				if run.err != nil {
					t.Errorf("helm lint: %v", run)
				}
			}
		})
	}
}

// TestPassiveRange checks that every place that needs the passive port range has it.
func TestPassiveRange(t *testing.T) {
	for _, tt := range []struct {
		values      string
		set         []string
		first, last int
		nodePorts   bool
	}{
		{"minimal", nil, 30000, 30039, false},
		{"minimal", []string{"passive.ports=50000-50000,replicas=1,maxReplicas=1"}, 50000, 50000, false},
		{"minimal", []string{"passive.ports=40000-40099"}, 40000, 40099, false},
		{"loadbalancer", nil, 40000, 40009, false},
		{"nodeport", nil, 32000, 32004, true},
	} {
		t.Run(fmt.Sprintf("%s-%d-%d", tt.values, tt.first, tt.last), func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", tt.values+"-values.yaml"), tt.set...)

			var want, inContainer, inService, onNode []int
			for port := tt.first; port <= tt.last; port++ {
				want = append(want, port)
			}
			for _, p := range r.container().Ports {
				if strings.HasPrefix(p.Name, "passive-") {
					inContainer = append(inContainer, p.ContainerPort)
				}
			}
			for _, p := range r.service.Spec.Ports {
				if !strings.HasPrefix(p.Name, "passive-") {
					continue
				}
				inService = append(inService, p.Port)
				if fmt.Sprint(p.TargetPort) != fmt.Sprint(p.Port) {
					t.Errorf(
						"the Service sends port %d to %v: a client connects to the port that PASV names", p.Port,
						p.TargetPort)
				}
				if p.NodePort != 0 {
					onNode = append(onNode, p.NodePort)
				}
			}
			if !slices.Equal(inContainer, want) {
				t.Errorf("container ports %v", inContainer)
			}
			if !slices.Equal(inService, want) {
				t.Errorf("ports of the Service %v", inService)
			}
			if tt.nodePorts && !slices.Equal(onNode, want) || !tt.nodePorts && onNode != nil {
				t.Errorf("node ports %v", onNode)
			}
			passive := loadConfig(t, r).Passive.Ports
			if int(passive.First) != tt.first || int(passive.Last) != tt.last {
				t.Errorf("the configuration has %s", passive)
			}
		})
	}
}

// acmeVolume holds the values for a volume with the certificates of ACME.
const acmeVolume = "extraVolumes[0].name=certificates,extraVolumes[0].persistentVolumeClaim.claimName=certificates," +
	"extraVolumeMounts[0].name=certificates,extraVolumeMounts[0].mountPath=/var/lib/babelftp"

func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"one-port", "passive.ports=30000", `passive.ports: "30000" is not a range of ports: write it like 30000-30019`},
		{"no-last-port", "passive.ports=30000-",
			`passive.ports: "30000-" is not a range of ports: write it like 30000-30019`},
		{"no-number", "passive.ports=low-high", `passive.ports: "low-high" is not a range of ports`},
		{"octal", "passive.ports=01024-01030", `passive.ports: "01024-01030" is not a range of ports`},
		{"empty", "passive.ports=", `passive.ports: "" is not a range of ports`},
		{"backwards", "passive.ports=30019-30000",
			"passive.ports: 30019-30000 ends before it begins: write 30000-30019"},
		{"privileged", "passive.ports=1000-1030", "passive.ports: 1000-1030 is not between 1024 and 65535"},
		{"no-such-port", "passive.ports=65530-65540", "passive.ports: 65530-65540 is not between 1024 and 65535"},
		{"too-many", "passive.ports=30000-30100", "passive.ports: 30000-30100 has 101 ports, more than the maximum of 100"},
		{"listener", "passive.ports=2100-2130",
			"passive.ports: 2100-2130 contains port 2121, where the container listens for ftp"},
		{"public-address", "passive.publicAddress=ftp://ftp.example.com",
			"'ftp://ftp.example.com' does not match pattern"},
		{"public-address-in-the-configuration", "config.passive.public_address=192.0.2.1",
			"config.passive.public_address is set by the chart: use passive.publicAddress"},
		{"no-image", "image.repository=", "image.repository is empty: name the image"},
		{"no-tenants", "config.tenants=null", "config.tenants is empty: add a tenant"},
		{"too-few-ports", "passive.ports=30000-30002",
			"passive.ports: 3 ports are too few for 4 pods (maxReplicas): each needs its own"},
		{"too-many-pods", "replicas=5", "maxReplicas: 4 is less than the number of replicas, 5: raise it"},
		{"too-many-pods-at-least", "autoscaling.enabled=true,autoscaling.minReplicas=5",
			"maxReplicas: 4 is less than the number of replicas, 5"},
		{"cluster", "config.cluster.replicas=3", "config.cluster is set by the chart: use replicas and maxReplicas"},
		{"a-service-for-each-pod", "service.perPod=true", "service.perPod needs service.type: LoadBalancer"},
		{"an-address-for-each-pod", "service.perPod=true,service.type=LoadBalancer,tls.existingSecret=x",
			"service.perPod needs an address for each pod"},
		{"two-configurations", "existingSecret=x", "existingSecret conflicts with config.tenants"},
		{"secret-of-the-check", "secrets.check.existingSecret=x", "invalid propertyName 'check'"},
		{"two-certificates", "tls.existingSecret=x,tls.certificate.enabled=true",
			"tls.existingSecret conflicts with tls.certificate.enabled"},
		{"no-issuer", "tls.certificate.enabled=true", "tls.certificate.issuerRef.name is empty"},
		{"no-names", "tls.certificate.enabled=true,tls.certificate.issuerRef.name=x",
			"tls.certificate.dnsNames is empty: list the names"},
		{"little-memory", "resources.limits.memory=256Mi",
			"resources.limits.memory: 256Mi leaves less than 64Mi beside config.memory (256MiB)"},
		{"no-budget", "podDisruptionBudget.maxUnavailable=0", "podDisruptionBudget/maxUnavailable"},
		{"strategy", "updateStrategy.type=Recreate", "updateStrategy/type"},
		{"address-family", "service.ipFamilies={IPv5}", "service/ipFamilies/0"},
		{"admin-socket", "config.admin_socket=/x", "config.admin_socket is set by the chart"},
		{"no-administrators", "admin.enabled=true",
			"admin.enabled needs administrators: name a Secret with the key users in secrets.admin.existingSecret, or set"},
		{"administrators-twice", "admin.enabled=true,config.admin.listen=x",
			"config.admin.listen conflicts with admin.enabled"},
		{"listen", "config.listen=:21", "config.listen is set by the chart: use service.ports.ftp"},
		{"drain-timeout", "config.drain_timeout=1m",
			"config.drain_timeout is set by the chart: use drainTimeoutSeconds"},
		{"passive", "config.passive.ports=1-2", "config.passive.ports is set by the chart: use passive.ports"},
		{"certificate", "config.tls.cert_file=x", "config.tls.cert_file is set by the chart: use tls.existingSecret"},
		{"implicit-without-certificate", "tls.implicit=true",
			"tls.implicit needs a certificate: name its Secret in tls.existingSecret"},
		{"public-without-certificate", "service.type=LoadBalancer",
			"service.type: LoadBalancer without a certificate exposes passwords and files to the network"},
		{"required-without-certificate", "config.tls.required=true", "config.tls.required needs a certificate"},
		{"acme-without-a-volume", "config.tls.acme.http_listen=:8080",
			"config.tls.acme needs a persistent volume that all pods share: mount one at /var/lib/babelftp/acme"},
		{"acme-on-a-low-port", "config.tls.acme.http_listen=:80," + acmeVolume,
			`config.tls.acme.http_listen: :80 is below port 1024, which the pod may not open: write ":8080"`},
		{"monitored-twice", "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true",
			"metrics.podMonitor conflicts with metrics.serviceMonitor"},
		{"host-network", "hostNetwork=true", "hostNetwork needs replicas: 1 and no autoscaling"},
		{"host-network-that-scales", "hostNetwork=true,autoscaling.enabled=true,autoscaling.minReplicas=1",
			"hostNetwork needs replicas: 1 and no autoscaling"},
		{"health-check", "networkPolicy.enabled=true,networkPolicy.clients[0].podSelector.a=b,tls.existingSecret=x," +
			"service.type=LoadBalancer,service.loadBalancerClass=service.k8s.aws/nlb",
			"networkPolicy.loadBalancers is empty, and networkPolicy.clients allows no addresses"},
		{"autoscaling-by-nothing", "autoscaling.enabled=true,autoscaling.cpu=", "autoscaling needs a target"},
		{"probe", "readinessProbe.httpGet.path=/", "additional properties 'httpGet' not allowed"},
		{"secret-without-content", "secrets.s3.name=x", "missing property 'existingSecret'"},
		{"unknown-value", "passve.ports=30000-30001", "additional properties 'passve' not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantRefused(t, minimal, tt.set, tt.want)
		})
	}
}

// TestScalars checks which forms of scalars the chart accepts in the configuration, with and without quotes.
func TestScalars(t *testing.T) {
	for _, tt := range []struct {
		config string
		want   string // the error; empty if the chart accepts the value
	}{
		{`tls: {min_version: 1.2}`, ""},
		{`tls: {min_version: 1.3}`, ""},
		{`tls: {min_version: "1.2"}`, ""},
		{`tls: {min_version: "1.3"}`, ""},
		{`tls: {min_version: null}`, ""},
		{`tls: {min_version: 1.4}`, "tls/min_version"},
		{`tls: {min_version: "1.4"}`, "tls/min_version"},
		{`tls: {min_version: TLSv1.2}`, "tls/min_version"},
		{`tls: {min_version: true}`, "tls/min_version"},
		{`s3: {path_style: true}`, ""},
		{`s3: {path_style: "false"}`, ""},
		{`s3: {path_style: null}`, ""},
		{`s3: {path_style: maybe}`, "s3/path_style"},
		{`s3: {path_style: 1}`, "s3/path_style"},
		{`s3: {profile: ceph}`, ""},
		{`s3: {profile: cefh}`, "s3/profile"},
		{`memory: 268435456`, ""},
		{`memory: 256MiB`, ""},
		{`memory: 256MB/s`, "memory"},
		{`idle_timeout: 10m`, ""},
		{`idle_timeout: ten minutes`, "idle_timeout"},
	} {
		t.Run(tt.config, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "values.yaml")
			writeFile(t, file, fmt.Sprintf("config: {%s}\n", tt.config))
			if tt.want == "" {
				helmTemplate(t, "--values", minimal, "--values", file)
				return
			}
			for _, run := range runHelm(t, "template", "test", chart, "--values", minimal, "--values", file) {
				if run.err == nil || !strings.Contains(run.stderr, "/config/"+tt.want) {
					t.Errorf("want an error about config/%s, got %v", tt.want, run)
				}
			}
		})
	}
}

// TestPodSecurity checks the users and permissions of the pods of the server, the check and the test. Module
// kubetest checks them against the Pod Security Standards.
func TestPodSecurity(t *testing.T) {
	for _, values := range valueFiles(t) {
		openshift := strings.Contains(values, "openshift")
		for name, pod := range render(t, values).pods() {
			t.Run(filepath.Base(values)+"-"+name, func(t *testing.T) {
				if s := pod.SecurityContext; !s.RunAsNonRoot || s.SeccompProfile.Type != "RuntimeDefault" {
					t.Errorf("security context of the pod: %+v", s)
				}
				id := 65532
				if openshift {
					id = 0 // none
				}
				if s := pod.SecurityContext; s.RunAsUser != id || s.RunAsGroup != id || s.FSGroup != id {
					t.Errorf("user and groups of the pod: %+v", s)
				}
				for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
					if s := c.SecurityContext; !s.ReadOnlyRootFilesystem || !isFalse(s.AllowPrivilegeEscalation) ||
						!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || s.Capabilities.Add != nil {
						t.Errorf("security context of the container: %+v", s)
					}
				}
				if !isFalse(pod.AutomountServiceAccountToken) {
					t.Error("the pod mounts the token of its service account")
				}
				if !isFalse(pod.EnableServiceLinks) {
					t.Error("Kubernetes adds variables that begin with BABELFTP_")
				}
				for _, p := range pod.Containers[0].Ports {
					if p.ContainerPort < 1024 {
						t.Errorf("port %d needs a capability", p.ContainerPort)
					}
				}
				for _, v := range pod.Volumes {
					if v.Secret.SecretName != "" && v.Secret.DefaultMode != 0o440 {
						t.Errorf(
							"volume %s: mode %#o, which others than the group of the pod can read", v.Name,
							v.Secret.DefaultMode)
					}
				}
			})
		}
	}
}

// TestSecretsOnly checks that only Secrets contain values of the configuration.
func TestSecretsOnly(t *testing.T) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			for manifest := range strings.SplitSeq(renderText(t, values), "\n---\n") {
				if !strings.Contains(manifest, "\nkind: Secret\n") &&
					(strings.Contains(manifest, "argon2id") || strings.Contains(manifest, "bucket: acme-data")) {
					t.Errorf("part of the configuration is in\n%s", manifest)
				}
			}
		})
	}
}

// TestReferences checks that objects refer to existing objects.
func TestReferences(t *testing.T) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			r := render(t, values)
			labels := r.statefulSet.Spec.Template.Metadata.Labels
			others := []map[string]string{r.test.Metadata.Labels, r.check.Spec.Template.Metadata.Labels}
			for _, o := range r.objects {
				selector := o.Spec.Selector
				if o.Kind == "NetworkPolicy" {
					selector = o.Spec.PodSelector
				} else if selector == nil {
					continue
				}
				if terms, ok := selector.(map[string]any); ok {
					delete(terms, "apps.kubernetes.io/pod-index") // the StatefulSet adds it to its pods
				}
				if !selects(selector, labels) {
					t.Errorf("%s %s selects %v, the pod has %v", o.Kind, o.Metadata.Name, selector, labels)
				}
				for _, other := range others {
					if selects(selector, other) {
						t.Errorf("%s %s selects the pod of a hook too", o.Kind, o.Metadata.Name)
					}
				}
			}
			for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
				m := r.find(kind, r.statefulSet.Metadata.Name)
				ends := slices.Concat(m.Spec.PodMetricsEndpoints, m.Spec.Endpoints)
				if m.Kind != "" && (len(ends) != 1 || ends[0].Port != "metrics" || ends[0].Path != "/metrics") {
					t.Errorf("the %s calls %v", kind, ends)
				}
			}
			if !r.headless.Spec.PublishNotReadyAddresses {
				t.Error("a stopping pod has no name although its sessions need one")
			}
			if r.statefulSet.Spec.ServiceName != r.headless.Metadata.Name {
				t.Errorf("the StatefulSet is governed by %s", r.statefulSet.Spec.ServiceName)
			}
			if r.account.Kind != "" && r.pod().ServiceAccountName != r.account.Metadata.Name {
				t.Errorf("got service account %s", r.pod().ServiceAccountName)
			}
			checkPorts(t, r)
		})
	}
}

// checkPorts checks that Services and probes use the ports on which the process listens.
func checkPorts(t *testing.T, r release) {
	t.Helper()
	ports := map[string]int{}
	for _, p := range r.container().Ports {
		ports[p.Name] = p.ContainerPort
	}
	cfg := loadConfig(t, r)
	for name, address := range map[string]string{"ftp": cfg.Listen, "metrics": cfg.MetricsListen,
		"ftps": cfg.TLS.ImplicitListen} {
		port, exists := ports[name]
		if want := address != ""; exists != want || want && address != fmt.Sprintf(":%d", port) {
			t.Errorf("the server listens on %q for %s, the container's port is %d", address, name, port)
		}
	}
	for _, p := range slices.Concat(r.service.Spec.Ports, r.headless.Spec.Ports) {
		if target, named := p.TargetPort.(string); named && ports[target] == 0 {
			t.Errorf("port %d leads to %s, which the container does not have", p.Port, target)
		}
	}
	if slices.ContainsFunc(r.service.Spec.Ports, func(p servicePort) bool { return p.TargetPort == "metrics" }) {
		t.Error("the Service exposes the metrics outside of the cluster")
	}
	live, ready, start := r.container().LivenessProbe.HTTPGet, r.container().ReadinessProbe.HTTPGet,
		r.container().StartupProbe.HTTPGet
	if live.Path != "/healthz" || live.Port != "metrics" || ready.Path != "/readyz" || ready.Port != "metrics" ||
		start != live {
		t.Errorf("probes: %v, %v and %v", live, ready, start)
	}
	for _, rule := range r.find("NetworkPolicy", r.statefulSet.Metadata.Name).Spec.Ingress {
		for _, p := range rule.Ports {
			name, named := p.Port.(string)
			if named && ports[name] == 0 || !named &&
				(fmt.Sprint(p.Port) != fmt.Sprint(cfg.Passive.Ports.First) ||
					p.EndPort != int(cfg.Passive.Ports.Last)) {
				t.Errorf("the network policy lets in %v to %d", p.Port, p.EndPort)
			}
		}
	}
}

// TestRelaysPassThePolicy checks that a network policy always lets pods relay data connections to each other.
func TestRelaysPassThePolicy(t *testing.T) {
	r := render(t, filepath.Join(chart, "ci", "metallb-values.yaml"))
	labels, ports := r.statefulSet.Spec.Template.Metadata.Labels, loadConfig(t, r).Passive.Ports
	policy := r.find("NetworkPolicy", r.statefulSet.Metadata.Name).Spec
	if !slices.Equal(policy.PolicyTypes, []string{"Ingress", "Egress"}) {
		t.Fatalf("the policy limits %v", policy.PolicyTypes)
	}
	for name, rules := range map[string][]policyRule{"in": policy.Ingress, "out": policy.Egress} {
		if !slices.ContainsFunc(rules, func(rule policyRule) bool {
			toPeer := slices.ContainsFunc(slices.Concat(rule.From, rule.To), func(peer policyPeer) bool {
				return selects(peer.PodSelector, labels)
			})
			return toPeer && len(rule.Ports) == 1 && fmt.Sprint(rule.Ports[0].Port) == fmt.Sprint(ports.First) &&
				rule.Ports[0].EndPort == int(ports.Last)
		}) {
			t.Errorf("the policy does not allow relays %s", name)
		}
	}
}

// TestLoginPassesThePolicy checks that a network policy lets in the pod of helm test.
func TestLoginPassesThePolicy(t *testing.T) {
	r := render(t, filepath.Join(chart, "ci", "metallb-values.yaml"), "tests.login.existingSecret=test-user")
	login := r.find("Pod", r.statefulSet.Metadata.Name+"-test-login").Metadata.Labels
	clients := r.find("NetworkPolicy", r.statefulSet.Metadata.Name).Spec.Ingress[0].From
	if !slices.ContainsFunc(clients, func(peer policyPeer) bool { return selects(peer.PodSelector, login) }) {
		t.Errorf("the policy lets in %v, and the pod has %v", clients, login)
	}
}

func TestTrafficPolicy(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"minimal", ""}, // not allowed for a ClusterIP
		{"loadbalancer", "Local"},
		{"nodeport", "Local"},
	} {
		t.Run(tt.values, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", tt.values+"-values.yaml"))
			if got := r.service.Spec.ExternalTrafficPolicy; got != tt.want {
				t.Errorf("externalTrafficPolicy %q, want %q", got, tt.want)
			}
		})
	}
}

// TestChangesReachThePod checks that a change replaces the pods if and only if the server cannot apply it
// while it runs.
func TestChangesReachThePod(t *testing.T) {
	values := filepath.Join(chart, "ci", "metallb-values.yaml")
	before, root := render(t, values), t.TempDir()
	old := loadPod(t, before, before.pod(), root)
	hash := strings.ReplaceAll(someHash, ",", `\,`)
	for _, tt := range []struct {
		name, set string
		restart   bool
	}{
		{"language", "config.default_language=de", false},
		{"user", "config.tenants.acme.users.bob.password_hash=" + hash, false},
		{"tenant", "config.tenants.other.bucket=other,config.tenants.other.users.bob.password_hash=" + hash, false},
		{"log-level", "config.log.level=debug", false},
		{"limit", "config.limits.server.sessions=5", false},
		{"load-balancer", "service.loadBalancerIP=203.0.113.8", false},
		{"replicas", "replicas=3", false},
		{"log-format", "config.log.format=text", true},
		{"memory", "config.memory=128MiB", true},
		{"abandoned-uploads", "config.abandoned_uploads=48h", true},
		{"audit", "config.audit.file=-", true},
		{"state", "config.state.bucket=acme-data,config.state.keys=" + strings.Repeat("A", 43) + "=", true},
		{"proxy-protocol", "config.proxy_protocol.trusted={10.0.0.0/8}", true},
		{"ports", "passive.ports=40000-40039", true},
		{"several-pods", "maxReplicas=8", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := render(t, values, tt.set)
			_, fixedKeys, err := server.KeepFixed(old, loadPod(t, after, after.pod(), root))
			must.OK(t, err)
			if (len(fixedKeys) > 0) != tt.restart {
				t.Errorf("the server needs a restart for %v", fixedKeys)
			}
			restart := !reflect.DeepEqual(before.statefulSet.Spec.Template, after.statefulSet.Spec.Template)
			if restart != tt.restart {
				t.Errorf("--set %s: new pods %t, want %t", tt.set, restart, tt.restart)
			}
		})
	}
}

func isFalse(b *bool) bool { return b != nil && !*b }

// selects reports whether a selector of a Service or in matchLabels matches labels.
func selects(selector any, labels map[string]string) bool {
	terms, _ := selector.(map[string]any)
	if match, ok := terms["matchLabels"].(map[string]any); ok {
		terms = match
	}
	for key, value := range terms {
		if labels[key] != value {
			return false
		}
	}
	return len(terms) > 0
}

// TestSelectorIsStable checks that the pod selector does not contain the version, because it is immutable.
func TestSelectorIsStable(t *testing.T) {
	r := render(t, filepath.Join(chart, "ci", "minimal-values.yaml"))
	want := map[string]any{"matchLabels": map[string]any{
		"app.kubernetes.io/name": "babelftp", "app.kubernetes.io/instance": "test", "app.kubernetes.io/component": "server",
	}}
	if !reflect.DeepEqual(r.statefulSet.Spec.Selector, want) {
		t.Errorf("the StatefulSet selects %v, and releases that exist %v", r.statefulSet.Spec.Selector, want)
	}
	if got := r.statefulSet.Spec.PodManagementPolicy; got != "Parallel" {
		t.Errorf("podManagementPolicy %q: a pod that does not start would keep a rollout from replacing it", got)
	}
}

func TestGoMemoryLimit(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"default", "preStopSeconds=5", "456340275"}, // 90 % of 768 MiB, less 256 MiB
		{"more-memory", "config.memory=512MiB,resources.limits.memory=1Gi", "429496729"},
		{"decimal", "config.memory=1GB,resources.limits.memory=2G", "800000000"},
		{"bytes", "config.memory=268435456,resources.limits.memory=536870912", "214748364"},
		{"no-limit", "resources.limits=null", ""},
		{"fraction", "resources.limits.memory=1.5Gi", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", "minimal-values.yaml"), tt.set)
			got := ""
			for _, e := range r.container().Env {
				if e.Name == "GOMEMLIMIT" {
					got = e.Value
				}
			}
			if got != tt.want {
				t.Errorf("--set %s: GOMEMLIMIT %q, want %q", tt.set, got, tt.want)
			}
		})
	}
}

// TestCluster checks that the pods know their maximum number and the names of each other.
func TestCluster(t *testing.T) {
	for _, tt := range []struct {
		name, set          string
		replicas, possible int // without replicas, the autoscaler decides
	}{
		{"default", "preStopSeconds=5", 2, 4},
		{"one", "replicas=1,maxReplicas=1", 1, 1},
		{"one-of-several", "replicas=1", 1, 4},
		{"many", "replicas=7,maxReplicas=10", 7, 10},
		{"autoscaling", "autoscaling.enabled=true,maxReplicas=6", 0, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", "minimal-values.yaml"), tt.set)
			if got := r.statefulSet.Spec.Replicas; got != tt.replicas {
				t.Errorf("%d replicas, want %d", got, tt.replicas)
			}
			if got := r.find("HorizontalPodAutoscaler", r.statefulSet.Metadata.Name).Spec.MaxReplicas; tt.replicas == 0 && got != tt.possible {
				t.Errorf("the autoscaler makes up to %d replicas", got)
			}
			c := loadConfig(t, r).Cluster
			if !c.IsSet() {
				if tt.possible != 1 {
					t.Errorf("the pods have no peers")
				}
				return
			}
			hosts := c.Hosts()
			for n, host := range hosts {
				// The DNS name of a pod of a StatefulSet.
				if want := fmt.Sprintf("%s-%d.%s", r.statefulSet.Metadata.Name, n, r.headless.Metadata.Name); host != want {
					t.Errorf("replica %d has the peer name %s, want %s", n, host, want)
				}
				if number, err := c.Number(fmt.Sprintf("%s-%d", r.statefulSet.Metadata.Name, n)); err != nil || number != n {
					t.Errorf("replica %d: got number %d: %v", n, number, err)
				}
			}
			if len(hosts) != tt.possible {
				t.Errorf("got %d peers, want %d", len(hosts), tt.possible)
			}
		})
	}
}

// TestServicePerPod checks that the Service of each pod has the passive ports of the pod.
func TestServicePerPod(t *testing.T) {
	t.Run("one-address", func(t *testing.T) {
		r := render(t, filepath.Join(chart, "ci", "metallb-per-pod-values.yaml"))
		checkServicePerPod(t, r, func(int) map[string]string { return r.service.Metadata.Annotations })
		for _, p := range r.service.Spec.Ports {
			if strings.HasPrefix(p.Name, "passive-") {
				t.Errorf("the Service of all pods has port %d, which belongs to one", p.Port)
			}
		}
	})
	t.Run("own-addresses", func(t *testing.T) {
		r := render(t, filepath.Join(chart, "ci", "aws-values.yaml"), "service.perPod=true", "service.annotations=null",
			"passive.publicAddress=ftp-{replica}.example.com", "service.perPodAnnotations.example\\.com/name=ftp-{replica}.example.com")
		if n := len(r.service.Spec.Ports); n != 1+40 {
			t.Errorf("the Service of all pods has %d ports: clients that send EPSV know no other address", n)
		}
		checkServicePerPod(t, r, func(pod int) map[string]string {
			return map[string]string{"example.com/name": loadConfig(t, r).Passive.PublicAddress.Of(pod)}
		})
	})
}

func checkServicePerPod(t *testing.T, r release, annotations func(pod int) map[string]string) {
	t.Helper()
	cfg := loadConfig(t, r)
	for pod := range cfg.Cluster.Replicas {
		o := r.find("Service", fmt.Sprintf("%s-%d", r.statefulSet.Metadata.Name, pod))
		var ports []int
		for _, p := range o.Spec.Ports {
			ports = append(ports, p.Port)
		}
		var want []int
		own := relay.Slice(cfg.Passive.Ports, pod, cfg.Cluster.Replicas)
		for port := int(own.First); port <= int(own.Last); port++ {
			want = append(want, port)
		}
		if !slices.Equal(ports, want) {
			t.Errorf("the Service of pod %d has the ports %v, and the pod hands out %v", pod, ports, want)
		}
		selector, _ := o.Spec.Selector.(map[string]any)
		if got := selector["apps.kubernetes.io/pod-index"]; got != fmt.Sprint(pod) {
			t.Errorf("the Service of pod %d selects pod %v", pod, got)
		}
		if want := annotations(pod); !reflect.DeepEqual(o.Metadata.Annotations, want) {
			t.Errorf("the Service of pod %d has the annotations %v, want %v", pod, o.Metadata.Annotations, want)
		}
	}
}

// With shared state, pods have a volume for its copy, and need no shared volume for certificates of ACME.
func TestState(t *testing.T) {
	values := filepath.Join(chart, "ci", "metallb-values.yaml")
	state := "config.state.bucket=acme-data,config.state.keys=" + strings.Repeat("A", 43) + "="
	for set, want := range map[string]string{
		state: "/var/lib/babelftp/state",
		state + ",config.tls.acme.http_listen=:8080,tls.existingSecret=":                        "/var/lib/babelftp/state",
		state + ",config.state.folder=copy":                                                     "/var/lib/babelftp/copy",
		state + ",extraVolumeMounts[0].name=x,extraVolumeMounts[0].mountPath=/var/lib/babelftp": "",
		"replicas=2": "",
	} {
		r := render(t, values, set)
		got := ""
		for _, m := range r.pod().Containers[0].VolumeMounts {
			if m.Name == "state" {
				got = m.MountPath
			}
		}
		if got != want {
			t.Errorf("--set %s: the copy is mounted at %q, want %q", set, got, want)
		}
	}
}
