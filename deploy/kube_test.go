//go:build kube

package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// kubeAPIServer is built by make kube.
const kubeAPIServer = "../.tools/bin/kube-apiserver"

// TestKube installs the chart on a Kubernetes API server, upgrades the release between files of values, and
// removes it. There are no nodes, so pods do not run, and the test itself runs the Job of the check. The
// schemas of custom resources accept everything here; module kubetest decodes them.
func TestKube(t *testing.T) {
	k := startKube(t)
	k.createNamespace("ftp")
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
		k.t = t
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
			k.post(path+"?fieldValidation=Strict", "application/yaml", document)
		}
	})
}

// testRelease installs, changes and removes the chart with one release of Helm.
func testRelease(t *testing.T, k *kube, helm string) {
	k.release = helm
	values := valueFiles(t)
	for _, file := range values {
		t.Run("install-"+filepath.Base(file), func(t *testing.T) {
			k.t = t
			k.helm("install", "test", chart, "--values", file, "--dry-run=server")
			k.helm("install", "test", chart, "--values", file, "--no-hooks")
			r := render(t, file)
			for _, o := range r.objects {
				if o.Metadata.Annotations["helm.sh/hook"] == "" {
					k.want(o)
				}
			}
			k.helm("uninstall", "test", "--no-hooks")
		})
	}
	t.Run("upgrade", func(t *testing.T) {
		k.t = t
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
		k.t = t
		babelftp, file := binary(t, "-tags", "nodemo"), filepath.Join(chart, "ci", "minimal-values.yaml")
		wrong := []string{"--set", "config.tenants.acme.users.alice.password_hash=secret"}
		if err := k.helmWithJobs(
			babelftp, append([]string{"install", "wrong", chart, "--values", file}, wrong...)...); err == nil {
			t.Error("installed an invalid configuration")
		}
		const path = "/apis/apps/v1/namespaces/ftp/statefulsets/"
		if code, text, err := k.request(http.MethodGet, path+"wrong-babelftp", "", ""); code != http.StatusNotFound {
			t.Errorf("the StatefulSet: %d %v %s", code, err, text)
		}
		if err := k.helmWithJobs(babelftp, "install", "right", chart, "--values", file); err != nil {
			t.Errorf("valid configuration: %v", err)
		}
		_, before, err := k.request(http.MethodGet, path+"right-babelftp", "", "")
		must.OK(t, err)
		if err := k.helmWithJobs(
			babelftp, append(
				[]string{"upgrade", "right", chart, "--values", file, "--set", "passive.ports=40000-40039"},
				wrong...)...); err == nil {
			t.Error("an invalid configuration replaced a valid one")
		}
		if _, after, err := k.request(http.MethodGet, path+"right-babelftp", "", ""); err != nil || after != before {
			t.Errorf("the StatefulSet has changed: %v\n%s\n%s", err, before, after)
		}
		for _, name := range []string{"wrong", "right"} {
			k.helm("uninstall", name, "--no-hooks")
			// The hook's Job remains, and the next release of Helm would find it complete.
			job := "/apis/batch/v1/namespaces/ftp/jobs/" + name + "-babelftp-check?propagationPolicy=Background"
			if code, text, err := k.request(http.MethodDelete, job, "", ""); code != http.StatusOK {
				t.Errorf("delete the Job: %d %v %s", code, err, text)
			}
		}
	})
}

// kube is an API server.
type kube struct {
	t       *testing.T
	url     string
	token   string
	config  string // a kubeconfig
	release string // release of Helm
	client  *http.Client
	ended   atomic.Bool // etcd or the API server has exited
}

func startKube(t *testing.T) *kube {
	t.Helper()
	dir := t.TempDir()
	k := &kube{t: t, token: "test", config: filepath.Join(dir, "kubeconfig"), client: &http.Client{
		// the certificate of the API server is self-signed
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout:   waitTimeout,
	}}
	store, peers, address := "http://"+closedPort(t), "http://"+closedPort(t), closedPort(t)
	k.url = "https://" + address
	k.run(
		"etcd", "--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", store, "--advertise-client-urls",
		store,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers,
		"--unsafe-no-fsync")

	cert, key := filepath.Join(dir, "account.crt"), filepath.Join(dir, "account.key")
	public, private := must.Certificate(t, &x509.Certificate{DNSNames: []string{"accounts.example"}})
	writeFile(t, cert, public)
	writeFile(t, key, private)
	tokens := filepath.Join(dir, "tokens.csv")
	writeFile(t, tokens, k.token+",admin,admin,system:masters\n")
	_, port, err := net.SplitHostPort(address)
	must.OK(t, err)
	k.run(
		kubeAPIServer, "--etcd-servers", store, "--cert-dir", filepath.Join(dir, "certs"), "--bind-address",
		"127.0.0.1", "--secure-port", port,
		"--service-cluster-ip-range", "10.0.0.0/16,fd00::/108", "--token-auth-file", tokens, "--authorization-mode",
		"RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", cert,
		"--service-account-signing-key-file", key,
		"--disable-admission-plugins", "ServiceAccount")
	writeFile(t, k.config, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: test, namespace: ftp}}]
`, k.url, k.token))
	k.waitFor("/readyz")
	return k
}

// waitFor requests a path until the status is 200.
func (k *kube) waitFor(path string) {
	k.t.Helper()
	again := time.NewTicker(time.Second / 5)
	defer again.Stop()
	for end := time.Now().Add(3 * waitTimeout); ; <-again.C {
		code, text, err := k.request(http.MethodGet, path, "", "")
		if err == nil && code == http.StatusOK {
			return
		}
		if time.Now().After(end) || k.ended.Load() {
			k.t.Fatalf("GET %s: %d %v %s", path, code, err, text)
		}
	}
}

// run starts a program that is stopped at the end of the test.
func (k *kube) run(name string, args ...string) {
	k.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(k.t.Context()), name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		k.ended.Store(true)
		close(done)
	}()
	t := k.t
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if t.Failed() {
			t.Logf("%s:\n%s", name, out.Bytes()[max(0, out.Len()-5000):])
		}
	})
}

func (k *kube) request(method, path, kind, body string) (int, string, error) {
	request, err := http.NewRequestWithContext(k.t.Context(), method, k.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+k.token)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	response, err := k.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (k *kube) post(path, kind, body string) {
	k.t.Helper()
	if code, text, err := k.request(http.MethodPost, path, kind, body); err != nil || code != http.StatusCreated {
		k.t.Errorf("POST %s: %d %v %s\n%s", path, code, err, text, body)
	}
}

func (k *kube) createNamespace(name string) {
	k.t.Helper()
	k.post("/api/v1/namespaces", "application/yaml", fmt.Sprintf(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: "+
			"restricted}}\n", name))
}

// createCRD creates a custom resource definition and waits until it is served.
func (k *kube) createCRD(group, version, kind, plural string) {
	k.t.Helper()
	k.post(
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
	k.waitFor(fmt.Sprintf("/apis/%s/%s/%s", group, version, plural))
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
		code, text, err := k.request(http.MethodGet, job, "", "")
		if err != nil || code != http.StatusOK {
			continue
		}
		made := parse(k.t, text).check
		if made.Metadata.UID == done {
			continue
		}
		_, text, err = k.request(http.MethodGet, secret, "", "")
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
	if code, text, err := k.request(
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
		"StatefulSet": "apis/apps/v1",
	}[o.Kind], strings.ToLower(o.Kind)+"s"
	if group == "" {
		group = "api/v1"
	}
	if o.Kind == "NetworkPolicy" {
		plural = "networkpolicies"
	}
	code, text, err := k.request(
		http.MethodGet, fmt.Sprintf("/%s/namespaces/ftp/%s/%s", group, plural, o.Metadata.Name), "", "")
	var there struct{ Kind string }
	if err != nil || code != http.StatusOK || json.Unmarshal([]byte(text), &there) != nil || there.Kind != o.Kind {
		k.t.Errorf("%s %s: %d %v %.300s", o.Kind, o.Metadata.Name, code, err, text)
	}
}
