package deploy

import (
	"crypto/x509"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const configFile = "/etc/babelftp/babelftp.yaml"

// someHash is a password hash for a Secret that already exists in the cluster.
const someHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"

// loadConfig loads the configuration like the pod of the server.
func loadConfig(t *testing.T, r release) *config.Config {
	t.Helper()
	return loadPod(t, r, r.pod(), t.TempDir())
}

// loadPod loads the configuration like a pod, from its variables and from the files of its volumes, which it
// creates below root.
func loadPod(t *testing.T, r release, pod podSpec, root string) *config.Config {
	t.Helper()
	environ := mount(t, r, pod, root)
	args := pod.Containers[0].Args
	if len(pod.Containers[0].Command) > 0 { // babelftp-kubernetes, which has no subcommands
		args = append([]string{"serve"}, args...)
	}
	if len(args) < 3 || args[0] != "serve" && args[0] != "check" || args[1] != "--config" || args[2] != configFile {
		t.Fatalf("the container runs babelftp %v", args)
	}
	cfg, err := config.Load(filepath.Join(root, configFile), environ)
	if err != nil {
		t.Fatalf("babelftp refuses the configuration of the chart:\n%v", err)
	}
	if s := cfg.S3; s.Endpoint != "" && (s.PathStyle == nil || !*s.PathStyle) {
		t.Errorf("buckets have no host names of their own at %s: s3.path_style must be true", s.Endpoint)
	}
	return cfg
}

// mount creates the files of a pod's volumes below root and returns its variables. Paths in /run/babelftp are
// moved below root.
func mount(t *testing.T, r release, pod podSpec, root string) (environ []string) {
	t.Helper()
	return mountFor(t, r, pod, root, root)
}

// mountFor is like mount for a process that sees the files in root at another path.
func mountFor(t *testing.T, r release, pod podSpec, root, seen string) (environ []string) {
	t.Helper()
	below := func(text string) string { return strings.ReplaceAll(text, "/run/babelftp/", seen+"/run/babelftp/") }
	volumes := map[string]volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		v, exists := volumes[mount.Name]
		if !exists {
			t.Errorf("there is no volume %s for %s", mount.Name, mount.MountPath)
		}
		must.OK(t, os.MkdirAll(filepath.Join(root, mount.MountPath), 0o700))
		for name, content := range files(t, r, v) {
			writeFile(t, filepath.Join(root, mount.MountPath, name), below(content))
		}
	}
	for _, e := range pod.Containers[0].Env {
		environ = append(environ, e.Name+"="+below(e.Value))
	}
	return environ
}

// files returns the content of a volume: the data of a Secret in the release or in the cluster.
func files(t *testing.T, r release, v volume) map[string]string {
	t.Helper()
	data := secretData(t, r, v)
	if len(v.Secret.Items) == 0 {
		return data
	}
	chosen := map[string]string{}
	for _, item := range v.Secret.Items {
		content, exists := data[item.Key]
		if !exists {
			t.Errorf("volume %s: the Secret %s has no key %s", v.Name, v.Secret.SecretName, item.Key)
		}
		chosen[item.Path] = content
	}
	return chosen
}

func secretData(t *testing.T, r release, v volume) map[string]string {
	t.Helper()
	if made := r.find("Secret", v.Secret.SecretName); made.Kind != "" {
		decoded := maps.Clone(made.StringData)
		if decoded == nil {
			decoded = map[string]string{}
		}
		for name, text := range made.Data {
			content, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				t.Errorf("Secret %s: %s: %v", v.Secret.SecretName, name, err)
			}
			decoded[name] = string(content)
		}
		return decoded
	}
	switch v.Secret.SecretName {
	case "": // an emptyDir
		return nil
	case "babelftp-s3":
		return map[string]string{"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "hidden\n"}
	case "babelftp-state":
		return map[string]string{"keys": strings.Repeat("A", 43) + "="}
	case "babelftp-oidc":
		return map[string]string{"client_secret": "hidden\n"}
	case "babelftp-ldap":
		return map[string]string{"password": "hidden\n"}
	case "acme-ftp-users":
		return map[string]string{"alice": someHash}
	case "babelftp-admin":
		return map[string]string{"users": "ann:" + someHash + "\n"}
	case "minio-ca":
		cert, _ := must.Certificate(t, &x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
		return map[string]string{"ca.crt": cert}
	case "babelftp-config":
		return map[string]string{"babelftp.yaml": "tenants: {acme: {bucket: acme-data, users_file: users.yaml}}\n",
			"users.yaml": "users: {alice: {password_hash: \"" + someHash + "\"}}\n"}
	case "ftp-acme-example-tls", "acme-tenant-tls", "test-babelftp-tls":
		cert, key := must.Certificate(t, &x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
		return map[string]string{"tls.crt": cert, "tls.key": key}
	}
	t.Errorf("volume %s: nothing creates the Secret %s", v.Name, v.Secret.SecretName)
	return nil
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must.WriteFile(t, name, content)
}

// TestConfiguration checks values that come from different parts of the chart.
func TestConfiguration(t *testing.T) {
	for _, tt := range []struct {
		values  string
		keyID   string // S3 access key ID
		address string // public address
		tls     bool
		drain   time.Duration
	}{
		{values: "minimal", drain: 10 * time.Minute},
		{values: "loadbalancer", keyID: "AKIAIOSFODNN7EXAMPLE", address: "203.0.113.7", tls: true,
			drain: 5 * time.Minute},
		{values: "nodeport", address: "198.51.100.20", drain: 10 * time.Minute},
		{values: "metallb", keyID: "AKIAIOSFODNN7EXAMPLE", address: "198.51.100.20", drain: 10 * time.Minute},
		{values: "openshift", address: "203.0.113.7", drain: 10 * time.Minute},
	} {
		t.Run(tt.values, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", tt.values+"-values.yaml"))
			cfg := loadConfig(t, r)
			if cfg.S3.AccessKeyID != tt.keyID {
				t.Errorf("access key %q, want %q", cfg.S3.AccessKeyID, tt.keyID)
			}
			if got := cfg.Passive.PublicAddress; got.String() != tt.address {
				t.Errorf("public address %s, want %s", got, tt.address)
			}
			if got := cfg.TLS.CertFile != "" && cfg.TLS.ImplicitListen != "" && cfg.TLS.IsRequired(); got != tt.tls {
				t.Errorf("TLS %+v, want %t", cfg.TLS, tt.tls)
			}
			if got := cfg.Admin.Listen == "127.0.0.1:9122" &&
				!cfg.Admin.Users.Empty(); got != (tt.values == "loadbalancer") {
				t.Errorf("the address of administrators is %q", cfg.Admin.Listen)
			}
			if got := cfg.Admin.OIDC.ClientSecret.Reveal() == "hidden"; got != (tt.values == "loadbalancer") {
				t.Errorf("OpenID Connect: %+v", cfg.Admin.OIDC)
			}
			if cfg.DrainTimeout != tt.drain {
				t.Errorf("drain timeout %s, want %s", cfg.DrainTimeout, tt.drain)
			}
			wait := time.Duration(r.container().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if wait != 5*time.Second {
				t.Errorf("got a wait of %v before the stop", wait)
			}
			if grace := time.Duration(r.pod().TerminationGracePeriodSeconds) * time.Second; grace <= wait+
				cfg.DrainTimeout {
				t.Errorf("the pod is killed after %s, before the drain timeout of %s", grace, cfg.DrainTimeout)
			} else if ready := r.container().ReadinessProbe; time.Duration(
				(ready.FailureThreshold-1)*ready.PeriodSeconds)*time.Second < grace-wait {
				t.Errorf(
					"the pod stays ready for %d probes in %d seconds each, less than the %s that it has after SIGTERM",
					ready.FailureThreshold, ready.PeriodSeconds, grace-wait)
			}
		})
	}
}

// TestHooksReadTheSame checks that the pods of hooks load the same configuration as the server, without
// objects that Helm creates later. Only a certificate that cert-manager has yet to obtain may be missing.
func TestHooksReadTheSame(t *testing.T) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			r := render(t, values)
			root := t.TempDir()
			want := loadPod(t, r, r.pod(), root)
			for name, pod := range r.pods() {
				for _, v := range pod.Volumes {
					o := r.find("Secret", v.Secret.SecretName)
					if before := strings.HasPrefix(
						o.Metadata.Annotations["helm.sh/hook"],
						"pre-install"); name == "check" && o.Kind != "" && !before {
						t.Errorf("the check mounts the Secret %s, which Helm makes after it", o.Metadata.Name)
					}
				}
				got := loadPod(t, r, pod, root)
				if name == "check" && r.find("Certificate", r.statefulSet.Metadata.Name).Kind != "" {
					got.TLS.CertFile, got.TLS.KeyFile, got.TLS.ImplicitListen = want.TLS.CertFile, want.TLS.KeyFile,
						want.TLS.ImplicitListen
					got.TLS.Required = want.TLS.Required
				}
				read := func(c *config.Config) []any {
					return []any{c.Tenants, c.S3, c.TLS, c.Passive, c.Memory, c.Listen, c.DrainTimeout}
				}
				if !reflect.DeepEqual(read(got), read(want)) {
					t.Errorf("the pod of the %s reads\n%+v\nthe server\n%+v", name, got, want)
				}
			}
		})
	}
}
