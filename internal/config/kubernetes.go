package config

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Kubernetes configures tenants and users that are custom resources (`FTPTenant` and `FTPUser`). It says which
// namespaces `babelftp-kubernetes` watches, and what their resources may use of the server.
type Kubernetes struct {
	// Folder for certificates and keys of resources, and for a copy of the resources, with which a container starts
	// while the API server is down. It contains secrets: use a volume in memory.
	Folder string `yaml:"folder" path:"true" default:"/run/babelftp/kubernetes"`
	// Watched namespaces, by name, with what their resources may use. `"*"` stands for all other namespaces.
	Namespaces map[string]*Namespace `yaml:"namespaces" default:"required"`
}

// A Namespace says what the resources of a namespace may use. `*` in a pattern matches any characters of a name, but
// no dot in a host name and no slash in a bucket or prefix, except at the end.
type Namespace struct {
	// Buckets that may be used with the credentials of the server: `NAME` for a whole bucket, or `NAME/PREFIX`. With
	// credentials of its own a tenant may use any bucket.
	Buckets []string `yaml:"buckets" default:"none"`
	// Addresses that the server may call for a tenant, such as `https://hooks.example.com` or
	// `ldaps://*.example.com:636`: `s3.endpoint`, `s3.public_endpoint`, `auth`, `webhook` and `inspect`. An
	// `s3.endpoint` also requires credentials of the tenant.
	Addresses []string `yaml:"addresses" default:"none"`
	// Virtual hosts that tenants may have. Without the key, a tenant may have any host that no other tenant and not
	// the server itself uses.
	Hosts []string `yaml:"hosts" default:"all"`
	// ARNs of IAM roles, and ARNs, IDs and aliases of KMS keys, that may be used with the credentials of the server.
	ARNs []string `yaml:"arns" default:"none"`
}

// DefaultKubernetesFolder is the default of kubernetes.folder.
const DefaultKubernetesFolder = "/run/babelftp/kubernetes"

// OtherNamespaces is the key of the namespaces that the section does not name.
const OtherNamespaces = "*"

// IsSet reports whether any key of the section is set.
func (k *Kubernetes) IsSet() bool { return !reflect.ValueOf(*k).IsZero() }

// NamespaceOf returns what the resources of a namespace may use, or nil if the namespace is not watched.
func (k *Kubernetes) NamespaceOf(name string) *Namespace {
	return cmp.Or(k.Namespaces[name], k.Namespaces[OtherNamespaces])
}

// normalize sets the defaults of a section that is given.
func (k *Kubernetes) normalize() {
	if k.IsSet() {
		k.Folder = cmp.Or(k.Folder, DefaultKubernetesFolder)
	}
}

// check validates the section at p.
func (k *Kubernetes) check(v *validator, p yamlconf.Path) {
	if !k.IsSet() {
		return
	}
	names := p.Child("namespaces")
	if len(k.Namespaces) == 0 {
		v.report(names, `is empty: add the namespaces to watch, or "*" for all`)
	}
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // RFC 1123, as the API server requires
	for _, name := range slices.Sorted(maps.Keys(k.Namespaces)) {
		at := names.Child(name)
		if name != OtherNamespaces && !label.MatchString(name) {
			v.report(at, `%q is not a namespace: write its name, or "*" for all other namespaces`, name)
		}
		k.Namespaces[name].check(v, at)
	}
}

// check validates the patterns at p.
func (n *Namespace) check(v *validator, p yamlconf.Path) {
	for _, list := range []struct {
		key      string
		patterns []string
		problem  func(string) string
	}{
		{"buckets", n.Buckets, bucketPatternProblem}, {"addresses", n.Addresses, addressPatternProblem},
		{"hosts", n.Hosts, hostPatternProblem}, {"arns", n.ARNs, arnPatternProblem},
	} {
		at := p.Child(list.key)
		if list.key == "hosts" && n.Hosts != nil && len(n.Hosts) == 0 {
			v.report(at, "is empty: add a host, or remove the key to allow all hosts")
		}
		for i, pattern := range list.patterns {
			if broken := list.problem(pattern); broken != "" {
				v.report(at.Child(strconv.Itoa(i)), "%q %s", pattern, broken)
			}
		}
	}
}
