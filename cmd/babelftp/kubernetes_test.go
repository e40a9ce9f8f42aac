package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// exportFolder has a configuration, and what kubernetes export prints for it. Module kubetest validates the manifests
// against the definitions of the chart.
const exportFolder = "testdata/kubernetes"

// export runs kubernetes export for the namespace team-a.
func export(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"kubernetes", "export", "--namespace", "team-a"}, args...)
	code = run(t.Context(), args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), code
}

// exportedConfiguration writes the configuration in [exportFolder] with certificates to a folder, and returns the file.
func exportedConfiguration(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS(exportFolder)))
	must.WriteCertificate(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"),
		&x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
	ca, _ := must.Certificate(t, &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	must.WriteFile(t, filepath.Join(dir, "ca.crt"), ca)
	return filepath.Join(dir, "babelftp.yaml")
}

var pem = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----`)

// TestKubernetesExport compares the manifests and the notes with golden files. To write them:
//
//	go test ./cmd/babelftp -run TestKubernetesExport -update
func TestKubernetesExport(t *testing.T) {
	stdout, stderr, code := export(t, "--config", exportedConfiguration(t))
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for name, got := range map[string]string{"manifests.yaml": stdout, "notes.txt": stderr} {
		got = pem.ReplaceAllString(got, "PEM")
		golden := filepath.Join(exportFolder, name)
		if *update {
			must.WriteFile(t, golden, got)
		}
		if want := must.ReadFile(t, golden); got != want {
			t.Errorf("%s is outdated: run go test ./cmd/babelftp -run TestKubernetesExport -update, and read the difference", golden)
		}
	}
}

// clusterObjects are manifests as an API server has them.
type clusterObjects struct {
	resources config.Resources
	secrets   map[string]map[string][]byte
	maps      map[string]map[string]string
}

func (o *clusterObjects) Secret(_, name string) (data map[string][]byte, version string, ok bool) {
	data, ok = o.secrets[name]
	return data, "1", ok
}

func (o *clusterObjects) ConfigMap(_, name string) (data map[string]string, version string, ok bool) {
	data, ok = o.maps[name]
	return data, "1", ok
}

// apply reads manifests.
func apply(t *testing.T, manifests string) *clusterObjects {
	t.Helper()
	o := &clusterObjects{secrets: map[string]map[string][]byte{}, maps: map[string]map[string]string{}}
	o.resources.References = o
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var m struct {
			Kind     string `yaml:"kind"`
			Metadata struct {
				Name      string `yaml:"name"`
				Namespace string `yaml:"namespace"`
			} `yaml:"metadata"`
			Spec       map[string]any    `yaml:"spec"`
			StringData map[string]string `yaml:"stringData"`
			Data       map[string]string `yaml:"data"`
		}
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			return o
		}
		must.OK(t, err)
		spec, err := json.Marshal(m.Spec)
		must.OK(t, err)
		resource := &config.Resource{
			Kind: config.ResourceKind(m.Kind), Namespace: m.Metadata.Namespace, Name: m.Metadata.Name,
			UID: m.Metadata.Name, Generation: 1, Spec: spec,
		}
		switch m.Kind {
		case "FTPTenant":
			o.resources.Tenants = append(o.resources.Tenants, resource)
		case "FTPUser":
			o.resources.Users = append(o.resources.Users, resource)
		case "ConfigMap":
			o.maps[m.Metadata.Name] = m.Data
		case "Secret":
			o.secrets[m.Metadata.Name] = map[string][]byte{}
			for key, text := range m.StringData {
				o.secrets[m.Metadata.Name][key] = []byte(text)
			}
		}
	}
}

// TestKubernetesExportIsEqual checks that the manifests give the tenants and users of the configuration, if the
// namespace may use what the notes say.
func TestKubernetesExportIsEqual(t *testing.T) {
	file := exportedConfiguration(t)
	before, err := config.Load(file, nil)
	must.OK(t, err)
	manifests, notes, _ := export(t, "--config", file)
	objects := apply(t, manifests)

	var values struct {
		CustomResources struct {
			Namespaces map[string]any `yaml:"namespaces"`
		} `yaml:"customResources"`
	}
	must.OK(t, yaml.Unmarshal([]byte(notes[strings.Index(notes, "customResources:"):]), &values))
	var text map[string]any
	must.OK(t, yaml.Unmarshal([]byte(must.ReadFile(t, file)), &text))
	delete(text, "tenants")
	text["kubernetes"] = map[string]any{"folder": t.TempDir(), "namespaces": values.CustomResources.Namespaces}
	rest, err := yaml.Marshal(text)
	must.OK(t, err)
	must.WriteFile(t, file, string(rest))
	server, err := config.Load(file, nil)
	must.OK(t, err)

	after, merge := server.MergeResources(&objects.resources, nil)
	if len(merge.Outcomes) != 6 {
		t.Errorf("got %d resources", len(merge.Outcomes))
	}
	for _, o := range merge.Outcomes {
		if o.Reason != config.ResourceAccepted {
			t.Errorf("%s %s: %s: %s", o.Resource.Kind, o.Resource.Name, o.Reason, o.Message)
		}
	}
	for name, now := range map[string]string{"acme": "team-a_acme", "Umbrella_Corp": "team-a_umbrella-corp"} {
		got, want := settings(t, after.Tenants[now]), settings(t, before.Tenants[name])
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if got[key] != want[key] && !strings.HasSuffix(key, ".must_change_password") && key != ".users_file" {
				t.Errorf("%s%s: got %q, want %q", name, key, got[key], want[key])
			}
			delete(got, key)
		}
		if len(got) > 0 {
			t.Errorf("%s has other settings too: %v", name, got)
		}
	}
}

// settings returns all settings of a tenant by path: secrets, and the contents of files instead of their names.
func settings(t *testing.T, tenant *config.Tenant) map[string]string {
	t.Helper()
	all := map[string]string{}
	var add func(path string, v reflect.Value)
	section := func(path string, v reflect.Value) {
		for _, f := range yamlconf.FieldsOf(v.Type()) {
			at, field := path+"."+f.Tag.Get("yaml"), v.FieldByIndex(f.Index)
			if f.Tag.Get("path") != "" && field.Kind() == reflect.String && !field.IsZero() && f.Name != "UsersFile" {
				all[at] = must.ReadFile(t, field.String())
				continue
			}
			add(at, field)
		}
	}
	add = func(path string, v reflect.Value) {
		secret, isSecret := v.Interface().(interface{ Reveal() string })
		switch {
		case v.IsZero():
		case isSecret:
			all[path] = secret.Reveal()
		case yamlconf.IsScalar(v.Type()):
			all[path] = fmt.Sprint(reflect.Indirect(v).Interface())
		case v.Kind() == reflect.Pointer:
			section(path, v.Elem())
		case v.Kind() == reflect.Struct:
			section(path, v)
		case v.Kind() == reflect.Map:
			for key, value := range v.Seq2() {
				add(path+"."+fmt.Sprint(key), value)
			}
		default:
			for i, value := range v.Seq2() {
				add(fmt.Sprintf("%s.%d", path, i.Int()), value)
			}
		}
	}
	section("", reflect.ValueOf(tenant).Elem())
	return all
}

// TestKubernetesExportOfValues checks a file of values for the chart, whose Secrets exist only in the cluster.
func TestKubernetesExportOfValues(t *testing.T) {
	file := "../../deploy/babelftp/ci/loadbalancer-values.yaml"
	stdout, stderr, code := export(t, "--config", file)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	objects := apply(t, stdout)
	if got := string(objects.secrets["alice"]["password_hash"]); !strings.HasPrefix(got, "$argon2id$") {
		t.Errorf("the Secret of alice has the hash %q", got)
	}
	const reference = `"cert_secret":{"name":"acme-tenant-tls"}`
	spec := string(objects.resources.Tenants[0].Spec)
	if !strings.Contains(spec, reference) || strings.Contains(spec, "/run/babelftp") {
		t.Errorf("got %s, want %s", spec, reference)
	}
	for _, want := range []string{"copy the Secret acme-tenant-tls to the namespace team-a", "- xn--mnchen-3ya.example"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("the notes lack %q:\n%s", want, stderr)
		}
	}
}

// TestKubernetesExportOfOneTenant checks --tenant, and that the output does not depend on the order of maps.
func TestKubernetesExportOfOneTenant(t *testing.T) {
	file := exportedConfiguration(t)
	first, _, _ := export(t, "--config", file, "--tenant", "Umbrella_Corp")
	for range 5 {
		if again, _, _ := export(t, "--config", file, "--tenant", "Umbrella_Corp"); again != first {
			t.Fatal("the second output differs from the first one")
		}
	}
	if objects := apply(t, first); len(objects.resources.Tenants) != 1 || len(objects.resources.Users) != 1 {
		t.Errorf("got %s", first)
	}
}

// TestKubernetesExportNotes checks what the notes say about settings that cannot be converted.
func TestKubernetesExportNotes(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"users-store", "state: {bucket: state, keys: " + strings.Repeat("A", 43) + "=}\n" +
			"tenants: {acme: {bucket: acme-data, users_store: state}}", "tenants.acme.users_store: users in the shared state"},
		{"old-server", "tenants: {acme: {bucket: acme-data, users_file: users.yaml, auth: {ftp: {address: \"old.example.com:21\"}}}}",
			"tenants.acme.auth.ftp is not converted"},
		{"rehash", "tenants: {acme: {bucket: acme-data, users_file: users.yaml, rehash_passwords: false}}",
			"tenants.acme.rehash_passwords is not converted"},
		{"must-change", "tenants: {acme: {bucket: acme-data, users_file: users.yaml}}",
			"tenants.acme.users.bob.must_change_password is not converted"},
		{"password", "tenants: {acme: {bucket: acme-data, users_file: users.yaml}}",
			"tenants.acme.users.bob.permissions: password has no effect"},
		{"endpoint", "tenants: {acme: {bucket: acme-data, users_file: users.yaml, s3: {endpoint: \"https://s3.example.com\"}}}",
			"tenants.acme.s3.endpoint: add access_key_id"},
		{"role", "s3: {assume_role: {role_arn: \"arn:aws:iam::123456789012:role/{tenant}\"}}\n" +
			"tenants: {acme: {bucket: acme-data, users_file: users.yaml}}", "becomes team-a_acme too"},
		{"auth", "auth: {hook: {url: \"https://auth.example.com\"}}\ntenants: {acme: {bucket: acme-data}}",
			"let it return the global names, team-a_NAME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := exportedConfiguration(t)
			must.WriteFile(t, file, tt.text)
			if _, stderr, code := export(t, "--config", file); code != exitOK || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, got %s\nwant %s", code, stderr, tt.want)
			}
		})
	}
}

func TestKubernetesExportFails(t *testing.T) {
	long := strings.Repeat("a", 57)
	tenant := func(name string) string {
		return fmt.Sprintf("tenants: {%s: {bucket: acme-data, users: {alice: {disabled: true}}}}", name)
	}
	for _, tt := range []struct {
		name, text string
		args       []string
		want       string
		code       int
	}{
		{"invalid", "tenants: {acme: {}}", nil, "tenants.acme.bucket: is missing", exitFailure},
		{"tenant", tenant("acme"), []string{"--tenant", "acmee"}, `unknown tenant "acmee": want one of acme`, exitFailure},
		{"long-name", tenant(long), nil, "would be longer than 63 characters: choose a shorter --namespace", exitFailure},
		{"namespace", tenant("acme"), []string{"--namespace", "Team_A"}, `--namespace "Team_A" is not the name of a namespace`, exitUsage},
		{"values-without-configuration", "existingSecret: ftp", nil, "existingSecret has the configuration", exitFailure},
		{"values-without-tenants", "config: {log: {format: json}}", nil, "config.tenants is empty", exitFailure},
		{"invalid-values", "config: {tenants: {acme: {bukket: x}}}", nil,
			"config.tenants.acme.bukket: unknown key: did you mean bucket?", exitFailure},
		{"argument", tenant("acme"), []string{"acme"}, "unexpected argument", exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "babelftp.yaml")
			must.WriteFile(t, file, tt.text)
			stdout, stderr, code := export(t, append([]string{"--config", file}, tt.args...)...)
			if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit code %d, got %s\nwant %s", code, stderr, tt.want)
			}
		})
	}
	t.Run("no-file", func(t *testing.T) {
		_, stderr, code := export(t, "--config", filepath.Join(t.TempDir(), "missing.yaml"))
		if code != exitFailure || !strings.Contains(stderr, "cannot read the configuration") {
			t.Errorf("exit code %d, got %s", code, stderr)
		}
	})
}
