package config

import (
	"crypto/x509"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A specCase is a spec and what the API server and the server say about it. Module kubetest and TestKube of package
// deploy check what the API server says.
type specCase struct {
	Name   string         `yaml:"name"`
	Kind   ResourceKind   `yaml:"kind"`
	Spec   map[string]any `yaml:"spec"`
	Schema string         `yaml:"schema"` // part of the message of the API server; empty if it accepts the spec
	Check  string         `yaml:"check"`  // part of the message of the server; empty if it accepts the spec
	// Only says why one of them refuses a spec that the other accepts.
	Only string `yaml:"only"`
}

func specCases(t *testing.T) []specCase {
	t.Helper()
	var cases []specCase
	must.OK(t, yaml.Load([]byte(must.ReadFile(t, "testdata/resources/specs.yaml")), &cases, yaml.WithKnownFields()))
	return cases
}

// anyReferences has every Secret, with all keys that specs refer to by default, and every ConfigMap.
type anyReferences map[string][]byte

func (r anyReferences) Secret(_, _ string) (data map[string][]byte, version string, ok bool) {
	return r, "1", true
}

func (r anyReferences) ConfigMap(_, name string) (data map[string]string, version string, ok bool) {
	if name == "messages" {
		return map[string]string{"goodbye.fr": "Salut"}, "1", true
	}
	return map[string]string{"fr": "Bonjour"}, "1", true
}

// newReferences returns valid values for all keys.
func newReferences(t *testing.T) anyReferences {
	t.Helper()
	ca := must.NewAuthority(t, "clients")
	cert, key := ca.Issue(&x509.Certificate{DNSNames: []string{"tls.example"}})
	return anyReferences{
		"password_hash": []byte(oneHash), "secret": []byte("0123456789abcdef"), "bind_password": []byte("hidden"),
		"access_key_id": []byte("AKIAEXAMPLE"), "id": []byte("AKIAEXAMPLE"), "secret_access_key": []byte("hidden"),
		"customer_key": []byte("MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="),
		"tls.crt":      []byte(cert), "tls.key": []byte(key), "ca.crt": []byte(ca.Certificate),
		"ca.crl": []byte(ca.Revoke(&x509.RevocationList{})),
	}
}

// oneHash is a password hash.
const oneHash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"

// newSpecServer returns the configuration of a server that allows the namespace team-a everything that valid specs use.
func newSpecServer(t *testing.T, references anyReferences) *Config {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"tls.crt", "tls.key"} {
		must.WriteFile(t, filepath.Join(dir, name), string(references[name]))
	}
	file := filepath.Join(dir, "babelftp.yaml")
	must.WriteFile(t, file, `
tls: {cert_file: tls.crt, key_file: tls.key}
kubernetes:
  folder: folder
  namespaces:
    team-a:
      buckets: ["*"]
      arns: ["*"]
      addresses: ["https://*.example.com", "ldaps://*.example", "icap://*.example", "tcp://*.example:3310"]
`)
	cfg, err := Load(file, nil)
	must.OK(t, err)
	return cfg
}

// tenantOfSpecs is the FTPTenant acme, to which the FTPUsers belong.
const tenantOfSpecs = `{"bucket": "acme-data", "tls": {"client_certificates": {"ca_secret": {"name": "ca"}}}}`

// TestSpecs checks that the server accepts and refuses the same specs as the schemas of the custom resources.
func TestSpecs(t *testing.T) {
	references := newReferences(t)
	cfg := newSpecServer(t, references)
	for _, tt := range specCases(t) {
		t.Run(string(tt.Kind)+"/"+tt.Name, func(t *testing.T) {
			spec, err := json.Marshal(tt.Spec)
			must.OK(t, err)
			tried := &Resource{Kind: tt.Kind, Namespace: "team-a", Name: "tried", UID: "1", Generation: 1, Spec: spec}
			all := &Resources{References: references, Tenants: []*Resource{tried}}
			if tt.Kind == UserResource {
				all.Users, all.Tenants = all.Tenants, []*Resource{{
					Kind: TenantResource, Namespace: "team-a", Name: "acme", UID: "2", Generation: 1, Spec: []byte(tenantOfSpecs),
				}}
			}
			_, merge := cfg.MergeResources(all, nil)
			i := slices.IndexFunc(merge.Outcomes, func(o *ResourceOutcome) bool { return o.Resource == tried })
			o := merge.Outcomes[i]
			if (o.Reason == ResourceAccepted) != (tt.Check == "") || !strings.Contains(o.Message, tt.Check) {
				t.Errorf("got %s: %q, want %q", o.Reason, o.Message, tt.Check)
			}
			if (tt.Schema == "") != (tt.Check == "") && tt.Only == "" {
				t.Error("only one of the schema and the server refuses the spec: say why")
			}
		})
	}
}

// noReferences has no Secrets and no ConfigMaps.
type noReferences struct{}

func (noReferences) Secret(_, _ string) (data map[string][]byte, version string, ok bool) {
	return nil, "", false
}

func (noReferences) ConfigMap(_, _ string) (data map[string]string, version string, ok bool) {
	return nil, "", false
}

// TestMissingCredentials checks that a tenant whose credentials are in a Secret that does not exist yet is not accused
// of using the credentials of the server.
func TestMissingCredentials(t *testing.T) {
	cfg := newSpecServer(t, newReferences(t))
	cfg.Kubernetes.Namespaces["team-a"].Buckets = nil
	_, merge := cfg.MergeResources(&Resources{References: noReferences{}, Tenants: []*Resource{{
		Kind: TenantResource, Namespace: "team-a", Name: "acme", UID: "1", Generation: 1,
		Spec: []byte(`{"bucket": "acme-data", "s3": {"access_key_id_secret": {"name": "s3"}, "secret_access_key_secret": {"name": "s3"}}}`),
	}}}, nil)
	if o := merge.Outcomes[0]; o.Reason != ResourceSecretNotFound || strings.Contains(o.Message, "spec.bucket") {
		t.Errorf("got %s: %s", o.Reason, o.Message)
	}
}

// TestSpecsHaveAllKeys checks that the accepted specs have each key of the schemas.
func TestSpecsHaveAllKeys(t *testing.T) {
	s := newSpecSchema(t)
	for _, kind := range []ResourceKind{TenantResource, UserResource} {
		used := map[string]bool{}
		for _, tt := range specCases(t) {
			if tt.Kind == kind && tt.Schema == "" && tt.Check == "" {
				addKeys(used, "", tt.Spec)
			}
		}
		checkKeys(t, used, string(kind), "", s.spec(kind))
	}
}

// addKeys adds the paths of all values. Paths have * for items.
func addKeys(used map[string]bool, path string, v any) {
	used[path] = true
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			addKeys(used, path+"."+key, value)
			addKeys(used, path+".*", value)
		}
	case []any:
		for _, item := range v {
			addKeys(used, path+".*", item)
		}
	}
}

// checkKeys reports the keys of a schema that are not used.
func checkKeys(t *testing.T, used map[string]bool, kind, path string, schema object) {
	t.Helper()
	if !used[path] {
		t.Errorf("no accepted spec of an %s has %s", kind, path)
		return
	}
	properties, _ := schema["properties"].(object)
	for key, property := range properties {
		if key == "key" && path != ".objects.rules.*.set" { // of a reference
			continue
		}
		checkKeys(t, used, kind, path+"."+key, property.(object))
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if nested, ok := schema[keyword].(object); ok {
			checkKeys(t, used, kind, path+".*", nested)
		}
	}
}
