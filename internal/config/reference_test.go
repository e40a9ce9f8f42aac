package config

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The reference, the JSON Schema and the schema of the chart's values are generated from the structs and their
// comments. To update them:
//
//	go test ./internal/config -run TestReference -update
func TestReference(t *testing.T) {
	r := newReference(t)
	for _, s := range r.sections {
		for _, k := range s.keys {
			if k.meaning == "" {
				t.Errorf("%s.%s has no meaning: write it in the comment of the field", s.name, k.name)
			}
		}
	}
	for _, path := range r.order {
		if topicOf(path) < 0 {
			t.Errorf("%s is in no topic: add it to one", path)
		}
	}
	schema := r.schema("#/definitions/")
	for name, want := range map[string][]byte{
		"configuration.schema.json":                indented(t, schema, ""),
		"../../docs/configuration.md":              r.markdown(),
		"../../deploy/babelftp/values.schema.json": chartSchema(t, r),
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			if *update {
				must.OK(t, os.WriteFile(name, want, 0o644))
			}
			got, err := os.ReadFile(name)
			must.OK(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%s is outdated; run: go test ./internal/config -run TestReference -update", name)
			}
		})
	}
}

// The example in the reference is a valid configuration.
func TestExample(t *testing.T) {
	dir := t.TempDir()
	must.WriteCertificate(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), &x509.Certificate{})
	file := filepath.Join(dir, "babelftp.yaml")
	writeFile(t, file, example)
	if _, err := Load(file, nil); err != nil {
		t.Error(err)
	}
	if n := len(first()); n > 25 {
		t.Errorf("got %d keys at the beginning, want at most 25", n)
	}
	for _, path := range first() {
		if _, name, _ := cutLast(path); !strings.Contains(example, name+":") {
			t.Errorf("the example lacks %s", path)
		}
	}
}

// maxKeys limits the number of keys and sections in the reference. A section with the same keys as another one, such
// as s3 of a tenant, counts once. Before you raise the limit for a new key, check whether the server can decide this
// itself, or whether another key has almost the same purpose. To list the keys and those that are counted once:
//
//	go test ./internal/config -run TestNumberOfKeys -v
const maxKeys = 245

// Every key is one more thing that users have to understand.
func TestNumberOfKeys(t *testing.T) {
	r, n := newReference(t), 0
	for _, path := range r.order {
		if r.row(path) == "" {
			t.Log(path, "(again)")
			continue
		}
		n++
		t.Log(path)
	}
	if t.Logf("%d keys, at %d places", n, len(r.order)); n > maxKeys {
		t.Errorf("got %d keys, want at most %d", n, maxKeys)
	}
}

// A reference holds all keys of a configuration.
type reference struct {
	sections []*section
	comments map[string]string // comments of structs, by name, and of fields, by STRUCT.FIELD
	rows     map[string]*row   // by path
	order    []string          // the paths in their order
	repeats  map[string]string // paths of sections with the keys of another section, and what they have in common
}

// A section is a struct of the configuration.
type section struct {
	typ   reflect.Type
	name  string   // name of the struct
	paths []string // its paths; "" for the top level
	keys  []key
}

// A key is a field of a section.
type key struct {
	name, meaning string
	typ           reflect.Type
	fallback      string // the default; empty for a section
	isDefault     bool   // fallback is a value and not a description
	file          bool   // the value can be read from a file
	// section is nil for a value.
	section *section
	again   bool // the keys of the section are documented elsewhere
}

func newReference(t *testing.T) *reference {
	t.Helper()
	r := &reference{comments: comments(t)}
	r.add("", reflect.ValueOf(Default()).Elem())
	r.lay()
	return r
}

// add adds the struct v at path, with its nested structs.
func (r *reference) add(path string, v reflect.Value) *section {
	if i := slices.IndexFunc(r.sections, func(s *section) bool { return s.typ == v.Type() }); i >= 0 {
		r.sections[i].addPath(path)
		return r.sections[i]
	}
	s := &section{typ: v.Type(), name: v.Type().Name(), paths: []string{path}}
	r.sections = append(r.sections, s)
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, field, owner := f.Tag.Get("yaml"), v.FieldByIndex(f.Index), s.name
		if name == "" {
			continue
		}
		if len(f.Index) > 1 {
			owner = v.Type().FieldByIndex(f.Index[:len(f.Index)-1]).Type.Name() // an embedded struct
		}
		k := key{name: name, typ: f.Type, meaning: r.comments[owner+"."+f.Name], file: yamlconf.HasFileForm(f)}
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case yamlconf.IsScalar(f.Type):
			k.fallback, k.isDefault = fallback(field, f.Tag.Get("default"))
		case f.Type == reflect.TypeFor[Tenant](): // the defaults of all tenants
			k.section, k.again = &section{typ: f.Type, name: f.Type.Name()}, true
		case f.Type.Kind() == reflect.Struct:
			k.section = r.add(at, field)
		case f.Type.Kind() == reflect.Map && f.Type.Elem().Kind() == reflect.Pointer:
			k.section = r.add(at+"."+placeholder(name), reflect.New(f.Type.Elem().Elem()).Elem())
		case isListOfSections(f.Type):
			k.section = r.add(at+"."+placeholder(name), reflect.New(f.Type.Elem()).Elem())
		default:
			k.fallback = f.Tag.Get("default")
		}
		s.keys = append(s.keys, k)
	}
	return s
}

func isListOfSections(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && !yamlconf.IsScalar(t.Elem())
}

// placeholder returns the name that the reference uses for the keys of a map.
func placeholder(name string) string {
	return map[string]string{"tenants": "TENANT", "users": "USER", "folders": "DIRECTORY",
		"compatibility_by_network": "NETWORK", "rules": "RULE", "namespaces": "NAMESPACE"}[name]
}

// addPath adds a path to a section and its nested sections.
func (s *section) addPath(path string) {
	s.paths = append(s.paths, path)
	for _, k := range s.keys {
		if k.section != nil {
			k.section.addPath(path + "." + k.name)
		}
	}
}

// fallback returns the default of a key, and whether it is a value and not a description.
func fallback(v reflect.Value, tag string) (text string, isValue bool) {
	if !v.IsZero() || tag == "" {
		if d, ok := v.Interface().(time.Duration); ok {
			return strings.Replace(strings.Replace(d.String(), "m0s", "m", 1), "h0m", "h", 1), true
		}
		if level, ok := v.Interface().(slog.Level); ok {
			return strings.ToLower(level.String()), true
		}
		return fmt.Sprint(v), true
	}
	known := slices.Contains(words(v.Type()), tag) ||
		slices.Contains([]string{"true", "false", "/", "utf-8", "nfc"}, tag) || tag[0] >= '0' && tag[0] <= '9'
	return tag, known
}

// comments returns the comments of the structs that are sections, and of their fields.
func comments(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	must.OK(t, err)
	names = append(names, "../base/limits/usage.go")
	found := map[string]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		must.OK(t, err)
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE || strings.HasSuffix(name, "_test.go") {
				continue
			}
			spec := decl.Specs[0].(*ast.TypeSpec)
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			found[spec.Name.Name] = oneLine(decl.Doc)
			for _, f := range structure.Fields.List {
				for _, n := range f.Names {
					found[spec.Name.Name+"."+n.Name] = oneLine(f.Doc)
				}
			}
		}
	}
	return found
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }

// words returns the values of an enumeration, or nil for other types.
func words(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[value.TLSVersion]():
		return []string{"1.2", "1.3"}
	case reflect.TypeFor[slog.Level]():
		return []string{"debug", "info", "warn", "error"}
	}
	if e, ok := reflect.Zero(t).Interface().(yamlconf.Enum); ok {
		return e.Values()
	}
	return nil
}

// A form describes how the values of a type are written.
type form struct {
	name, example string
	schema        map[string]any
}

// formOf returns the form of a scalar type.
func formOf(t reflect.Type) form {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if all := words(t); all != nil {
		quoted := "`" + strings.Join(all, "`, `") + "`"
		if t == reflect.TypeFor[slog.Level]() { // slog accepts other cases and levels too
			return form{quoted, "", text("")}
		}
		name, example := quoted, ""
		if t == reflect.TypeFor[Permission]() { // used by many keys
			name, example = "permission", "one of "+quoted
		}
		return form{name, example, enumSchema(t, all)}
	}
	switch t {
	case reflect.TypeFor[i18n.Text]():
		return form{"message", "a string, or an object with [plural forms](guides/languages-and-greetings.md#plural-forms)",
			messageSchema()}
	case reflect.TypeFor[time.Duration]():
		return form{"duration", "`30s`, `5m`, `1h30m`",
			text(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`, "integer")}
	case reflect.TypeFor[bytesize.Size]():
		return form{"size", "a whole number of bytes, or of a unit: `64MiB`, `1GB`",
			text(`^[0-9]+ *([TGMK]iB|[TGM]B|kB|B)?$`, "integer")}
	case reflect.TypeFor[netaddr.PortRange]():
		return form{"range of ports", "`30000-30099`, or one port", text(`^[0-9]+( *- *[0-9]+)?$`, "integer")}
	case reflect.TypeFor[PublicAddress]():
		return form{"public address",
			"`203.0.113.7`, `ftp.example.com`, `ftp-{replica}.example.com`, or one for each replica: `203.0.113.7, " +
				"203.0.113.8`", text("")}
	case reflect.TypeFor[value.ClientCertificate]():
		return form{"certificate",
			"`sha256:` and a fingerprint, `subject:CN=alice,O=Acme`, `email:…`, `dns:…` or `uri:…`", text("")}
	case reflect.TypeFor[value.Network]():
		return form{"network", "`203.0.113.0/24`, `2001:db8::/32`, or an address", text("")}
	case reflect.TypeFor[value.Expiry]():
		return form{"date", "the last day in UTC, `2027-01-31`, or a time of RFC 3339, `2027-01-31T18:00:00+01:00`",
			text(`^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2}))?$`)}
	case reflect.TypeFor[netip.Addr]():
		return form{"IP address", "`203.0.113.7`", text("")}
	case reflect.TypeFor[language.Tag]():
		return form{"language", "a language tag (BCP 47): `en`, `pt-BR`", text("")}
	case reflect.TypeFor[value.Encoding]():
		return form{"encoding", "`utf-8`, `raw`, or the label of a charset: `windows-1252`, `shift_jis`; a list: " +
			"`[euc-jp, shift_jis]`",
			map[string]any{"type": []string{"array", "string", "null"}, "items": text("")}}
	case reflect.TypeFor[value.Secret]():
		return form{"secret", "a string that is never shown; keep it in a file", text("", "number")}
	}
	switch t.Kind() {
	case reflect.Bool:
		return form{"boolean", "`true` or `false`", text("^(true|false)$", "boolean")}
	case reflect.Int:
		return form{"number", "a whole number", text(`^-?[0-9]+$`, "integer")}
	}
	return form{"text", "any text, in quotes where YAML needs them", text("", "number", "boolean")}
}

// enumSchema returns the schema of an enumeration. YAML reads TLS versions without quotes as numbers, which are in a
// separate enum; see TestSchemaIsPortable for the reason.
func enumSchema(t reflect.Type, words []string) map[string]any {
	var texts, numbers []any
	for _, w := range words {
		texts, numbers = append(texts, w), append(numbers, json.Number(w))
	}
	s := map[string]any{"enum": append(texts, nil)}
	if t != reflect.TypeFor[value.TLSVersion]() {
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"enum": numbers}}}
}

// text returns the schema of a string with a pattern, or of other scalars that YAML makes of an unquoted string.
func text(pattern string, others ...string) map[string]any {
	s := map[string]any{"type": append([]string{"string", "null"}, others...)}
	if pattern != "" {
		s["pattern"] = pattern
	}
	return s
}

// messageSchema returns the schema of a message text, which is an object if it has plural forms.
func messageSchema() map[string]any {
	object := func(required []string, properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "required": required,
			"properties": properties}
	}
	msg := object([]string{"msg"}, map[string]any{"msg": text("")})
	choice := object([]string{"feature", "arg", "cases"}, map[string]any{
		"feature": map[string]any{"enum": []string{"plural"}},
		"arg":     text(""),
		"cases": map[string]any{
			"type": "object", "required": []string{"other"},
			"propertyNames":        map[string]any{"pattern": `^(=[0-9]+|` + strings.Join(i18n.Forms(), "|") + `)$`},
			"additionalProperties": map[string]any{"anyOf": []any{text(""), msg}},
		},
	})
	return map[string]any{"anyOf": []any{text("", "number", "boolean"), msg,
		object([]string{"select"}, map[string]any{"select": choice})}}
}

// typeName returns the name of a type in the reference.
func typeName(t reflect.Type) string {
	switch {
	case yamlconf.IsScalar(t):
		return formOf(t).name
	case t == reflect.TypeFor[yamlconf.OneOrMore]():
		return typeName(t.Elem()) + " or list"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	}
	return "map of " + typeName(t.Elem())
}

// A topic is a chapter of the reference.
type topic struct {
	title string
	paths []string // its keys and sections
}

// topics returns the chapters in their order. A key belongs to the topic with the longest matching path.
func topics() []topic {
	const tenant = "tenants.TENANT"
	return []topic{
		{"Addresses and data connections", []string{"listen", "passive", "proxy_protocol", "cluster"}},
		{"Shared state of replicas", []string{"state"}},
		{"TLS and certificates", []string{"tls", "ca_file", tenant + ".tls", tenant + ".ca_file"}},
		{"S3 servers and credentials", []string{"s3", tenant + ".s3", tenant + ".folders.DIRECTORY.s3"}},
		{"Tenants, buckets and folders", []string{"tenants", "tenants_dir", "tenant_defaults", tenant + ".objects"}},
		{"Users and permissions", []string{tenant + ".users", tenant + ".users_file", tenant + ".rehash_passwords",
			tenant + ".permissions",
			tenant + ".path_permissions", tenant + ".files", tenant + ".inspect", tenant + ".overwrite"}},
		{"Logins by an HTTP service or LDAP", []string{"auth", tenant + ".auth"}},
		{"Languages, greetings and file names", []string{"default_language", "locales_dir",
			tenant + ".languages", tenant + ".default_language", tenant + ".greeting", tenant + ".welcome",
			tenant + ".messages", tenant + ".directory_encodings"}},
		{"Devices and clients that differ from the standards", []string{tenant + ".compatibility", tenant + ".compatibility_by_network"}},
		{"Uploads, resuming and memory", []string{"memory", "part_size", "abandoned_uploads", "commit_delay",
			tenant + ".resume"}},
		{"Limits, bans and timeouts", []string{"limits", "idle_timeout", "stall_timeout",
			"drain_timeout", tenant + ".limits", tenant + ".users.USER.limits"}},
		{"Logs, metrics and events", []string{"log", "metrics_listen", "audit", tenant + ".webhook"}},
		{"Administrators", []string{"admin", "admin_socket"}},
		{"Custom resources of Kubernetes", []string{"kubernetes"}},
	}
}

// topicOf returns the index of the topic of a path, or -1.
func topicOf(path string) int {
	found, longest := -1, 0
	for i, topic := range topics() {
		for _, p := range topic.paths {
			if (path == p || strings.HasPrefix(path, p+".")) && len(p) > longest {
				found, longest = i, len(p)
			}
		}
	}
	return found
}

// first returns the keys that most configurations have.
func first() []string {
	const user = "tenants.TENANT.users.USER"
	return []string{
		"listen", "passive.ports", "passive.public_address", "tls.cert_file", "tls.key_file", "tls.acme",
		"s3.endpoint", "s3.region", "s3.path_style", "s3.access_key_id", "s3.secret_access_key",
		"tenants.TENANT.bucket", "tenants.TENANT.prefix", "tenants.TENANT.hosts", "tenants.TENANT.greeting",
		"tenants.TENANT.default_language", "tenants.TENANT.quota",
		user + ".password_hash", user + ".home", user + ".root", user + ".permissions",
		"limits.address", "limits.bans", "log.format", "metrics_listen",
	}
}

// example is a configuration with the most common keys. `babelftp check` accepts it if tls.crt and tls.key are a
// valid certificate and its key.
const example = `listen: ":21"                                     # the control connection
metrics_listen: 127.0.0.1:9121                    # /metrics, /healthz and /readyz
log: {format: json}                               # on standard error
tls: {cert_file: tls.crt, key_file: tls.key}      # or acme: {http_listen: ":80"}
passive:
  ports: 30000-30099                              # open these ports in the firewall too
  public_address: 203.0.113.7                     # where clients reach the server
s3:
  endpoint: https://s3.example.com                # none for AWS
  region: eu-central-1
  path_style: true                                # false for AWS
  access_key_id: AKIAEXAMPLE                      # without keys: found by the AWS SDK
  secret_access_key: "better in a file: secret_access_key_file"
limits:
  address: {sessions: 20, login_rate: 5}          # of one client
  bans: {address_score: 20}                       # failures until an address is banned
tenants:
  acme:
    hosts: [ftp.acme.example]                     # names that select the tenant
    bucket: acme-data
    prefix: inbox/                                # prefix of all keys
    quota: 100GiB
    default_language: fr
    greeting: {en: "Welcome to Acme", fr: "Bienvenue chez Acme"}
    users:
      alice:
        # printed by: babelftp hash-password
        password_hash: "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"
        root: /alice                              # what the user sees as /
        home: /in                                 # where a session starts
        permissions: [list, read, write]
`

const head = `# Configuration reference

[Documentation](README.md)

<!-- Generated by: go test ./internal/config -run TestReference -update. The meanings are the comments of the structs in internal/config. -->

The configuration is one YAML file, ` + "`/etc/babelftp/babelftp.yaml`" + ` unless ` + "`--config FILE`" + ` names another.
` + "`babelftp check`" + ` reports every error with its line and column.
A key without a value is an error too, because the default of many keys allows everything.

## The keys that matter

` + "```yaml\n" + example + "```" + `
`

const values = `
To validate the file in your editor, use the [JSON Schema](../internal/config/configuration.schema.json).

## How values are written

Files are reloaded when they change. Secrets can [be read from files](guides/tenants-and-users.md#keep-secrets-out-of-the-file),
and values of the server can be set in the environment. HTTP requests, including those to S3, use the proxy in
` + "`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`" + `, except for loopback addresses.

Anchors and aliases of YAML (` + "`&name`, `*name`" + `) work for whole values and whole mappings. Merge keys (` +
	"`<<`" + `) do not.

In the tables below, a key without a type is a string. Quote it if YAML requires that.

| type | how to write it |
| --- | --- |
`

// markdown returns the content of docs/configuration.md.
func (r *reference) markdown() []byte {
	var b bytes.Buffer
	b.WriteString(head)
	b.WriteString(values)
	forms := map[string]string{}
	for _, k := range r.rows {
		if k.section == nil {
			f := formOf(scalar(k.typ))
			forms[f.name] = f.example
		}
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		if forms[name] != "" && !slices.Contains([]string{"text", "boolean", "number"}, name) {
			fmt.Fprintf(&b, "| %s | %s |\n", name, forms[name])
		}
	}
	for i, topic := range topics() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | type; default | meaning |\n| --- | --- | --- |\n", topic.title)
		for _, path := range r.order {
			if topicOf(path) == i && !r.plain(path) {
				b.WriteString(r.row(path))
			}
		}
	}
	return b.Bytes()
}

// plain reports whether a section needs no row of its own, because its keys are listed and its description is a
// single sentence.
func (r *reference) plain(path string) bool {
	k := r.rows[path]
	return k.section != nil && !k.again && k.typ.Kind() == reflect.Struct && r.repeats[k.at] == "" &&
		strings.Count(k.meaning, ". ") == 0
}

// row returns the row of a key, or an empty string if its section is documented elsewhere.
func (r *reference) row(path string) string {
	k := r.rows[path]
	if parent, _, nested := cutLast(path); nested && r.repeats[parent] != "" {
		return ""
	}
	if k.section != nil {
		meaning := k.meaning
		if same := r.repeats[k.at]; same != "" {
			meaning += " Same keys as " + same + "."
		}
		kind := ""
		if k.again {
			kind = "keys of `tenants.TENANT`"
		}
		if k.typ.Kind() == reflect.Map {
			kind = "by name"
		}
		return fmt.Sprintf("| `%s` | %s | %s |\n", path, kind, meaning)
	}
	var kind []string
	if name := strings.TrimSuffix(strings.TrimSuffix(typeName(k.typ), "text"), " of "); name != "" {
		kind = append(kind, strings.Replace(name, "text or list", "list", 1))
	}
	switch {
	case k.isDefault:
		kind = append(kind, "`"+k.fallback+"`")
	case k.fallback != "none":
		kind = append(kind, k.fallback)
	}
	return fmt.Sprintf("| `%s` | %s | %s |\n", path, strings.Join(kind, "; "), k.meaning)
}

// cutLast splits the last key off a path.
func cutLast(path string) (parent, name string, nested bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// lay sorts all keys in the order of the reference, and finds sections with the keys of another section.
func (r *reference) lay() {
	r.rows, r.repeats = map[string]*row{}, map[string]string{}
	var earlier []laid
	var walk func(prefix string, s *section, repeated bool)
	walk = func(prefix string, s *section, repeated bool) {
		for i := range s.keys {
			k := &s.keys[i]
			path := strings.TrimPrefix(prefix+"."+k.name, ".")
			at := path
			if k.typ.Kind() == reflect.Map && k.section != nil {
				at += "." + placeholder(k.name)
			}
			r.rows[path] = &row{key: k, at: at}
			r.order = append(r.order, path)
			if k.section == nil || k.again {
				continue
			}
			again := repeated
			if !again {
				if same := sameAs(k.section, earlier); same != "" {
					r.repeats[at], again = same, true
				}
				earlier = append(earlier, laid{at, k.section})
			}
			if again {
				r.repeats[at] = cmp.Or(r.repeats[at], "-")
			}
			walk(at, k.section, again)
		}
	}
	walk("", r.sections[0], false)
}

// A laid section is a section at a path.
type laid struct {
	path    string
	section *section
}

// A row is a key at a path. at is the path of the keys below it.
type row struct {
	*key
	at string
}

// sameAs names an earlier section that has all keys of s, or returns an empty string. It prefers the section with the
// fewest other keys.
func sameAs(s *section, earlier []laid) string {
	same, fewest := "", 0
	for _, other := range earlier {
		if len(s.keys) < 2 || !slices.ContainsFunc(s.keys, func(k key) bool { return k.section == nil }) {
			continue
		}
		var others []string
		for _, k := range other.section.keys {
			if !slices.ContainsFunc(s.keys, func(own key) bool { return own.name == k.name }) {
				others = append(others, "`"+k.name+"`")
			}
		}
		known := func(own key) bool {
			return slices.ContainsFunc(other.section.keys, func(k key) bool {
				return k.name == own.name && k.meaning == own.meaning
			})
		}
		if slices.ContainsFunc(s.keys, func(k key) bool { return !known(k) }) {
			continue
		}
		if same != "" && len(others) >= fewest {
			continue
		}
		same, fewest = "`"+other.path+"`", len(others)
		if fewest > 0 {
			same += ", except " + strings.Join(others, ", ")
		}
	}
	return same
}

// scalar returns the type of the scalars in a type.
func scalar(t reflect.Type) reflect.Type {
	for !yamlconf.IsScalar(t) {
		t = t.Elem()
	}
	return t
}

// schema returns a JSON Schema (draft 7) of the configuration. refs is the path of its definitions.
func (r *reference) schema(refs string) map[string]any {
	definitions := map[string]any{}
	for _, s := range r.sections {
		properties := map[string]any{}
		for _, k := range s.keys {
			properties[k.name] = described(k.schema(refs), k.meaning)
			if k.section == nil && k.file {
				properties[k.name+yamlconf.FileSuffix] = described(text(""), "File that holds the value of "+k.name+".")
			}
		}
		definitions[s.name] = map[string]any{
			"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties,
		}
	}
	root := definitions["Config"].(map[string]any)
	delete(definitions, "Config")
	root["$schema"], root["title"], root["definitions"] = "http://json-schema.org/draft-07/schema#", "babelftp.yaml",
		definitions
	return root
}

func described(s map[string]any, description string) map[string]any {
	if _, isRef := s["$ref"]; isRef { // draft 7 ignores keywords next to $ref
		s = map[string]any{"allOf": []any{s}}
	}
	s["description"] = description
	return s
}

func (k key) schema(refs string) map[string]any {
	if k.section == nil {
		s := schemaOf(k.typ)
		if k.isDefault && yamlconf.IsScalar(k.typ) {
			s["default"] = k.fallback
		}
		return s
	}
	ref := map[string]any{"$ref": refs + k.section.name}
	if k.typ.Kind() == reflect.Map {
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": ref}
	}
	if k.typ.Kind() == reflect.Slice {
		return map[string]any{"type": []string{"array", "null"}, "items": ref}
	}
	return ref
}

func schemaOf(t reflect.Type) map[string]any {
	switch {
	case yamlconf.IsScalar(t):
		return formOf(t).schema
	case t == reflect.TypeFor[yamlconf.OneOrMore]():
		return map[string]any{"type": []string{"array", "string", "null"}, "items": schemaOf(t.Elem())}
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": schemaOf(t.Elem())}
	}
	s := map[string]any{"type": []string{"object", "null"}, "additionalProperties": schemaOf(t.Elem())}
	if names := words(t.Key()); names != nil {
		s["propertyNames"] = map[string]any{"enum": names}
	}
	return s
}

func indented(t *testing.T, v any, prefix string) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	must.OK(t, e.Encode(v))
	return b.Bytes()
}

// chartMark is the line of the chart's schema after which everything is generated.
const chartMark = `    "generated from here on by: go test ./internal/config -run TestReference -update": true,` + "\n"

// chartSchema returns the schema of the chart's values, with the configuration as its last definition.
func chartSchema(t *testing.T, r *reference) []byte {
	t.Helper()
	schema := r.schema("#/definitions/config/definitions/")
	delete(schema, "$schema")
	now := must.ReadFile(t, "../../deploy/babelftp/values.schema.json")
	own, _, found := strings.Cut(now, chartMark)
	if !found {
		t.Fatalf("the schema of the chart lacks the line %s", chartMark)
	}
	return fmt.Appendf(
		nil, "%s%s    \"config\": %s\n  }\n}\n", own, chartMark, bytes.TrimSpace(indented(t, schema, "    ")))
}
