package deploy

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestLintStrict(t *testing.T) {
	for _, values := range append(valueFiles(t), filepath.Join(chart, "values.yaml")) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			if out, errs, err := runHelm(t, "lint", "--strict", chart, "--values", values); err != nil {
				t.Errorf("helm lint: %v\n%s%s", err, out, errs)
			}
		})
	}
}

// TestPassiveRange looks for the one range of passive ports in each place that needs it.
func TestPassiveRange(t *testing.T) {
	for _, tt := range []struct {
		values      string
		set         []string
		first, last int
		nodePorts   bool
	}{
		{"minimal", nil, 30000, 30019, false},
		{"minimal", []string{"passive.ports=50000-50000"}, 50000, 50000, false},
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
					t.Errorf("the Service sends port %d to %v: a client connects to the port that PASV names", p.Port, p.TargetPort)
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

func TestRefusals(t *testing.T) {
	for _, tt := range []struct{ name, set, want string }{
		{"one-port", "passive.ports=30000", `passive.ports: "30000" is no range of ports: write it like 30000-30019`},
		{"no-last-port", "passive.ports=30000-", `passive.ports: "30000-" is no range of ports: write it like 30000-30019`},
		{"no-number", "passive.ports=low-high", `passive.ports: "low-high" is no range of ports`},
		{"octal", "passive.ports=01024-01030", `passive.ports: "01024-01030" is no range of ports`},
		{"empty", "passive.ports=", `passive.ports: "" is no range of ports`},
		{"backwards", "passive.ports=30019-30000", "passive.ports: 30019-30000 ends before it begins: write 30000-30019"},
		{"privileged", "passive.ports=1000-1030", "passive.ports: 1000-1030 is not between 1024 and 65535"},
		{"no-such-port", "passive.ports=65530-65540", "passive.ports: 65530-65540 is not between 1024 and 65535"},
		{"too-many", "passive.ports=30000-30100", "passive.ports: 30000-30100 is 101 ports, and 100 is the most"},
		{"listener", "passive.ports=2100-2130", "passive.ports: 2100-2130 contains port 2121, where the container listens for ftp"},
		{"public-address", "passive.publicAddress=ftp.example.com", "'ftp.example.com' is not valid ipv4"},
		{"no-image", "image.repository=", "image.repository is empty: build the image with the Dockerfile"},
		{"no-tenants", "config.tenants=null", "config.tenants is empty: write one tenant at least"},
		{"listen", "config.listen=:21", "config.listen is set by the chart: use service.ports.ftp"},
		{"drain-timeout", "config.drain_timeout=1m", "config.drain_timeout is set by the chart: use drainTimeoutSeconds"},
		{"passive", "config.passive.ports=1-2", "config.passive is set by the chart: use passive.ports and passive.publicAddress"},
		{"certificate", "config.tls.cert_file=x", "config.tls.cert_file is set by the chart: use tls.existingSecret"},
		{"implicit-without-certificate", "tls.implicit=true", "tls.implicit needs a certificate: name its Secret in tls.existingSecret"},
		{"required-without-certificate", "config.tls.required=true", "config.tls.required needs a certificate"},
		{"secret-without-content", "secrets.s3.name=x", "missing property 'existingSecret'"},
		{"unknown-value", "passve.ports=30000-30001", "additional properties 'passve' not allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			values := filepath.Join(chart, "ci", "minimal-values.yaml")
			out, errs, err := runHelm(t, "template", "test", chart, "--values", values, "--set", tt.set)
			if err == nil {
				t.Fatalf("--set %s was accepted", tt.set)
			}
			if !strings.Contains(errs, tt.want) {
				t.Errorf("--set %s\n got %s%s\nwant %s", tt.set, out, errs, tt.want)
			}
		})
	}
}

// TestPodSecurity checks what the level restricted of the Pod Security Standards asks for, and that no token is in the pod.
func TestPodSecurity(t *testing.T) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			r := render(t, values)
			pod, c := r.pod(), r.container()
			if len(pod.Containers) != 1 {
				t.Fatalf("%d containers", len(pod.Containers))
			}
			if s := pod.SecurityContext; !s.RunAsNonRoot || s.RunAsUser != 65532 || s.RunAsGroup != 65532 || s.FSGroup != 65532 ||
				s.SeccompProfile.Type != "RuntimeDefault" {
				t.Errorf("security context of the pod: %+v", s)
			}
			if s := c.SecurityContext; !s.ReadOnlyRootFilesystem || !isFalse(s.AllowPrivilegeEscalation) ||
				!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("security context of the container: %+v", s)
			}
			if !isFalse(pod.AutomountServiceAccountToken) {
				t.Error("the pod mounts the token of its service account")
			}
			if !isFalse(pod.EnableServiceLinks) {
				t.Error("Kubernetes adds variables that begin with BABELFTP_")
			}
			for _, p := range c.Ports {
				if p.ContainerPort < 1024 {
					t.Errorf("port %d needs a capability", p.ContainerPort)
				}
			}
			for _, v := range pod.Volumes {
				if v.Secret.SecretName != "" && v.Secret.DefaultMode != 0o440 {
					t.Errorf("volume %s: mode %#o, which others than the group of the pod can read", v.Name, v.Secret.DefaultMode)
				}
			}
		})
	}
}

// TestReferences checks that objects find each other.
func TestReferences(t *testing.T) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			r := render(t, values)
			labels := r.statefulSet.Spec.Template.Metadata.Labels
			for _, o := range []object{r.service, r.headless, r.statefulSet} {
				if !selects(o.Spec.Selector, labels) {
					t.Errorf("%s %s selects %v, the pod has %v", o.Kind, o.Metadata.Name, o.Spec.Selector, labels)
				}
			}
			if m := r.serviceMonitor; m.Kind != "" {
				if !selects(m.Spec.Selector, r.headless.Metadata.Labels) || selects(m.Spec.Selector, r.service.Metadata.Labels) {
					t.Errorf("the ServiceMonitor selects %v", m.Spec.Selector)
				}
				if len(m.Spec.Endpoints) != 1 || m.Spec.Endpoints[0].Port != "metrics" {
					t.Errorf("the ServiceMonitor asks %v", m.Spec.Endpoints)
				}
			}
			if r.statefulSet.Spec.ServiceName != r.headless.Metadata.Name {
				t.Errorf("the StatefulSet is governed by %s", r.statefulSet.Spec.ServiceName)
			}
			if r.account.Kind != "" && r.pod().ServiceAccountName != r.account.Metadata.Name {
				t.Errorf("the pod runs as %s", r.pod().ServiceAccountName)
			}
			checkPorts(t, r)
		})
	}
}

// checkPorts checks that the ports of Services and probes are those where the process listens.
func checkPorts(t *testing.T, r release) {
	t.Helper()
	ports := map[string]int{}
	for _, p := range r.container().Ports {
		ports[p.Name] = p.ContainerPort
	}
	cfg := loadConfig(t, r)
	for name, address := range map[string]string{"ftp": cfg.Listen, "metrics": cfg.MetricsListen, "ftps": cfg.TLS.ImplicitListen} {
		port, exists := ports[name]
		if want := address != ""; exists != want || want && address != fmt.Sprintf(":%d", port) {
			t.Errorf("the server listens on %q for %s, the container's port is %d", address, name, port)
		}
	}
	for _, p := range slices.Concat(r.service.Spec.Ports, r.headless.Spec.Ports) {
		if target, named := p.TargetPort.(string); named && ports[target] == 0 {
			t.Errorf("port %d leads to %s, which the container has not", p.Port, target)
		}
	}
	if slices.ContainsFunc(r.service.Spec.Ports, func(p servicePort) bool { return p.TargetPort == "metrics" }) {
		t.Error("the Service shows the metrics to the outside")
	}
	live, ready := r.container().LivenessProbe.HTTPGet, r.container().ReadinessProbe.HTTPGet
	if live.Path != "/healthz" || live.Port != "metrics" || ready.Path != "/readyz" || ready.Port != "metrics" {
		t.Errorf("probes: %v and %v", live, ready)
	}
}

func TestTrafficPolicy(t *testing.T) {
	for _, tt := range []struct{ values, want string }{
		{"minimal", ""}, // Kubernetes refuses it for a ClusterIP
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

// TestChangesReachThePod checks that a change of what is read at the start makes a new pod, and that nothing else does.
func TestChangesReachThePod(t *testing.T) {
	values := filepath.Join(chart, "ci", "loadbalancer-values.yaml")
	before := render(t, values).statefulSet.Spec.Template
	for _, tt := range []struct {
		name, set string
		restart   bool
	}{
		{"configuration", "config.default_language=de", true},
		{"secret", "secrets.acme.data.bob=x", true},
		{"load-balancer", "service.loadBalancerIP=203.0.113.8", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			after := render(t, values, tt.set).statefulSet.Spec.Template
			if restart := !reflect.DeepEqual(before, after); restart != tt.restart {
				t.Errorf("--set %s: new pod %t, want %t", tt.set, restart, tt.restart)
			}
		})
	}
}

func isFalse(b *bool) bool { return b != nil && !*b }

// selects reports whether a selector, of a Service or in matchLabels, fits labels.
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
