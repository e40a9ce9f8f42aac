//go:build kube

package deploy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestKube installs the chart on a Kubernetes API server, upgrades the release between files of values, and
// removes it. There are no nodes, so pods do not run, and the test itself runs the Job of the check. The
// schemas of custom resources accept everything here; module kubetest decodes them.
func TestKube(t *testing.T) {
	k := startKube(t)
	for _, crd := range []struct{ group, version, kind, plural string }{
		{"monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"},
		{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"},
		{"monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"},
		{"cert-manager.io", "v1", "Certificate", "certificates"},
	} {
		k.createCRD(crd.group, crd.version, crd.kind, crd.plural)
	}
	for _, helm := range strings.Fields(*helmReleases) {
		t.Run("helm-"+helm, func(t *testing.T) { testRelease(t, k, helm) })
	}
	t.Run("quickstart", func(t *testing.T) {
		k.in(t)
		text := must.ReadFile(t, "quickstart.yaml")
		for document := range strings.SplitSeq(text, "\n---\n") {
			var path string
			switch {
			case strings.Contains(document, "\nkind: Namespace\n"):
				path = "/api/v1/namespaces"
			case strings.Contains(document, "\nkind: Service\n"):
				path = "/api/v1/namespaces/babelftp-demo/services"
			default:
				path = "/apis/apps/v1/namespaces/babelftp-demo/deployments"
			}
			k.Post(path+"?fieldValidation=Strict", "application/yaml", document)
		}
	})
}

// testRelease installs, changes and removes the chart with one release of Helm.
func testRelease(t *testing.T, k *kube, helm string) {
	k.release = helm
	values := valueFiles(t)
	for _, file := range values {
		t.Run("install-"+filepath.Base(file), func(t *testing.T) {
			k.in(t)
			k.helm("install", "test", chart, "--values", file, "--no-hooks")
			r := render(t, file)
			for _, o := range r.objects {
				if o.Metadata.Annotations["helm.sh/hook"] == "" {
					k.want(o)
				}
			}
			k.helm("uninstall", "test", "--no-hooks")
			k.helm("install", "test", chart, "--values", file, "--dry-run=server") // needs the definitions
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		k.in(t)
		k.helm("install", "test", chart, "--values", values[0], "--no-hooks")
		for _, file := range values {
			if name := filepath.Base(file); name == "loadbalancer-values.yaml" || name == "nodeport-values.yaml" {
				continue // has another load balancer class and other names
			}
			k.helm(
				"upgrade", "test", chart, "--values", file, "--no-hooks", "--set", "config.tls.required=false", "--set",
				"service.loadBalancerClass=service.k8s.aws/nlb", "--set", "service.type=LoadBalancer")
		}
		k.helm("uninstall", "test", "--no-hooks")
	})
	t.Run("check", func(t *testing.T) {
		k.in(t)
		babelftp, file := binary(t, "-tags", "nodemo"), filepath.Join(chart, "ci", "minimal-values.yaml")
		wrong := []string{"--set", "config.tenants.acme.users.alice.password_hash=secret"}
		if err := k.helmWithJobs(
			babelftp, append([]string{"install", "wrong", chart, "--values", file}, wrong...)...); err == nil {
			t.Error("installed an invalid configuration")
		}
		const path = "/apis/apps/v1/namespaces/ftp/statefulsets/"
		if code, text, err := k.Request(http.MethodGet, path+"wrong-babelftp", "", ""); code != http.StatusNotFound {
			t.Errorf("the StatefulSet: %d %v %s", code, err, text)
		}
		if err := k.helmWithJobs(babelftp, "install", "right", chart, "--values", file); err != nil {
			t.Errorf("valid configuration: %v", err)
		}
		_, before, err := k.Request(http.MethodGet, path+"right-babelftp", "", "")
		must.OK(t, err)
		if err := k.helmWithJobs(
			babelftp, append(
				[]string{"upgrade", "right", chart, "--values", file, "--set", "passive.ports=40000-40039"},
				wrong...)...); err == nil {
			t.Error("an invalid configuration replaced a valid one")
		}
		if _, after, err := k.Request(http.MethodGet, path+"right-babelftp", "", ""); err != nil || after != before {
			t.Errorf("the StatefulSet has changed: %v\n%s\n%s", err, before, after)
		}
		for _, name := range []string{"wrong", "right"} {
			k.helm("uninstall", name, "--no-hooks")
			// The hook's Job remains, and the next release of Helm would find it complete.
			job := "/apis/batch/v1/namespaces/ftp/jobs/" + name + "-babelftp-check?propagationPolicy=Background"
			if code, text, err := k.Request(http.MethodDelete, job, "", ""); code != http.StatusOK {
				t.Errorf("delete the Job: %d %v %s", code, err, text)
			}
		}
	})
}

// kube is an API server with a release of Helm.
type kube struct {
	*kubeserver.Client
	t       *testing.T
	config  string // a kubeconfig
	release string // release of Helm
}

// startKube starts an API server with the namespaces of the release and of custom resources.
func startKube(t *testing.T) *kube {
	t.Helper()
	server := kubeserver.Start(t)
	k := &kube{t: t, Client: server.Client, config: server.Kubeconfig("ftp")}
	for _, name := range []string{"ftp", "team-a", "team-b"} { // of the files of values
		k.createNamespace(name)
	}
	return k
}

// in makes t the test of later requests.
func (k *kube) in(t *testing.T) {
	k.t, k.Client = t, k.For(t)
}

func (k *kube) createNamespace(name string) {
	k.t.Helper()
	k.Post("/api/v1/namespaces", "application/yaml", fmt.Sprintf(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: "+
			"restricted}}\n", name))
}

// createCRD creates a custom resource definition and waits until it is served.
func (k *kube) createCRD(group, version, kind, plural string) {
	k.t.Helper()
	k.Post(
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml",
		fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[4]s.%[1]s, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[4]s}
  versions:
    - name: %[2]s
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, group, version, kind, plural))
	k.WaitFor(fmt.Sprintf("/apis/%s/%s/%s", group, version, plural))
}

// helm runs helm with the API server.
func (k *kube) helm(args ...string) {
	k.t.Helper()
	if run := runOneHelm(k.t, k.release, append(args, "--kubeconfig", k.config)...); run.err != nil {
		k.t.Errorf("helm %s: %v", strings.Join(args, " "), run)
	}
}

// helmWithJobs runs helm, and runs the Job that checks the configuration at the same time: the built program
// with the files and variables of the Job's pod.
func (k *kube) helmWithJobs(babelftp string, args ...string) error {
	k.t.Helper()
	name := args[1] + "-babelftp-check"
	job, secret := "/apis/batch/v1/namespaces/ftp/jobs/"+name, "/api/v1/namespaces/ftp/secrets/"+name
	ended := make(chan error, 1)
	go func() {
		run := runOneHelm(k.t, k.release, append(args, "--kubeconfig", k.config)...)
		k.t.Logf("helm %s: %v", args[0], run)
		ended <- run.err
	}()
	again := time.NewTicker(time.Second / 5)
	defer again.Stop()
	done := ""
	for {
		select {
		case err := <-ended:
			if done == "" {
				k.t.Errorf("helm %s made no Job %s", args[0], name)
			}
			return err
		case <-again.C:
		}
		code, text, err := k.Request(http.MethodGet, job, "", "")
		if err != nil || code != http.StatusOK {
			continue
		}
		made := parse(k.t, text).check
		if made.Metadata.UID == done {
			continue
		}
		_, text, err = k.Request(http.MethodGet, secret, "", "")
		if err != nil {
			k.t.Fatal(err)
		}
		conditions := [2]string{"SuccessCriteriaMet", "Complete"}
		if out, err := runPod(k.t, babelftp, parse(k.t, text), made.Spec.Template.Spec); err != nil {
			conditions = [2]string{"FailureTarget", "Failed"}
			k.t.Logf("the check: %v\n%s", err, out)
		}
		k.finishJob(job, conditions)
		done = made.Metadata.UID
	}
}

// finishJob writes the status of a Job, like the Job controller.
func (k *kube) finishJob(path string, conditions [2]string) {
	k.t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	status := map[string]any{"startTime": now}
	var all []map[string]string
	for _, c := range conditions {
		all = append(
			all, map[string]string{"type": c, "status": "True", "lastProbeTime": now, "lastTransitionTime": now,
				"reason": "Test"})
	}
	status["conditions"] = all
	if conditions[1] == "Complete" {
		status["completionTime"], status["succeeded"] = now, 1
	}
	body, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		k.t.Fatal(err)
	}
	if code, text, err := k.Request(
		http.MethodPatch, path+"/status", "application/merge-patch+json",
		string(body)); err != nil || code != http.StatusOK {
		k.t.Fatalf("the status of the Job: %d %v %s", code, err, text)
	}
}

// want checks that an object of the release exists.
func (k *kube) want(o object) {
	k.t.Helper()
	group, plural := map[string]string{
		"Certificate": "apis/cert-manager.io/v1", "HorizontalPodAutoscaler": "apis/autoscaling/v2",
		"NetworkPolicy":       "apis/networking.k8s.io/v1",
		"PodDisruptionBudget": "apis/policy/v1", "PodMonitor": "apis/monitoring.coreos.com/v1",
		"PrometheusRule": "apis/monitoring.coreos.com/v1", "ServiceMonitor": "apis/monitoring.coreos.com/v1",
		"StatefulSet": "apis/apps/v1", "FTPTenant": "apis/babelftp.io/v1alpha1", "FTPUser": "apis/babelftp.io/v1alpha1",
		"Role": "apis/rbac.authorization.k8s.io/v1", "RoleBinding": "apis/rbac.authorization.k8s.io/v1",
	}[o.Kind], strings.ToLower(o.Kind)+"s"
	if group == "" {
		group = "api/v1"
	}
	if o.Kind == "NetworkPolicy" {
		plural = "networkpolicies"
	}
	code, text, err := k.Request(
		http.MethodGet, fmt.Sprintf("/%s/namespaces/%s/%s/%s", group, cmp.Or(o.Metadata.Namespace, "ftp"), plural, o.Metadata.Name), "", "")
	var there struct{ Kind string }
	if err != nil || code != http.StatusOK || json.Unmarshal([]byte(text), &there) != nil || there.Kind != o.Kind {
		k.t.Errorf("%s %s: %d %v %.300s", o.Kind, o.Metadata.Name, code, err, text)
	}
}
