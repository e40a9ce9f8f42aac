package config

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A specVersion is a version of a spec that was decoded and checked. It is immutable.
type specVersion struct {
	spec    *AcceptedSpec
	problem *specProblem    // nil if the version is valid
	warning string          // texts that are not used
	used    []usedReference // versions of the references that were read
	held    *held           // their content, while the version is valid; nil without references

	tenant *Tenant // without users
	claims []claim

	user                 *User
	userName, userTenant string       // user name, and name of the FTPTenant
	checkedIn, servedIn  *Tenant      // in which the user was checked, and checked by the server
	checked, served      *specProblem // of the user in them
}

// A specDecoder decodes and checks versions of specs.
type specDecoder struct {
	cfg         *Config // the configuration of the files
	references  References
	check       func(*Config) error
	bundle      *i18n.Bundle
	serverHosts func() map[string]bool
	hasDefaults bool
	*specTypes
}

// specTypes remembers what reflection found out about the types of specs.
type specTypes struct {
	entries *yamlconf.EntryDecoder
	fields  map[reflect.Type][]SpecField
}

func newSpecTypes() *specTypes {
	return &specTypes{yamlconf.NewEntryDecoder(reflect.TypeFor[entryRoot]()), map[reflect.Type][]SpecField{}}
}

func newSpecDecoder(c *Config, r *Resources, types *specTypes) *specDecoder {
	d := &specDecoder{
		specTypes: types, cfg: c, references: r.References, check: r.Check, serverHosts: sync.OnceValue(c.serverHosts),
	}
	d.bundle, _ = c.Bundle() // the configuration is valid
	d.hasDefaults = !reflect.ValueOf(c.loaded.defaults).IsZero()
	return d
}

// entryRoot is the struct in which the paths of decoded tenants and users begin.
type entryRoot struct {
	Tenants map[string]*Tenant `yaml:"tenants"`
}

// globalName returns the name of a tenant in the whole server. Neither name can contain an underscore.
func globalName(namespace, name string) string { return namespace + "_" + name }

// decode decodes a version of a resource with its current references, or with those in from, if it is not nil. before
// is an earlier result for the same spec, or nil.
func (d *specDecoder) decode(r *Resource, spec *AcceptedSpec, from *held, before *specVersion) *specVersion {
	v := &specVersion{spec: spec}
	live := &liveResolver{references: d.references, namespace: r.Namespace, folder: d.cfg.Kubernetes.Folder}
	reader := specReader{from: live, fields: d.fields}
	if from != nil {
		reader.from = from
	}
	node := reader.read(r.Kind, spec.Spec)
	problems := reader.problems
	v.used = live.used
	unresolved := slices.ContainsFunc(problems, func(p specProblem) bool { return p.reason != ResourceInvalid })
	if node != nil {
		if r.Kind == UserResource {
			s, more := d.userSpec(node, r.Name, unresolved)
			v.user, v.userName, v.userTenant = &s.User, cmp.Or(s.Name, r.Name), s.Tenant
			problems = append(problems, more...)
			if before != nil && reflect.DeepEqual(before.user, v.user) {
				v.user = before.user
			}
		} else {
			t := d.tenant(r, node)
			t.unresolved = unresolved
			v.tenant, problems = t.all, append(problems, t.check()...)
			v.claims, v.warning = t.claims(), t.warning
			if len(problems) == 0 && before != nil && reflect.DeepEqual(before.tenant, v.tenant) {
				v.tenant = before.tenant
			}
			if len(problems) == 0 && (before == nil || v.tenant != before.tenant) {
				problems = d.checkTenant(r, v.tenant)
			}
		}
	}
	if v.held = from; from == nil && len(live.held.Values)+len(live.held.Maps) > 0 {
		v.held = &live.held
	}
	if v.problem = joinProblems(problems, v.held); v.problem != nil {
		v.tenant, v.user, v.claims, v.held, v.warning = nil, nil, nil, nil, ""
	}
	return v
}

// userSpec decodes the spec of a user, and checks what does not depend on the tenant. unresolved
// reports whether references are missing.
func (d *specDecoder) userSpec(node *yaml.Node, name string, unresolved bool) (*UserSpec, []specProblem) {
	s := &UserSpec{}
	p := yamlconf.Path{"tenants", "", "users", ""}
	positions, found := d.entries.Decode(p, node, s)
	s.normalize()
	next := Config{TLS: d.cfg.TLS, positions: positions}
	v := &validator{cfg: &next}
	if !unresolved {
		s.check(v, p, cmp.Or(s.Name, name))
	}
	problems := inSpec(slices.Concat(found, v.problems), p, reflect.TypeFor[UserSpec]())
	if utf8.RuneCountInString(s.Name) > maxUserName {
		problems = append(problems, specProblem{specRoot + ".name", ResourceInvalid,
			fmt.Sprintf("is longer than %d characters: write a shorter name", maxUserName)})
	}
	if s.Tenant == "" && len(problems) == 0 {
		problems = append(problems, specProblem{specRoot + ".tenant", ResourceInvalid,
			"is missing: write the name of the FTPTenant of the user"})
	}
	return s, problems
}

// maxUserName is the maximum length of the name of a user, as in the schema. It appears in logs and metrics.
const maxUserName = 255

// A decodedTenant is the spec of a tenant.
type decodedTenant struct {
	*specDecoder
	name       string // the global name
	namespace  string
	own, all   *Tenant // without and with tenant_defaults
	positions  yamlconf.Positions
	problems   yamlconf.Problems
	unresolved bool // references are missing
	warning    string
}

// tenant decodes the spec of a tenant.
func (d *specDecoder) tenant(r *Resource, node *yaml.Node) *decodedTenant {
	t := &decodedTenant{specDecoder: d, name: globalName(r.Namespace, r.Name), namespace: r.Namespace, own: &Tenant{}}
	t.positions, t.problems = d.entries.Decode(t.path(), node, t.own)
	t.own.normalize()
	if t.all = t.own; d.hasDefaults {
		t.all = t.own.inheritFrom(&d.cfg.loaded.defaults)
		_, _ = d.entries.Decode(t.path(), node, t.all) // the problems are the same
		t.all.normalize()
		t.all.S3 = t.own.S3.Inherit(d.cfg.loaded.defaults.S3)
	}
	t.all.Namespace = r.Namespace
	return t
}

// path returns the path of the tenant in the configuration.
func (t *decodedTenant) path() yamlconf.Path { return yamlconf.Path{"tenants", t.name} }

// maxTenantName is the maximum length of the name of a tenant.
const maxTenantName = 63

// check returns the problems that check would report, and those with the border of the namespace.
func (t *decodedTenant) check() []specProblem {
	var problems []specProblem
	report := func(reason ResourceReason) func(yamlconf.Path, string, ...any) {
		return func(p yamlconf.Path, format string, args ...any) {
			path := pathInSpec(reflect.TypeFor[Tenant](), p)
			problems = append(problems, specProblem{path.String(), reason, fmt.Sprintf(format, args...)})
		}
	}
	if len(t.name) > maxTenantName {
		report(ResourceInvalid)(nil, "the name of the tenant, %s, is longer than %d characters: choose a shorter name", t.name, maxTenantName)
	}
	next := *t.cfg
	next.Tenants, next.positions = map[string]*Tenant{t.name: t.all}, t.positions
	next.fillInTenant(t.all)
	next.trustTenant(t.all)
	v := &validator{cfg: &next, bundle: t.bundle}
	if !t.unresolved {
		t.all.check(v, t.path())
		if t.all != t.own {
			t.own.S3.check(v, t.path().Child("s3"), []string{t.name})
		}
		v.sharedHosts()
	}
	found := slices.Concat(t.problems, v.problems)
	problems = append(problems, inSpec(found, t.path(), reflect.TypeFor[Tenant]())...)
	for _, p := range inSpec(v.invalidTexts, t.path(), reflect.TypeFor[Tenant]()) {
		t.warning = strings.TrimPrefix(t.warning+"\n"+p.path+": "+p.message, "\n")
	}
	allows := t.cfg.Kubernetes.NamespaceOf(t.namespace)
	if allows == nil {
		report(ResourceNotAllowed)(nil, "the namespace %s is not watched: ask the administrators to add it to kubernetes.namespaces",
			t.namespace)
		return problems
	}
	if t.unresolved { // it is unknown whether the spec has credentials of its own
		return problems
	}
	b := border{cfg: t.cfg, allows: allows, name: t.name, own: t.own, all: t.all, serverHosts: t.serverHosts,
		report: report(ResourceNotAllowed)}
	b.check()
	return problems
}

// claims returns the claims of the tenant.
func (t *decodedTenant) claims() []claim {
	return t.all.claims(t.cfg, func(folder string) bool { return t.own.Folders[folder] == nil })
}

// checkTenant returns the problem that only the server can find.
func (d *specDecoder) checkTenant(r *Resource, t *Tenant) []specProblem {
	if d.check == nil {
		return nil
	}
	next := *d.cfg
	next.Tenants = map[string]*Tenant{globalName(r.Namespace, r.Name): t}
	if err := d.check(&next); err != nil {
		return []specProblem{{specRoot, ResourceInvalid, err.Error()}}
	}
	return nil
}

// checkUser checks a user in a tenant. Unless again is true, it returns v if it was checked in this tenant before.
func (d *specDecoder) checkUser(v *specVersion, tenant string, t *Tenant, again bool) *specVersion {
	if v.checkedIn == t && !again {
		return v
	}
	val := &validator{cfg: d.cfg, bundle: d.bundle}
	p := yamlconf.Path{"tenants", tenant}
	offered := t.checkLanguages(val, p)
	val.problems = nil // the tenant is valid
	if again {
		t.checkUser(val, p, v.userName, v.user, offered)
	} else {
		t.checkUserHere(val, p, v.userName, v.user, offered) // the rest was checked when it was decoded
	}
	at := p.Child("users").Child(v.userName)
	checked := *v
	checked.checkedIn = t
	checked.claims = []claim{{claimKey{userClaim, tenant, NormalizeUser(v.userName)}, specRoot + ".name"}}
	checked.checked = joinProblems(inSpec(val.problems, at, reflect.TypeFor[UserSpec]()), v.held)
	return &checked
}

// inSpec returns problems with a section at p as problems with the spec of a struct of type t.
func inSpec(found yamlconf.Problems, p yamlconf.Path, t reflect.Type) []specProblem {
	var problems []specProblem
	for _, problem := range found {
		var path yamlconf.Path
		if below, ok := strings.CutPrefix(problem.Path, p.String()+"."); ok {
			path = strings.Split(below, ".") // no key that has another name in a spec is below a name with a dot
		}
		message := strings.ReplaceAll(problem.Message, p.String()+".", specRoot+".")
		if !strings.Contains(message, "of the server") { // and not a key of the configuration
			message = fileKey.ReplaceAllString(message, "${1}"+secretSuffix)
		}
		problems = append(problems, specProblem{pathInSpec(t, path).String(), ResourceInvalid, message})
	}
	return problems
}

// fileKey matches keys with the name of a file, which are references in a spec.
var fileKey = regexp.MustCompile(`\b(ca|cert|key|crl|customer_key)_file\b`)

// Limits of a message in a status.
const (
	maxProblems     = 20
	maxProblemBytes = 1024
)

// joinProblems returns a problem with the messages of all problems, or nil if there are none. A missing Secret or
// ConfigMap is the reason only if nothing else is wrong. The names of files with Secrets are replaced.
func joinProblems(problems []specProblem, h *held) *specProblem {
	if len(problems) == 0 {
		return nil
	}
	order := []ResourceReason{ResourceInvalid, ResourceNotAllowed, ResourceSecretNotFound, ResourceConfigMapNotFound}
	joined := specProblem{reason: slices.MinFunc(problems, func(a, b specProblem) int {
		return cmp.Compare(slices.Index(order, a.reason), slices.Index(order, b.reason))
	}).reason}
	var lines []string
	for _, p := range problems {
		line := strings.TrimPrefix(p.path+": "+p.message, ": ")
		if h != nil {
			for _, v := range h.Values {
				if key, isFile := strings.CutPrefix(v.Key, fileMark); isFile {
					line = strings.ReplaceAll(line, v.Text, fmt.Sprintf("%q of the Secret %q", key, v.Name))
				}
			}
		}
		if len(line) > maxProblemBytes {
			line = strings.ToValidUTF8(line[:maxProblemBytes], "") + "..."
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if more := len(lines) - maxProblems; more > 0 {
		lines = append(lines[:maxProblems], fmt.Sprintf("and %d more problems", more))
	}
	joined.message = strings.Join(lines, "\n")
	return &joined
}
