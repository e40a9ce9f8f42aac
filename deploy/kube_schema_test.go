//go:build kube

package deploy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// resourcesPage is the guide about custom resources.
const resourcesPage = "../docs/guides/kubernetes-resources.md"

// definitions are the files with the definitions of custom resources.
const definitions = chart + "/charts/crds/crds/*.yaml"

// A refusedResource is a resource that the API server refuses.
type refusedResource struct {
	name string
	spec string // of an FTPTenant, or of an FTPUser
	want string // part of the message
}

// refusedTenants returns specs of FTPTenants. Each rule in the schema needs one.
func refusedTenants() []refusedResource {
	return []refusedResource{
		{"secret-path", "bucket: data, ca_secret: {name: ../x}", "ca_secret.name"},
		{"no-bucket", "prefix: x/", "bucket: Required value"},
		{"bucket-address", "bucket: 10.0.0.1", "it must not be an IP address"},
		{"bucket-dots", "bucket: a..b", "remove one of two dots in a row"},
		{"bucket-slash", "bucket: a/b", "spec.bucket"},
		{"prefix-absolute", "bucket: data, prefix: /x", "remove the slash at the beginning"},
		{"prefix-slashes", "bucket: data, prefix: a//b", "remove one of two slashes in a row"},
		{"prefix-parent", "bucket: data, prefix: a/../b", "it must not contain . or .. as a segment"},
		{"prefix-reserved", "bucket: data, prefix: .babelftp/state", ".babelftp is reserved for objects of babelftp"},
		{"permissions-empty", "bucket: data, permissions: []", "permissions is empty"},
		{"permissions-unknown", "bucket: data, permissions: [root]", "Unsupported value: \"root\""},
		{"permissions-path", "bucket: data, path_permissions: {in: [list]}", "must have absolute directories as keys, like /in; for /, use permissions"},
		{"tls-without-hosts", "bucket: data, tls: {cert_secret: {name: x}, key_secret: {name: x}}", "tls requires hosts"},
		{"tls-without-key", "bucket: data, hosts: [a.example], tls: {cert_secret: {name: x}}", "cert_secret and key_secret must be set together"},
		{"crl-without-ca", "bucket: data, tls: {client_certificates: {crl_secret: {name: x}}}", "crl_secret requires ca_secret"},
		{"versions-folder", "bucket: data, versions_directory: .v, folders: {/.v: {bucket: other}}", "versions_directory conflicts with a folder"},
		{"versions-name", "bucket: data, versions_directory: ..", "is not a directory name"},
		{"presign-role", "bucket: data, presign: 24h, s3: {assume_role: {role_arn: \"arn:aws:iam::123456789012:role/x\"}}", "longer than the credentials of s3.assume_role"},
		{"presign-encrypted", "bucket: data, presign: 1h, objects: {encryption: customer, customer_key_secret: {name: x}}", "objects.encryption conflicts with presign"},
		{"presign-long", "bucket: data, presign: 169h", "is not between 1s and 168h"},
		{"encryption-http", "bucket: data, s3: {endpoint: \"http://s3.example.com\"}, objects: {encryption: customer, customer_key_secret: {name: x}}", "objects.encryption requires https"},
		{"quarantine-visible", "bucket: data, inspect: {clamd: \"127.0.0.1:3310\", quarantine: bad/}", "inspect.quarantine is visible to users"},
		{"hook-and-ldap", "bucket: data, auth: {hook: {url: \"https://x.example\"}, ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x}}", "ldap is not allowed together with hook"},
		{"hook-user", "bucket: data, auth: {hook: {url: \"https://x.example\"}, user: {home: /x}}", "user applies to ldap only"},
		{"groups-attribute", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x}, groups: {a: [list]}}", "groups requires the attribute with the groups of a user"},
		{"groups-missing", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x, attributes: {groups: memberOf}}}", "ldap.attributes.groups requires groups"},
		{"groups-permissions", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x, attributes: {groups: memberOf}}, groups: {a: [list]}, user: {permissions: [list]}}", "groups conflicts with permissions"},
		{"cache", "bucket: data, auth: {hook: {url: \"https://x.example\"}, cache: 11m}", "is not between 0s and 10m0s"},
		{"hook-without-url", "bucket: data, auth: {hook: {secret_secret: {name: x}}}", "url is missing: write the URL of the service"},
		{"ldap-without-urls", "bucket: data, auth: {ldap: {base_dn: dc=x}}", "urls is missing"},
		{"ldap-without-dn", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"]}}", "base_dn is missing"},
		{"ldap-two-dns", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x, user_dn: \"uid={user},dc=x\"}}", "user_dn conflicts with base_dn"},
		{"ldap-bind", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x, bind_dn: cn=x}}", "bind_dn and bind_password_secret must be set together"},
		{"ldap-filter", "bucket: data, auth: {ldap: {urls: [\"ldaps://x.example\"], base_dn: dc=x, filter: \"(uid={user})\"}}", "must not contain {user}"},
		{"raw-normalization", "bucket: data, compatibility: {charset: raw, normalization: nfc}", "normalization conflicts with charset: raw"},
		{"raw-backslash", "bucket: data, compatibility: {charset: raw, backslash: separator}", "backslash conflicts with charset: raw"},
		{"network", "bucket: data, compatibility_by_network: {office: {charset: raw}}", "must have networks as keys"},
		{"encodings", "bucket: data, directory_encodings: {in: raw}", "for /, use compatibility.charset"},
		{"folders-relative", "bucket: data, folders: {in: {bucket: x}}", "for /, use bucket and prefix of the tenant"},
		{"folders-empty", "bucket: data, folders: {/in: {permissions: [list]}}", "set bucket, or prefix for a part of the tenant's bucket"},
		{"folders-s3", "bucket: data, folders: {/in: {prefix: x/, s3: {region: eu-west-1}}}", "bucket is missing: name the bucket at the S3 server of the folder"},
		{"key-twice", "bucket: data, s3: {access_key_id: A, access_key_id_secret: {name: x}, secret_access_key_secret: {name: x}}", "access_key_id and access_key_id_secret are both given"},
		{"key-alone", "bucket: data, s3: {access_key_id: A}", "the access key ID and secret_access_key_secret must be set together"},
		{"session-tags", "bucket: data, s3: {assume_role: {role_arn: \"arn:aws:iam::123456789012:role/x\", session_tags: {\"aws:x\": y}}}", "must have keys of up to 128 letters"},
		{"greeting-language", "bucket: data, greeting: {french_: x}", "must have language tags as keys"},
		{"greeting-empty", "bucket: data, greeting: {fr: \" \"}", "is empty: write a text or remove the language"},
		{"greeting-variable", "bucket: data, greeting: {fr: \"{Password}\"}", "unknown variable"},
		{"inspectors", "bucket: data, inspect: {clamd: \"x:1\", icap: \"icap://x/y\"}", "has several inspectors"},
		{"no-inspector", "bucket: data, inspect: {timeout: 1m}", "has no inspector"},
		{"inspect-hook", "bucket: data, inspect: {hook: {url: \"https://x.example\"}}", "url and secret_secret must be set together"},
		{"webhook-secret", "bucket: data, webhook: {url: \"https://x.example\"}", "url and secret_secret must be set together"},
		{"webhook-skip", "bucket: data, webhook: {skip: [\"*.part\"]}", "url is missing: write the address of the receiver"},
		{"kms", "bucket: data, objects: {kms_key_id: x}", "kms_key_id works with encryption: kms only"},
		{"customer-key", "bucket: data, objects: {encryption: customer}", "encryption: customer and customer_key_secret must be set together"},
		{"customer-rules", "bucket: data, objects: {encryption: customer, customer_key_secret: {name: x}, rules: [{path: \"/**\", set: {kms_key: x}}]}", "kms_key in rules conflicts with encryption: customer"},
		{"content-types", "bucket: data, objects: {content_types: {dwg: image/x}}", "must have file name extensions in lower case as keys"},
		{"rule-empty", "bucket: data, objects: {rules: [{path: \"/**\"}]}", "set has no attributes"},
		{"rule-key-slash", "bucket: data, objects: {rules: [{path: \"/**\", set: {key: a/}}]}", "ends with a slash: add the name of the file"},
		{"rule-key-parent", "bucket: data, objects: {rules: [{path: \"/**\", set: {key: ../a}}]}", "must not contain .. or .babelftp"},
		{"rule-key-absolute", "bucket: data, objects: {rules: [{path: \"/**\", set: {key: /a}}]}", "remove the slash at the beginning, or one of two in a row"},
		{"rule-key-long", "bucket: data, objects: {rules: [{path: \"/**\", set: {key: " + strings.Repeat("a", 129) + "}}]}", "has a segment that is too long"},
		{"rule-metadata", "bucket: data, objects: {rules: [{path: \"/**\", set: {metadata: {mtime: x}}}]}", "babelftp-* and mtime are reserved"},
		{"rule-retain-mode", "bucket: data, objects: {rules: [{path: \"/**\", set: {retain: {days: 1}}}]}", "mode is missing: write governance or compliance"},
		{"rule-retain-days", "bucket: data, objects: {rules: [{path: \"/**\", set: {retain: {mode: governance}}}]}", "days must be 1 to 36500"},
		{"restore", "bucket: data, restore: {tier: expedited}", "days is missing: write for how many days"},
		{strings.Repeat("a", 62), "bucket: data", "metadata.name is too long"},
	}
}

// refusedUsers returns specs of FTPUsers.
func refusedUsers() []refusedResource {
	return []refusedResource{
		{"no-tenant", "disabled: true", "tenant: Required value"},
		{"no-password", "tenant: x", "password_hash_secret is missing"},
		{"another-namespace", "tenant: team-b/x, disabled: true", "spec.tenant"},
		{"root-reserved", "tenant: x, disabled: true, root: /.babelftp", ".babelftp is reserved"},
		{"root-relative", "tenant: x, disabled: true, root: in", "spec.root"},
		{"files", "tenant: x, disabled: true, files: {}", "files is empty and restricts nothing"},
		{"permissions-empty", "tenant: x, disabled: true, permissions: []", "permissions is empty"},
	}
}

// unknownKeys returns specs with a key that resources do not have, and the path of the key. Most of them name files of
// the server, or another namespace.
func unknownKeys() []refusedResource {
	return []refusedResource{
		{"users", "bucket: data, users: {alice: {}}", "users"},
		{"users-file", "bucket: data, users_file: /etc/passwd", "users_file"},
		{"users-store", "bucket: data, users_store: state", "users_store"},
		{"rehash", "bucket: data, rehash_passwords: false", "rehash_passwords"},
		{"old-server", "bucket: data, auth: {ftp: {address: \"10.0.0.1:21\"}}", "auth.ftp"},
		{"cert-file", "bucket: data, tls: {cert_file: /run/secrets/x}", "tls.cert_file"},
		{"key-file", "bucket: data, tls: {key_file: /run/secrets/x}", "tls.key_file"},
		{"client-ca-file", "bucket: data, tls: {client_certificates: {ca_file: /run/x}}", "tls.client_certificates.ca_file"},
		{"crl-file", "bucket: data, tls: {client_certificates: {crl_file: /run/x}}", "tls.client_certificates.crl_file"},
		{"ca-file", "bucket: data, ca_file: /run/secrets/x", "ca_file"},
		{"greeting-file", "bucket: data, greeting_file: /etc/passwd", "greeting_file"},
		{"s3-key", "bucket: data, s3: {secret_access_key: B}", "s3.secret_access_key"},
		{"s3-key-file", "bucket: data, s3: {secret_access_key_file: /run/x}", "s3.secret_access_key_file"},
		{"s3-key-id-file", "bucket: data, s3: {access_key_id_file: /run/x}", "s3.access_key_id_file"},
		{"token-file", "bucket: data, s3: {assume_role: {token_file: /run/x}}", "s3.assume_role.token_file"},
		{"folder-key", "bucket: data, folders: {/a: {bucket: b, s3: {secret_access_key_file: /run/x}}}", "folders./a.s3.secret_access_key_file"},
		{"customer-key", "bucket: data, objects: {customer_key: x}", "objects.customer_key"},
		{"webhook-secret", "bucket: data, webhook: {secret_file: /run/x}", "webhook.secret_file"},
		{"hook-secret", "bucket: data, auth: {hook: {url: \"https://x.example\", secret_file: /run/x}}", "auth.hook.secret_file"},
		{"bind-password", "bucket: data, auth: {ldap: {bind_password_file: /run/x}}", "auth.ldap.bind_password_file"},
		{"namespace-of-a-secret", "bucket: data, ca_secret: {name: x, namespace: team-b}", "ca_secret.namespace"},
		{"namespace-of-a-map", "bucket: data, greeting_config_map: {name: x, namespace: team-b}", "greeting_config_map.namespace"},
	}
}

// unknownKeysOfUsers is like unknownKeys for FTPUsers.
func unknownKeysOfUsers() []refusedResource {
	return []refusedResource{
		{"hash", "tenant: x, disabled: true, password_hash: y", "password_hash"},
		{"hash-file", "tenant: x, disabled: true, password_hash_file: /etc/shadow", "password_hash_file"},
		{"must-change", "tenant: x, disabled: true, must_change_password: true", "must_change_password"},
		{"namespace", "tenant: x, disabled: true, namespace: team-b", "namespace"},
		{"namespace-of-a-secret", "tenant: x, password_hash_secret: {name: x, namespace: y}", "password_hash_secret.namespace"},
	}
}

// TestKubeDefinitions checks which resources the API server refuses, and that it accepts all resources in the guide.
func TestKubeDefinitions(t *testing.T) {
	k := kubeserver.Start(t)
	rules := applyDefinitions(t, k)
	k.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n")
	var messages strings.Builder
	for kind, refused := range map[string][]refusedResource{"FTPTenant": refusedTenants(), "FTPUser": refusedUsers()} {
		for _, tt := range refused {
			t.Run(kind+"-"+tt.name, func(t *testing.T) {
				_, err := k.For(t).Create(resource(kind, "team-a", tt.name, tt.spec), "Strict")
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				fmt.Fprintln(&messages, err)
			})
		}
	}
	for _, rule := range rules {
		if !strings.Contains(messages.String(), rule) {
			t.Errorf("no refused resource fails the rule: %s", rule)
		}
	}
	for kind, unknown := range map[string][]refusedResource{"FTPTenant": unknownKeys(), "FTPUser": unknownKeysOfUsers()} {
		for _, tt := range unknown {
			t.Run(kind+"-unknown-"+tt.name, func(t *testing.T) { testUnknownKey(t, k.For(t), kind, tt) })
		}
	}
	t.Run("status-of-a-new-resource", func(t *testing.T) { // which nothing has seen yet
		o, err := k.For(t).Create(resource("FTPTenant", "team-a", "new", "bucket: data"), "Strict")
		if got := field(o, "status", "observedGeneration"); err != nil || got != -1.0 {
			t.Errorf("observedGeneration: %v, %v, want -1", got, err)
		}
	})
	t.Run("guide", func(t *testing.T) {
		accepted := 0
		for _, m := range yamlBlock.FindAllStringSubmatch(must.ReadFile(t, resourcesPage), -1) {
			if strings.HasPrefix(m[1], "apiVersion: babelftp.io/") {
				k.For(t).Apply(m[1])
				accepted++
			}
		}
		if accepted == 0 {
			t.Error("the guide shows no resources")
		}
	})
}

// testUnknownKey checks that kubectl's validation refuses a key, and that the API server removes it without this
// validation.
func testUnknownKey(t *testing.T, k *kubeserver.Client, kind string, unknown refusedResource) {
	text := resource(kind, "team-a", "unknown-"+unknown.name, unknown.spec)
	want := fmt.Sprintf("unknown field %q", "spec."+unknown.want)
	if _, err := k.Create(text, "Strict"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	stored, err := k.Create(text, "Ignore")
	if err != nil {
		return // for another reason, such as a key that is missing now
	}
	keys := append([]string{"spec"}, strings.Split(unknown.want, ".")...)
	if got := field(stored, keys...); got != nil {
		t.Errorf("the API server keeps %s: %v", unknown.want, got)
	}
}

// applyDefinitions creates the definitions of the chart, and returns the messages of their rules.
func applyDefinitions(t *testing.T, k *kubeserver.Server) (rules []string) {
	t.Helper()
	files, err := filepath.Glob(definitions)
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions: %v", err)
	}
	for _, file := range files {
		text := must.ReadFile(t, file)
		k.Apply(text)
		var definition map[string]any
		must.OK(t, yaml.Unmarshal([]byte(text), &definition))
		rules = appendRules(rules, definition)
	}
	k.WaitFor("/apis/babelftp.io/v1alpha1/ftptenants")
	k.WaitFor("/apis/babelftp.io/v1alpha1/ftpusers")
	slices.Sort(rules)
	return slices.Compact(rules)
}

// appendRules appends the messages of all rules in a schema.
func appendRules(rules []string, schema any) []string {
	switch schema := schema.(type) {
	case map[string]any:
		for key, value := range schema {
			if key == "x-kubernetes-validations" {
				for _, rule := range list(value) {
					rules = append(rules, fmt.Sprint(rule["message"]))
				}
				continue
			}
			rules = appendRules(rules, value)
		}
	case []any:
		for _, value := range schema {
			rules = appendRules(rules, value)
		}
	}
	return rules
}

// field returns a nested value of a decoded object, or nil.
func field(o map[string]any, keys ...string) any {
	var at any = o
	for _, key := range keys {
		fields, _ := at.(map[string]any)
		at = fields[key]
	}
	return at
}

// list returns the mappings in a decoded list.
func list(v any) (all []map[string]any) {
	items, _ := v.([]any)
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}

// resource returns an FTPTenant or FTPUser. spec is in YAML's flow style, without braces.
func resource(kind, namespace, name, spec string) string {
	return fmt.Sprintf(
		"apiVersion: babelftp.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", kind, name,
		namespace, spec)
}
