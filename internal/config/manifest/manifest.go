// Package manifest converts the tenants of a configuration to custom resources of Kubernetes: FTPTenants, FTPUsers, and
// the Secrets and ConfigMaps that they refer to.
package manifest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
)

// A Result has the manifests of all tenants.
type Result struct {
	Objects []Object
	// Notes say what could not be converted, and what changes for users.
	Notes []string
	// Border has the entry of the namespace in kubernetes.namespaces of the configuration, which is
	// customResources.namespaces in the values of the chart. It allows what the tenants use.
	Border config.Namespace
}

// An Object is the manifest of an object of the Kubernetes API.
type Object map[string]any

// A SecretReference names a key of a Secret in the namespace of the resource.
type SecretReference struct{ Name, Key string }

// Options say what is converted.
type Options struct {
	Namespace string // of the objects
	Tenant    string // empty for all tenants
	// Existing returns the Secret that has a value or a file already, or false. It may be nil.
	Existing func(valueOrFile string) (ref SecretReference, ok bool)
}

// Export converts the tenants of a configuration.
func Export(c *config.Config, o Options) (*Result, error) {
	e := &exporter{cfg: c, options: o, names: map[string]bool{}, wanted: map[string]bool{}, result: &Result{}}
	names := slices.Sorted(maps.Keys(c.Tenants))
	if o.Tenant != "" {
		names = []string{o.Tenant}
	}
	for _, name := range names {
		e.wanted["FTPTenant/"+name] = true
		for user := range c.Tenants[name].Users {
			e.wanted["FTPUser/"+user] = true
		}
	}
	e.noteServer()
	for _, name := range names {
		if err := e.tenant(name, c.Tenants[name]); err != nil {
			return nil, err
		}
	}
	e.result.Border.Buckets = unique(e.result.Border.Buckets)
	e.result.Border.Addresses = unique(e.result.Border.Addresses)
	e.result.Border.Hosts = unique(e.result.Border.Hosts)
	e.result.Border.ARNs = unique(e.result.Border.ARNs)
	return e.result, nil
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Write writes the manifests as YAML documents.
func (r *Result) Write(w io.Writer) error {
	for _, o := range r.Objects {
		text, err := yaml.Dump(map[string]any(o), yaml.WithIndent(indent), yaml.WithLineWidth(lineWidth))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

const (
	indent    = 2
	lineWidth = 120
)

// apiVersion is the version of the custom resources.
const apiVersion = "babelftp.io/v1alpha1"

// An exporter collects the manifests of tenants.
type exporter struct {
	cfg     *config.Config
	options Options
	names   map[string]bool // KIND/NAME of the resources so far
	wanted  map[string]bool // KIND/NAME that tenants and users have in the configuration
	result  *Result
}

// note adds a note, unless there is an equal one.
func (e *exporter) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); !slices.Contains(e.result.Notes, note) {
		e.result.Notes = append(e.result.Notes, note)
	}
}

// add adds an object. fields are its fields besides kind and metadata.
func (e *exporter) add(version, kind, name string, fields Object) {
	o := Object{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": e.options.Namespace}}
	maps.Copy(o, fields)
	e.result.Objects = append(e.result.Objects, o)
}

// noteServer reports what concerns all tenants.
func (e *exporter) noteServer() {
	e.note("remove the tenants from the configuration when you apply the manifests: a tenant of the configuration keeps its hosts " +
		"and its part of the bucket")
	if e.cfg.ServerAuth() != nil {
		e.note("auth: the service of the server names tenants: let it return the global names, %s", e.globalName("NAME"))
	}
}

// globalName returns the name of an FTPTenant in logins, metrics and logs.
func (e *exporter) globalName(resource string) string { return e.options.Namespace + "_" + resource }

// maxGlobalName is the maximum length of the name of a tenant.
const maxGlobalName = 63

// tenant adds the objects of a tenant.
func (e *exporter) tenant(name string, t *config.Tenant) error {
	resource := e.name("FTPTenant", name, "tenant")
	if global := e.globalName(resource); len(global) > maxGlobalName {
		return fmt.Errorf("tenants.%s: the global name %s would be longer than %d characters: choose a shorter --namespace, or rename "+
			"the tenant", name, global, maxGlobalName)
	}
	s := &spec{exporter: e, at: "tenants." + name, owner: resource, secrets: map[string]map[string]string{}}
	values, err := s.section(*t, "")
	if err != nil {
		return err
	}
	if t.ResumeByDefault {
		delete(values, "resume")
	}
	s.texts(t, values)
	s.addSecrets()
	e.add(apiVersion, string(config.TenantResource), resource, Object{"spec": values})
	e.noteTenant(name, resource, t)
	e.border(t)
	for _, user := range slices.Sorted(maps.Keys(t.Users)) {
		if err := e.user(name, resource, user, t.Users[user]); err != nil {
			return err
		}
	}
	return nil
}

// noteTenant reports what is different for an FTPTenant.
func (e *exporter) noteTenant(name, resource string, t *config.Tenant) {
	at, global := "tenants."+name, e.globalName(resource)
	e.note("%s becomes the tenant %s in logins without a host (USER@%[2]s), metrics, bans and the audit log", at, global)
	for _, text := range []string{e.cfg.StorageOf(t).AssumeRole.RoleARN, e.cfg.StorageOf(t).AssumeRole.ExternalID} {
		if strings.Contains(text, "{tenant}") {
			e.note("%s.s3.assume_role: {tenant} in %s becomes %s too", at, text, global)
		}
	}
	if t.UsersStore != "" {
		e.note("%s.users_store: users in the shared state are not converted: list them with `babelftp users`, and write an FTPUser "+
			"for each", at)
	}
	if t.RehashPasswords != nil {
		e.note("%s.rehash_passwords is not converted, because the server cannot change a Secret", at)
	}
	if t.S3.Endpoint != "" && t.S3.AccessKeyID == "" {
		e.note("%s.s3.endpoint: add access_key_id and secret_access_key_secret, because the credentials of the server are not sent "+
			"to an endpoint of an FTPTenant", at)
	}
	if t.Auth.UsesFTP() {
		e.note("%s.auth.ftp is not converted, because the server would have to store the users", at)
	}
}

// user adds the objects of a user.
func (e *exporter) user(tenant, tenantResource, name string, u *config.User) error {
	at := "tenants." + tenant + ".users." + name
	resource := e.name("FTPUser", name, tenantResource)
	s := &spec{exporter: e, at: at, owner: resource, secrets: map[string]map[string]string{}}
	values, err := s.section(config.UserSpec{Tenant: tenantResource, User: *u}, "")
	if err != nil {
		return err
	}
	if resource != name {
		values["name"] = name
	}
	s.addSecrets()
	e.add(apiVersion, string(config.UserResource), resource, Object{"spec": values})
	if u.MustChangePassword {
		e.note("%s.must_change_password is not converted, because the server cannot change a Secret: the user keeps the password", at)
	}
	if slices.Contains(u.Permissions, config.Password) {
		e.note("%s.permissions: password has no effect, because the server cannot change a Secret", at)
	}
	return nil
}

// maxResourceName leaves room for suffixes of Secrets in the 253 characters of Kubernetes.
const maxResourceName = 200

// name returns a unique name for an object. wanted is the name in the configuration, and owner is the name of the
// tenant. The objects that have a valid name keep it.
func (e *exporter) name(kind, wanted, owner string) string {
	name := resourceName(wanted)
	sum := sha256.Sum256([]byte(owner + "/" + wanted))
	for _, candidate := range []string{name, name + "-" + owner, fmt.Sprintf("%s-%x", name, sum[:hashBytes])} {
		taken := e.names[kind+"/"+candidate] || candidate != wanted && e.wanted[kind+"/"+candidate]
		if name = candidate; !taken {
			break
		}
	}
	e.names[kind+"/"+name] = true
	return name
}

// hashBytes is the number of bytes in the suffix of a name. They only need to be unique in a namespace.
const hashBytes = 4

// resourceName returns a valid name for an object that is similar to a name.
func resourceName(name string) string {
	valid := regexp.MustCompile(`[^a-z0-9.]+`).ReplaceAllString(strings.ToLower(name), "-")
	valid = regexp.MustCompile(`[.-]*[.][.-]*`).ReplaceAllString(valid, ".")
	valid = strings.Trim(valid[:min(len(valid), maxResourceName)], "-.")
	return cmp.Or(valid, "user")
}
