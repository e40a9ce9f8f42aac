// Package deploy holds the Helm chart. Its tests render the chart with each file of values in babelftp/ci and
// check the resulting objects, including the configuration.
package deploy

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const chart = "babelftp"

// helmReleases are the releases of Helm that run the chart, built by make as .tools/bin/helm-RELEASE. The
// releases in make test cover both validators of values.schema.json in current releases.
var helmReleases = flag.String("helm", "3.18.6 4.3.1", "`RELEASES` of Helm that the tests run")

// A helmRun is the result of running one release of Helm.
type helmRun struct {
	helm           string // release of Helm
	stdout, stderr string
	err            error
}

func (r helmRun) String() string {
	return fmt.Sprintf("Helm %s: %v\n%s%s", r.helm, r.err, r.stdout, r.stderr)
}

// runHelm runs all releases of Helm with the same arguments.
func runHelm(t *testing.T, args ...string) []helmRun {
	t.Helper()
	var runs []helmRun
	for _, helm := range strings.Fields(*helmReleases) {
		runs = append(runs, runOneHelm(t, helm, args...))
	}
	return runs
}

func runOneHelm(t *testing.T, helm string, args ...string) helmRun {
	t.Helper()
	if testing.Short() {
		t.Skip("-short runs no tools; this test needs helm")
	}
	cmd := exec.CommandContext(t.Context(), "../.tools/bin/helm-"+helm, args...)
	cmd.Env = []string{"HOME=" + t.TempDir()} // without repositories and clusters of the current user
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%v: run make .tools/bin/helm-%s", err, helm)
	}
	return helmRun{helm, out.String(), errs.String(), err}
}

// helmTemplate returns the manifests that helm template prints. All releases of Helm must print the same
// objects, apart from empty lines.
func helmTemplate(t *testing.T, args ...string) string {
	t.Helper()
	runs := runHelm(t, append([]string{"template", "test", chart, "--namespace", "ftp"}, args...)...)
	last := runs[len(runs)-1]
	for _, run := range runs {
		if run.err != nil {
			t.Fatalf("helm template: %v", run)
		}
		if got, want := objects(t, run.stdout), objects(t, last.stdout); !reflect.DeepEqual(got, want) {
			t.Fatalf("helm template renders other objects with %vthan with %v", run, last)
		}
	}
	return last.stdout
}

// objects decodes the objects in manifests.
func objects(t *testing.T, manifests string) (all []any) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var o any
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("rendered YAML: %v\n%s", err, manifests)
		}
		all = append(all, o)
	}
}

// release holds the objects of the chart, including hooks.
type release struct {
	objects []object

	account     object
	service     object
	headless    object
	statefulSet object
	check       object // the Job
	test        object // the Pod of helm test
}

// render renders the chart with a file of values and additional values, as for --set of helm.
func render(t *testing.T, values string, set ...string) release {
	t.Helper()
	return parse(t, renderText(t, values, set...))
}

// wantRefused expects each release of Helm to refuse a file of values with another value. The error must contain want.
func wantRefused(t *testing.T, values, set, want string) {
	t.Helper()
	for _, run := range runHelm(t, "template", "test", chart, "--values", values, "--set", set) {
		if run.err == nil || !strings.Contains(run.stderr, want) {
			t.Errorf("--set %s\n got %v\nwant %s", set, run, want)
		}
	}
}

func renderText(t *testing.T, values string, set ...string) string {
	t.Helper()
	args := []string{"--values", values}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return helmTemplate(t, args...)
}

func parse(t *testing.T, manifests string) release {
	t.Helper()
	var r release
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			t.Fatalf("rendered YAML: %v\n%s", err, manifests)
		}
		if o.Kind == "" {
			continue
		}
		r.objects = append(r.objects, o)
		switch {
		case o.Kind == "ServiceAccount":
			r.account = o
		case o.Kind == "Service" && o.Spec.ClusterIP == "None":
			r.headless = o
		case o.Kind == "Service" && r.service.Kind == "": // the first Service is for all pods
			r.service = o
		case o.Kind == "StatefulSet":
			r.statefulSet = o
		case o.Kind == "Job":
			r.check = o
		case o.Kind == "Pod" && strings.HasSuffix(o.Metadata.Name, "-test-buckets"):
			r.test = o
		}
	}
}

// find returns the object with this kind and name, or an empty object.
func (r release) find(kind, name string) object {
	for _, o := range r.objects {
		if o.Kind == kind && o.Metadata.Name == name {
			return o
		}
	}
	return object{}
}

// only returns the only object of a kind.
func (r release) only(t *testing.T, kind string) object {
	t.Helper()
	var found []object
	for _, o := range r.objects {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of the kind %s", len(found), kind)
	}
	return found[0]
}

func (r release) pod() podSpec         { return r.statefulSet.Spec.Template.Spec }
func (r release) container() container { return r.pod().Containers[0] }

// pods returns the pods that run babelftp, by purpose.
func (r release) pods() map[string]podSpec {
	all := map[string]podSpec{"server": r.pod(), "test": r.test.Spec.Pod}
	if r.check.Kind != "" {
		all["check"] = r.check.Spec.Template.Spec
	}
	return all
}

// object has the fields of an object that tests check.
type object struct {
	Kind     string   `yaml:"kind"`
	Metadata metadata `yaml:"metadata"`

	Data                         map[string]string `yaml:"data"`
	StringData                   map[string]string `yaml:"stringData"`
	AutomountServiceAccountToken *bool             `yaml:"automountServiceAccountToken"`

	// Of roles and their bindings.
	Rules []struct {
		APIGroups     []string `yaml:"apiGroups"`
		Resources     []string `yaml:"resources"`
		ResourceNames []string `yaml:"resourceNames"`
		Verbs         []string `yaml:"verbs"`
	} `yaml:"rules"`
	RoleRef struct {
		Kind string `yaml:"kind"`
		Name string `yaml:"name"`
	} `yaml:"roleRef"`
	Subjects []struct {
		Kind      string `yaml:"kind"`
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"subjects"`

	Spec struct {
		Pod podSpec `yaml:",inline"` // the Spec of a Pod

		Type                  string        `yaml:"type"`
		ClusterIP             string        `yaml:"clusterIP"`
		ExternalTrafficPolicy string        `yaml:"externalTrafficPolicy"`
		Ports                 []servicePort `yaml:"ports"`
		Selector              any           `yaml:"selector"` // labels in a Service, matchLabels elsewhere

		Replicas    int    `yaml:"replicas"`
		MaxReplicas int    `yaml:"maxReplicas"`
		ServiceName string `yaml:"serviceName"`
		Template    struct {
			Metadata metadata `yaml:"metadata"`
			Spec     podSpec  `yaml:"spec"`
		} `yaml:"template"`

		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		PodManagementPolicy      string `yaml:"podManagementPolicy"`

		PodSelector         any               `yaml:"podSelector"`
		Endpoints           []metricsEndpoint `yaml:"endpoints"`
		PodMetricsEndpoints []metricsEndpoint `yaml:"podMetricsEndpoints"`
		Metrics             []struct {
			Resource struct {
				Name   string       `yaml:"name"`
				Target metricTarget `yaml:"target"`
			} `yaml:"resource"`
			Pods struct {
				Metric struct {
					Name string `yaml:"name"`
				} `yaml:"metric"`
				Target metricTarget `yaml:"target"`
			} `yaml:"pods"`
		} `yaml:"metrics"`
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
		SecretName  string       `yaml:"secretName"`
		PolicyTypes []string     `yaml:"policyTypes"`
		Ingress     []policyRule `yaml:"ingress"`
		Egress      []policyRule `yaml:"egress"`
	} `yaml:"spec"`
}

// policyRule is a rule of a NetworkPolicy.
type policyRule struct {
	Ports []struct {
		Port    any `yaml:"port"`
		EndPort int `yaml:"endPort"`
	} `yaml:"ports"`
	From []policyPeer `yaml:"from"`
	To   []policyPeer `yaml:"to"`
}

// metricsEndpoint is an endpoint of a PodMonitor or ServiceMonitor.
type metricsEndpoint struct {
	Port string `yaml:"port"`
	Path string `yaml:"path"`

	ScrapeTimeout     string           `yaml:"scrapeTimeout"`
	Relabelings       []map[string]any `yaml:"relabelings"`
	MetricRelabelings []map[string]any `yaml:"metricRelabelings"`
}

type policyPeer struct {
	PodSelector any `yaml:"podSelector"`
	IPBlock     struct {
		CIDR   string   `yaml:"cidr"`
		Except []string `yaml:"except"`
	} `yaml:"ipBlock"`
}

type metadata struct {
	UID         string            `yaml:"uid"`
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rule is an alert.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// metricTarget is the target of a HorizontalPodAutoscaler.
type metricTarget struct {
	AverageValue string `yaml:"averageValue"`
}

type servicePort struct {
	Name       string `yaml:"name"`
	Port       int    `yaml:"port"`
	TargetPort any    `yaml:"targetPort"` // a number, or the name of a container port
	NodePort   int    `yaml:"nodePort"`
}

type podSpec struct {
	ServiceAccountName            string          `yaml:"serviceAccountName"`
	AutomountServiceAccountToken  *bool           `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool           `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int             `yaml:"terminationGracePeriodSeconds"`
	SecurityContext               securityContext `yaml:"securityContext"`
	HostNetwork                   bool            `yaml:"hostNetwork"`
	DNSPolicy                     string          `yaml:"dnsPolicy"`
	DNSConfig                     map[string]any  `yaml:"dnsConfig"`
	InitContainers                []container     `yaml:"initContainers"`
	Containers                    []container     `yaml:"containers"`
	Volumes                       []volume        `yaml:"volumes"`
}

type securityContext struct {
	RunAsNonRoot             bool  `yaml:"runAsNonRoot"`
	RunAsUser                int   `yaml:"runAsUser"`
	RunAsGroup               int   `yaml:"runAsGroup"`
	FSGroup                  int   `yaml:"fsGroup"`
	AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
	Capabilities             struct {
		Add  []string `yaml:"add"`
		Drop []string `yaml:"drop"`
	} `yaml:"capabilities"`
	SeccompProfile struct {
		Type string `yaml:"type"`
	} `yaml:"seccompProfile"`
}

type container struct {
	Image           string          `yaml:"image"`
	Command         []string        `yaml:"command"`
	Args            []string        `yaml:"args"`
	SecurityContext securityContext `yaml:"securityContext"`
	Env             []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	Ports     []containerPort `yaml:"ports"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
	} `yaml:"resources"`
	Lifecycle struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	VolumeMounts   []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
		ReadOnly  bool   `yaml:"readOnly"`
	} `yaml:"volumeMounts"`
}

type containerPort struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type volume struct {
	Name     string `yaml:"name"`
	EmptyDir struct {
		Medium string `yaml:"medium"`
	} `yaml:"emptyDir"`
	Secret struct {
		SecretName  string `yaml:"secretName"`
		DefaultMode int    `yaml:"defaultMode"`
		Items       []struct {
			Key  string `yaml:"key"`
			Path string `yaml:"path"`
		} `yaml:"items"`
	} `yaml:"secret"`
}

// valueFiles returns all files of values in babelftp/ci.
func valueFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of values: %v", err)
	}
	return files
}
