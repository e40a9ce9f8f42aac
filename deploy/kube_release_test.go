//go:build kube

package deploy

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestKubeRelease runs the server of a release with the rights of its service account, and a team that has only the
// rights of an editor.
func TestKubeRelease(t *testing.T) {
	k := startKube(t)
	k.release = strings.Fields(*helmReleases)[0]
	k.createNamespace("argocd")
	k.Apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: deployer, namespace: argocd}\n")
	one := "replicas=1,maxReplicas=1"
	k.helm("install", "test", chart, "--values", customResources, "--no-hooks", "--set", one)
	storage := s3sim.New(s3sim.Options{})
	storage.CreateBucket("team-a-acme")
	web := httptest.NewServer(storage)
	t.Cleanup(web.Close)
	account := k.As(k.AccountToken("ftp", "test-babelftp"))
	address := startWithResources(
		t, render(t, customResources, one), account.Kubeconfig("ftp"), "AWS_ENDPOINT_URL="+web.URL)

	k.Apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: alice, namespace: team-a}\n"+
		"stringData: {password_hash: %q}\n", servicetest.PasswordHash().Reveal()))
	team := k.As(k.AccountToken("argocd", "deployer"))
	must.OK(t, team.TryApply(`
apiVersion: babelftp.io/v1alpha1
kind: FTPTenant
metadata: {name: acme, namespace: team-a}
spec: {bucket: team-a-acme, greeting: {en: "Welcome, {User}"}}
---
apiVersion: babelftp.io/v1alpha1
kind: FTPUser
metadata: {name: alice, namespace: team-a}
spec: {tenant: acme, password_hash_secret: {name: alice}}
`))
	waitForCondition(t, k.Client, "team-a/ftptenants/acme", "Accepted", "True", "Accepted")
	waitForCondition(t, k.Client, "team-a/ftptenants/acme", "Ready", "True", "Ready")
	waitForCondition(t, k.Client, "team-a/ftpusers/alice", "Ready", "True", "Ready")
	// The chart has created this tenant, and nobody the Secret.
	waitForCondition(t, k.Client, "team-b/ftptenants/archive", "Accepted", "False", "SecretNotFound")
	client := ftptest.Dial(t, address+":2121")
	client.Login("alice@team-a_acme", servicetest.Password)
	client.Store("report.csv", "1;2;3")
	client.Want("1;2;3", "RETR report.csv")

	for name, document := range map[string]string{
		"another-namespace": "apiVersion: babelftp.io/v1alpha1\nkind: FTPUser\nmetadata: {name: eve, namespace: team-b}\n" +
			"spec: {tenant: archive, disabled: true}\n",
		"secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: eve, namespace: team-a}\n",
	} {
		if err := team.TryApply(document); err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	status := resourcePath("team-a/ftptenants/acme") + "/status"
	if err := team.Patch(status, `{"status": {"name": "eve"}}`); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("status: got %v, want a refusal", err)
	}
}

// resourcePath returns the path of a custom resource NAMESPACE/RESOURCE/NAME.
func resourcePath(id string) string { return "/apis/babelftp.io/v1alpha1/namespaces/" + id }

// waitForCondition waits until a resource has a condition with this status and reason.
func waitForCondition(t *testing.T, k *kubeserver.Client, id, kind, status, reason string) {
	t.Helper()
	again := time.NewTicker(time.Second / 10)
	defer again.Stop()
	for end := time.Now().Add(waitTimeout); ; <-again.C {
		o, err := k.Get(resourcePath(id))
		must.OK(t, err)
		for _, c := range list(field(o, "status", "conditions")) {
			if c["type"] == kind && c["status"] == status && c["reason"] == reason {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s: want %s %s with the reason %s, got %v", id, kind, status, reason, o["status"])
		}
	}
}
