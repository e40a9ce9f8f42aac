package deploy

import (
	"crypto/x509"
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/certtest"
	"github.com/babelftp/babelftp/internal/config"
)

const configFile = "/etc/babelftp/babelftp.yaml"

// loadConfig loads the configuration as the pod would: from a tree of files like the one that its volumes make.
func loadConfig(t *testing.T, r release) *config.Config {
	t.Helper()
	root := t.TempDir()
	volumes := map[string]volume{}
	for _, v := range r.pod().Volumes {
		volumes[v.Name] = v
	}
	for _, mount := range r.container().VolumeMounts {
		v, exists := volumes[mount.Name]
		if !exists {
			t.Errorf("there is no volume %s for %s", mount.Name, mount.MountPath)
		}
		for name, content := range files(t, r, v) {
			// The paths in the configuration are those in the pod.
			content = strings.ReplaceAll(content, "/run/babelftp/", root+"/run/babelftp/")
			writeFile(t, filepath.Join(root, mount.MountPath, name), content)
		}
	}
	args := r.container().Args
	if len(args) != 3 || args[0] != "serve" || args[1] != "--config" || args[2] != configFile {
		t.Fatalf("the container runs babelftp %v", args)
	}
	var environ []string
	for _, e := range r.container().Env {
		environ = append(environ, e.Name+"="+e.Value)
	}
	cfg, err := config.Load(filepath.Join(root, configFile), environ)
	if err != nil {
		t.Fatalf("babelftp refuses the configuration of the chart:\n%v", err)
	}
	return cfg
}

// files is what a volume holds: the data of an object of the release, or of a Secret that a cluster would have.
func files(t *testing.T, r release, v volume) map[string]string {
	t.Helper()
	if v.ConfigMap.Name != "" {
		if v.ConfigMap.Name != r.config.Metadata.Name {
			t.Errorf("volume %s: there is no ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
		return maps.Clone(r.config.Data)
	}
	if made, ok := r.secrets[v.Secret.SecretName]; ok {
		decoded := map[string]string{}
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
	case "minio-ca":
		cert, _ := certtest.New(t, &x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
		return map[string]string{"ca.crt": cert}
	case "ftp-acme-example-tls", "acme-tenant-tls":
		cert, key := certtest.New(t, &x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
		return map[string]string{"tls.crt": cert, "tls.key": key}
	}
	t.Errorf("volume %s: who makes the Secret %s?", v.Name, v.Secret.SecretName)
	return nil
}

func writeFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestConfiguration checks values that come from different places of the chart.
func TestConfiguration(t *testing.T) {
	for _, tt := range []struct {
		values  string
		keyID   string // of S3
		address string // public
		tls     bool
		drain   time.Duration
	}{
		{values: "minimal", drain: 25 * time.Second},
		{values: "loadbalancer", keyID: "AKIAIOSFODNN7EXAMPLE", address: "203.0.113.7", tls: true, drain: 5 * time.Minute},
		{values: "nodeport", address: "198.51.100.20", drain: 25 * time.Second},
	} {
		t.Run(tt.values, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", tt.values+"-values.yaml"))
			cfg := loadConfig(t, r)
			if cfg.S3.AccessKeyID != tt.keyID {
				t.Errorf("access key %q, want %q", cfg.S3.AccessKeyID, tt.keyID)
			}
			if got := cfg.Passive.PublicAddress; got.IsValid() != (tt.address != "") || got.IsValid() && got.String() != tt.address {
				t.Errorf("public address %s, want %s", got, tt.address)
			}
			if got := cfg.TLS.CertFile != "" && cfg.TLS.ImplicitListen != "" && cfg.TLS.Required; got != tt.tls {
				t.Errorf("TLS %+v, want %t", cfg.TLS, tt.tls)
			}
			if cfg.DrainTimeout != tt.drain {
				t.Errorf("drain timeout %s, want %s", cfg.DrainTimeout, tt.drain)
			}
			wait := time.Duration(r.container().Lifecycle.PreStop.Sleep.Seconds) * time.Second
			if wait != 5*time.Second {
				t.Errorf("the pod waits %v before it stops", wait)
			}
			if grace := time.Duration(r.pod().TerminationGracePeriodSeconds) * time.Second; grace <= wait+cfg.DrainTimeout {
				t.Errorf("the pod is killed after %s, before the drain timeout of %s", grace, cfg.DrainTimeout)
			}
		})
	}
}
