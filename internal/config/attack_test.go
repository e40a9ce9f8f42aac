package config

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// evil is in every value of an attack. A part of it is valid in most places.
const evil = "evil"

// canary is the content of files and Secrets that must not be revealed.
const canary = "canary0123456789"

// harmless returns the keys of tenants and users that may have any text, with what the text is used for. A new key that
// accepts an address, a bucket, a host, an ARN or a file of somebody else must be checked, or be added here.
func harmless() map[string]string {
	const shown, stored, names, own = "shown to the users of the tenant", "stored with the objects of the tenant",
		"names in the tenant", "sent to the service of the namespace"
	return map[string]string{
		"greeting": shown, "welcome": shown, "messages": shown,
		"objects.cache_control": stored, "objects.content_types": stored, "objects.tags": stored, "objects.storage_class": stored,
		"objects.rules": stored, // except for kmsKey
		"prefix":        "below the buckets of the namespace", "folders": names, "versions_directory": names, "directory_encodings": names,
		"path_permissions": names, "files.deny": names, "webhook.skip": names, "home": names, "root": names,
		"auth.user": names, "auth.groups": names, "auth.ldap.user_dn": own, "auth.ldap.base_dn": own, "auth.ldap.bind_dn": own,
		"auth.ldap.filter": own, "auth.ldap.attributes": own, "s3.access_key_id": own, "s3.assume_role": own,
		"auth.hook.url": "the path of an allowed address", "webhook.url": "the path of an allowed address",
		"inspect.hook.url": "the path of an allowed address", "inspect.icap": "the path of an allowed address",
		"s3.endpoint": "the path of an allowed address", "s3.public_endpoint": "the path of an allowed address",
		"inspect.quarantine": "below the buckets of the namespace", "objects.kms_key_id": own,
		"certificates": "names in certificates that an authority issued", "s3.region": "a label of the host name of AWS",
		"bucket": "a bucket of the namespace", "users": names, "hosts": "a host of the namespace",
	}
}

// attackTests is the configuration of the attacks.
const attackTests = `
s3: {endpoint: "https://s3.server.example", access_key_id: SERVER, secret_access_key: ` + canary + `-server}
tls: {cert_file: tls.crt, key_file: tls.key, client_certificates: {ca_file: tls.crt}}
tenants: {file: {hosts: [file.example], bucket: evil-file, prefix: in/, users: {evil: {disabled: true}}}}
tenant_defaults:
  greeting: {en: Hello}
kubernetes:
  folder: run
  namespaces:
    team-a:
      buckets: [team-a-*, shared/team-a/*]
      addresses: ["https://ok.example", "http://s3.example:9000", "ldaps://ldap.example", "tcp://clamd:3310", "icap://icap.example"]
      hosts: ["*.team-a.example"]
      arns: ["arn:aws:iam::1:role/team-a", "arn:aws:kms:eu:1:key/team-a"]
    team-b: {buckets: [evil-*]}
`

// basesOfAttacks returns valid specs in which a key is attacked, by kind.
func basesOfAttacks() map[ResourceKind][]string {
	return map[ResourceKind][]string{
		TenantResource: {
			"{bucket: team-a-1}",
			`{bucket: team-a-1, prefix: in/, hosts: [a.team-a.example], s3: {region: eu, assume_role: {role_arn: "arn:aws:iam::1:role/team-a"}},
			  objects: {encryption: kms, kms_key_id: "arn:aws:kms:eu:1:key/team-a", rules: [{path: /x, user: y, set: {storage_class: GLACIER}}]},
			  inspect: {clamd: "tcp://clamd:3310", quarantine: q/}, folders: {/f: {bucket: team-a-2, prefix: f/}},
			  auth: {ldap: {urls: ["ldaps://ldap.example"], base_dn: "dc=x", bind_dn: "cn=x", bind_password_secret: {name: own}}}}`,
			`{bucket: any-1, s3: {endpoint: "http://s3.example:9000", access_key_id: OWN, secret_access_key_secret: {name: own}},
			  webhook: {url: "https://ok.example/x", secret_secret: {name: own}}, inspect: {hook: {url: "https://ok.example/y", secret_secret: {name: own}}},
			  auth: {hook: {url: "https://ok.example/z", secret_secret: {name: own}}}, folders: {/f: {bucket: any-2}}}`,
			`{bucket: shared, prefix: team-a/, inspect: {icap: "icap://icap.example/scan"}, folders: {/f: {prefix: team-a/f}}}`,
		},
		UserResource: {
			"{tenant: acme, password_hash_secret: {name: own}}",
			"{tenant: acme, disabled: true, certificates: ['sha256:" + strings.Repeat("ab", 32) + "'], home: /x, root: /y}",
		},
	}
}

// payloads returns the values of attacks on a key that has a text. file is a file of the server.
func payloads(file string) []any {
	return []any{
		file, "file://" + file, "/etc/" + evil, "../../" + evil, "@" + file, "$(" + evil + ")", "${" + evil + "}", "unix:/run/" + evil,
		"https://" + evil + ".example", "http://169.254.169.254/" + evil, "https://ok.example@" + evil + ".example/",
		"https://ok.example." + evil + "/", "http://s3.example:9001/" + evil, "ldaps://" + evil + ":636", "ldapi:///" + evil, "tcp://" + evil + ":3310",
		"icap://" + evil + "/x", evil + ".example:21", evil, evil + "-file", evil + "-data", "team-b-" + evil, "x/" + evil, "/" + evil, evil + "/", "shared/" + evil,
		evil + ".example", "file.example", "arn:aws:iam::1:role/" + evil, "arn:aws:kms:eu:1:key/" + evil, "alias/" + evil, "{tenant}" + evil,
		evil + "@file", evil + "@team-b_beta", "\x00" + evil, evil + "\r\n230 " + evil, evil + "\u2028\u0085", strings.Repeat(evil, 5_000),
		[]any{evil}, map[string]any{evil: evil},
		map[string]any{"name": "theirs"}, map[string]any{"name": "team-b/theirs"},
		map[string]any{"name": "../team-b/theirs"}, map[string]any{"name": "own", "namespace": "team-b"},
		map[string]any{"name": "own", "key": "../" + evil}, map[string]any{"name": "own", "key": "/" + evil},
		nil, true, json.Number("-1"), json.Number("1e999"),
	}
}

// A keyPath is the path of a key in a spec. An empty element stands for the entries of a map or a list.
type keyPath struct {
	path []string
	form SpecForm
	key  string // default key of a reference
}

// keysOfSpec returns all keys of a section in a spec.
func keysOfSpec(t reflect.Type, at ...string) (keys []keyPath) {
	for _, f := range SpecFields(t) {
		path := append(slices.Clone(at), f.Key)
		inner := f.Field.Type
		if f.Form == SpecValue && !yamlconf.IsScalar(inner) {
			for inner.Kind() == reflect.Map || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
				if inner.Kind() != reflect.Pointer {
					path = append(path, "")
				}
				if inner = inner.Elem(); yamlconf.IsScalar(inner) {
					break
				}
			}
			if !yamlconf.IsScalar(inner) {
				keys = append(keys, keysOfSpec(inner, path...)...)
				continue
			}
		}
		keys = append(keys, keyPath{path, f.Form, f.DefaultKey})
	}
	return keys
}

// set returns a copy of a spec with another value for a key. name is the name of an entry of a map.
func set(spec any, path []string, name string, value any) any {
	if len(path) == 0 {
		return value
	}
	key := path[0]
	if list, isList := spec.([]any); isList && key == "" {
		list = slices.Clone(list)
		list[0] = set(list[0], path[1:], name, value)
		return list
	}
	before, _ := spec.(map[string]any)
	next := map[string]any{}
	for k, v := range before {
		next[k] = v
	}
	if key == "" {
		for k := range before {
			next[k] = set(before[k], path[1:], name, value)
			return next
		}
		next[name] = set(nil, path[1:], name, value)
		return next
	}
	next[key] = set(before[key], path[1:], name, value)
	return next
}

// listsIn returns a copy of a spec in which objects with the only key "0" are lists, because a list and a map look
// alike in a path.
func listsIn(value any) any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	if item, isList := object["0"]; isList && len(object) == 1 {
		return []any{listsIn(item)}
	}
	next := map[string]any{}
	for k, v := range object {
		next[k] = listsIn(v)
	}
	return next
}

// textsIn returns all texts and keys of a value by their path in the spec, also of secrets.
func textsIn(v reflect.Value, path string, found map[string][]string) {
	if secret, ok := v.Interface().(interface{ Reveal() string }); ok {
		found[path] = append(found[path], secret.Reveal())
		return
	}
	switch {
	case yamlconf.IsScalar(v.Type()):
		found[path] = append(found[path], fmt.Sprint(v.Interface()))
	case v.Kind() == reflect.Pointer && !v.IsNil():
		textsIn(v.Elem(), path, found)
	case v.Kind() == reflect.Map:
		for key, value := range v.Seq2() {
			found[path] = append(found[path], fmt.Sprint(key.Interface()))
			textsIn(value, path, found)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			textsIn(v.Index(i), path, found)
		}
	case v.Kind() == reflect.Struct:
		for _, f := range yamlconf.FieldsOf(v.Type()) {
			textsIn(v.FieldByIndex(f.Index), strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), "."), found)
		}
	}
}

// An attack is a cluster with an attacker in the namespace team-a, and others who must not notice anything.
type attack struct {
	*fakeCluster
	file string // a file of the server with the canary
	beta *Tenant
}

func newAttack(t testing.TB) *attack {
	t.Helper()
	dir := t.TempDir()
	must.WriteCertificate(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), &x509.Certificate{})
	file := filepath.Join(dir, "secret-file")
	must.WriteFile(t, file, canary)
	a := &attack{file: file}
	a.fakeCluster = newFakeCluster(t, strings.NewReplacer("tls.crt", filepath.Join(dir, "tls.crt"), "tls.key",
		filepath.Join(dir, "tls.key")).Replace(attackTests))
	a.own(map[string]string{})
	a.secret("team-b", "theirs", "password_hash", canary, "secret", canary, "tls.crt", canary)
	a.tenant("team-b/beta", "{bucket: evil-data, hosts: [beta.example]}")
	a.user("team-b/evil", "beta")
	a.tenant("team-a/acme", "{bucket: team-a-1}")
	a.run()
	a.want(tenantB, ResourceAccepted, 1, "")
	a.beta = a.merged.Tenants["team-b_beta"]
	return a
}

// own sets the Secret of the attacker. Values replace the valid ones.
func (a *attack) own(values map[string]string) {
	data := map[string]string{
		"password_hash": hash, "secret": "0123456789abcdef0123", "bind_password": "own", "secret_access_key": "own",
		"access_key_id": "own", "customer_key": stateKeys,
	}
	var pairs []string
	for _, all := range []map[string]string{data, values} {
		for key, value := range all {
			pairs = append(pairs, key, value)
		}
	}
	a.secret("team-a", "own", pairs...)
}

// apply replaces the resource of the attacker by a new one, and checks that nobody else notices, and that no canary is
// revealed. It returns the outcome and the texts in the configuration of the attacker.
func (a *attack) apply(kind ResourceKind, spec any) (*ResourceOutcome, map[string][]string) {
	a.t.Helper()
	data, isJSON := spec.(json.RawMessage)
	if !isJSON {
		var err error
		data, err = json.Marshal(spec)
		must.OK(a.t, err)
	}
	id := tenantA
	if kind == UserResource {
		id = alice
	}
	a.uid++
	a.clock = a.clock.Add(1)
	parts := strings.Split(id, "/")
	a.resources[id] = &Resource{Kind: kind, Namespace: parts[1], Name: parts[2], UID: fmt.Sprint(a.uid), Generation: 1,
		Created: a.clock, Spec: data}
	a.run()
	o := a.outcome(id)
	if a.merged.Tenants["file"] != a.cfg.Tenants["file"] || a.merged.Tenants["team-b_beta"] != a.beta {
		a.t.Errorf("%s affects another tenant", data)
	}
	const longest = (maxProblems + 2) * (maxProblemBytes + 100)
	if strings.Contains(o.Message, canary) || len(o.Message) > longest {
		a.t.Errorf("%.200s: the message of %d bytes reveals a secret, or is too long: %.200q", data, len(o.Message), o.Message)
	}
	found := map[string][]string{}
	if t := a.merged.Tenants["team-a_acme"]; t != nil {
		textsIn(reflect.ValueOf(t), "", found)
		for _, u := range t.Users {
			textsIn(reflect.ValueOf(u), "user", found)
		}
	}
	return o, found
}

// Secret records that no namespace but the own one is read.
func (a *attack) Secret(namespace, name string) (map[string][]byte, string, bool) {
	if strings.ContainsAny(namespace+name, "/:") {
		a.t.Errorf("read the Secret %s of %s", name, namespace)
	}
	return a.fakeCluster.Secret(namespace, name)
}

// No value of any key of the schema reaches or reveals anything outside of what the namespace may use. The keys come
// from the schema, so that a new key is attacked too.
func TestAttackThroughEveryKey(t *testing.T) {
	a := newAttack(t)
	every := 2 // each key gets every second payload, and keys next to it the others
	if testing.Short() {
		every = 10
	}
	for kind, bases := range basesOfAttacks() {
		for _, base := range bases {
			var spec any
			must.OK(t, json.Unmarshal(jsonOf(t, base), &spec))
			if o, _ := a.apply(kind, spec); o.Reason != ResourceAccepted {
				t.Fatalf("%s: %s", base, o.Message)
			}
			for k, key := range keysOfSpec(SpecType(kind)) {
				for n, payload := range payloads(a.file) {
					if (n+k)%every == 0 {
						a.attack(kind, spec, key, payload)
					}
				}
				if t.Failed() {
					return
				}
			}
		}
		// The user belongs to a valid tenant.
		a.apply(TenantResource, map[string]any{"bucket": "team-a-1"})
	}
}

// attack sets a key of a spec to a value.
func (a *attack) attack(kind ResourceKind, spec any, key keyPath, payload any) {
	a.t.Helper()
	isEntry := func(s string) bool { return s == "" }
	path := strings.Join(slices.DeleteFunc(slices.Clone(key.path), isEntry), ".")
	names := []string{evil}
	if slices.ContainsFunc(key.path, isEntry) {
		names = append(names, "/"+evil, "0", "en", "0.0.0.0/0")
	}
	for _, name := range names {
		o, found := a.apply(kind, listsIn(set(spec, key.path, name, payload)))
		if o.Used == nil {
			continue
		}
		for at, texts := range found {
			at = strings.TrimPrefix(at, "user.")
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, canary) }) {
				a.t.Errorf("%s = %.80v: the server reads %q into %s", path, payload, canary, at)
			}
			isEvil := slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, evil) })
			if isEvil && !isHarmless(at) && (at != kmsKey || !a.hasCredentials()) {
				a.t.Errorf("%s = %.80v: accepted in %s: %.80q", path, payload, at, texts)
			}
		}
		a.checkReach(path, payload)
	}
}

// kmsKey may be any key with credentials of the namespace.
const kmsKey = "objects.rules.set.kms_key"

// hasCredentials reports whether the attacker has credentials of the namespace.
func (a *attack) hasCredentials() bool {
	return a.merged.Tenants["team-a_acme"].S3.AccessKeyID != "" // there are none in tenant_defaults
}

func isHarmless(at string) bool {
	for key := range harmless() {
		if (at == key || strings.HasPrefix(at, key+".")) && at != kmsKey {
			return true
		}
	}
	return false
}

// checkReach checks the addresses, hosts, buckets and ARNs of the attacker in the configuration in use.
func (a *attack) checkReach(path string, payload any) {
	a.t.Helper()
	t := a.merged.Tenants["team-a_acme"]
	if t == nil {
		return
	}
	fail := func(what, value string) {
		a.t.Helper()
		a.t.Errorf("%s = %.80v: reaches the %s %q", path, payload, what, value)
	}
	n := a.cfg.Kubernetes.Namespaces["team-a"]
	for _, text := range append(t.Auth.LDAP.URLs, t.S3.Endpoint, t.S3.PublicEndpoint, t.Auth.Hook.URL, t.Webhook.URL,
		t.Inspect.Clamd, t.Inspect.ICAP, t.Inspect.Hook.URL) {
		if text != "" && !slices.ContainsFunc(n.Addresses, func(prefix string) bool {
			return text == prefix || strings.HasPrefix(text, prefix+"/") || strings.HasPrefix(text, prefix+"?")
		}) {
			fail("address", text)
		}
	}
	for _, host := range t.Hosts {
		if !strings.HasSuffix(host, ".team-a.example") {
			fail("host", host)
		}
	}
	own := a.hasCredentials()
	if (t.S3.Endpoint != "") && !own {
		fail("endpoint with the credentials of the server", t.S3.Endpoint)
	}
	for _, p := range append(t.places(), place{t.Bucket, t.Inspect.Quarantine}) {
		mayUse := strings.HasPrefix(p.bucket, "team-a-") || p.bucket == "shared" && strings.HasPrefix(p.prefix, "team-a/") || p.prefix == ""
		if !own && !mayUse {
			fail("place", p.bucket+"/"+p.prefix)
		}
	}
	for _, arn := range []string{t.S3.AssumeRole.RoleARN, t.Objects.KMSKeyID} {
		if arn != "" && !own && !slices.Contains(n.ARNs, arn) {
			fail("ARN", arn)
		}
	}
	for _, file := range append(t.files(), &t.CAFile) {
		if *file != "" && !strings.HasPrefix(*file, filepath.Join(a.cfg.Kubernetes.Folder, secretFiles)+"/") {
			fail("file", *file)
		}
	}
	if t.UsersFile != "" || t.UsersStore != "" || t.Auth.UsesFTP() || t.S3.AssumeRole.SessionTags != nil && !own {
		fail("setting", fmt.Sprint(t.UsersFile, t.UsersStore, t.S3.AssumeRole.SessionTags))
	}
}

// The content of a Secret, whatever it is, is in no message.
func TestNoSecretInMessages(t *testing.T) {
	a := newAttack(t)
	contents := []string{
		canary, canary + "\n", "", "\xff" + canary, strings.Repeat(canary, 10_000), "$argon2id$" + canary, "$2y$99$" + canary, "$6$" + canary,
		"-----BEGIN " + canary + "-----\nAAAA\n-----END " + canary + "-----\n",
		"-----BEGIN CERTIFICATE-----\nY2FuYXJ5MDEyMzQ1Njc4OQ==\n-----END CERTIFICATE-----\n",
		"-----BEGIN PRIVATE KEY-----\nY2FuYXJ5MDEyMzQ1Njc4OQ==\n-----END PRIVATE KEY-----\n",
		"-----BEGIN X509 CRL-----\nY2FuYXJ5MDEyMzQ1Njc4OQ==\n-----END X509 CRL-----\n", "https://" + canary + "@evil.example",
	}
	n := 0
	for kind, bases := range basesOfAttacks() {
		for _, base := range bases {
			var spec any
			must.OK(t, json.Unmarshal(jsonOf(t, base), &spec))
			for _, key := range keysOfSpec(SpecType(kind)) {
				if key.form != SpecSecret {
					continue
				}
				for _, content := range contents {
					a.own(map[string]string{key.key: content})
					o, _ := a.apply(kind, listsIn(set(spec, key.path, evil, map[string]any{"name": "own"})))
					if o.Used == nil {
						n++
					}
				}
				a.own(nil)
			}
		}
		a.apply(TenantResource, map[string]any{"bucket": "team-a-1"})
	}
	if n < 100 {
		t.Errorf("only %d attacks were refused", n)
	}
}
