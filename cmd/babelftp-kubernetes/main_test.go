package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Wrong usage, a configuration for another command and an unknown API server are errors that say what to do.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must.WriteFile(t, file, text)
		return file
	}
	const minimal = "metrics_listen: \"\"\nadmin_socket: \"\"\n"
	kubernetes := write("kubernetes.yaml", minimal+"kubernetes: {folder: "+dir+", namespaces: {team-a: {}}}\n")
	none := write("none.yaml", minimal+"tenants: {acme: {bucket: acme-data, users: {alice: {disabled: true}}}}\n")
	broken := write("broken.yaml", minimal+"kubernetes: {namespaces: {Team_A: {}}}\n")
	garbage := write("kubeconfig", "no: [yaml")
	kubeconfig := write("good", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"+
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n")
	for _, tc := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"argument", []string{"serve"}, 2,
			"babelftp-kubernetes: unexpected argument \"serve\" (see babelftp-kubernetes --help)\n"},
		{"flag", []string{"--port", "21"}, 2, "babelftp-kubernetes: unknown flag: --port (see babelftp-kubernetes --help)\n"},
		{"no-config", []string{"--config", ""}, 2,
			"babelftp-kubernetes: --config must not be empty (see babelftp-kubernetes --help)\n"},
		{"missing-config", []string{"--config", "nowhere.yaml"}, 1,
			"babelftp-kubernetes: cannot read the configuration nowhere.yaml: no such file or directory\n"},
		{"invalid-config", []string{"--config", broken}, 1, "babelftp-kubernetes: the configuration has 1 problem\n"},
		{"no-section", []string{"--config", none}, 1,
			"babelftp-kubernetes: the configuration has no kubernetes section, which says where the custom resources are: " +
				"add kubernetes.namespaces, or use babelftp serve\n"},
		{"no-cluster", []string{"--config", kubernetes}, 1,
			"babelftp-kubernetes: this is not a pod with a service account, so the API server is unknown: set --kubeconfig " +
				"or KUBECONFIG, or automountServiceAccountToken: true in the pod\n"},
		{"missing-kubeconfig", []string{"--config", kubernetes, "--kubeconfig", filepath.Join(dir, "none")}, 1,
			"no such file or directory\n"},
		{"invalid-kubeconfig", []string{"--config", kubernetes, "--kubeconfig", garbage}, 1,
			"babelftp-kubernetes: kubeconfig " + garbage + ": "},
		{"no-namespace", []string{"--config", kubernetes, "--kubeconfig", kubeconfig}, 1,
			"babelftp-kubernetes: the namespace of this program is unknown: set --namespace or POD_NAMESPACE: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, name := range []string{"KUBECONFIG", "POD_NAMESPACE", "KUBERNETES_SERVICE_HOST"} {
				t.Setenv(name, "")
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), tc.args, &stdout, &stderr)
			if code != tc.code || !strings.Contains(stderr.String(), tc.stderr) || stdout.Len() > 0 {
				t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for flag, want := range map[string]string{
		"--help":    "babelftp-kubernetes --config babelftp.yaml --kubeconfig ~/.kube/config --namespace ftp\n",
		"--version": "babelftp-kubernetes ",
	} {
		var stdout bytes.Buffer
		code := run(t.Context(), []string{flag}, &stdout, os.Stderr)
		if code != 0 || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: exit code %d\n%s", flag, code, stdout.String())
		}
	}
}
