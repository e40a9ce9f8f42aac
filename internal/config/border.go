package config

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A border checks that a custom resource uses only what its namespace may use of the server.
type border struct {
	cfg    *Config
	allows *Namespace
	name   string // of the tenant
	// own has the values of the spec alone, and all also has tenant_defaults.
	own, all    *Tenant
	serverHosts func() map[string]bool
	report      func(p yamlconf.Path, format string, args ...any)
}

// hasCredentials reports whether the section has credentials of its own.
func (s *S3) hasCredentials() bool { return s.AccessKeyID != "" && !s.SecretAccessKey.Empty() }

// check reports everything that the namespace may not use.
func (b *border) check() {
	b.hosts()
	b.s3(yamlconf.Path{"s3"}, &b.own.S3, b.own.S3.hasCredentials())
	for _, name := range slices.Sorted(maps.Keys(b.own.Folders)) {
		f := b.own.Folders[name]
		b.s3(yamlconf.Path{"folders", name, "s3"}, &f.S3, f.S3.hasCredentials() || b.own.S3.hasCredentials())
	}
	b.places()
	b.keys()
	for _, a := range b.addresses() {
		b.address(a.path, a.text)
	}
	b.quarantine()
}

// hosts checks the virtual hosts.
func (b *border) hosts() {
	for i, host := range b.all.Hosts {
		p := yamlconf.Path{"hosts", strconv.Itoa(i)}
		switch {
		case b.allows.Hosts == nil && b.serverHosts()[host]:
			b.report(p, "%s is a name of the server itself: write another host, or ask the administrators to add it to hosts of the "+
				"namespace", host)
		case b.allows.Hosts != nil && !allowsHost(b.allows.Hosts, host):
			b.report(p, "%s is not one of the hosts of the namespace: %s", host, adviceOf(b.allows.Hosts))
		}
	}
}

// adviceOf says which patterns are allowed.
func adviceOf(patterns []string) string {
	if len(patterns) == 0 {
		return "ask the administrators to allow it in kubernetes.namespaces"
	}
	return "write one of " + strings.Join(patterns, ", ")
}

// s3 checks a section s3 of the spec at p. own reports whether it is used with credentials of the namespace.
func (b *border) s3(p yamlconf.Path, s *S3, own bool) {
	if s.Endpoint != "" {
		b.address(p.Child("endpoint"), s.Endpoint)
		if !own {
			b.report(p.Child("endpoint"), "requires access_key_id and secret_access_key_secret: the credentials of the server are not "+
				"sent to other servers")
		}
	}
	if s.PublicEndpoint != "" {
		b.address(p.Child("public_endpoint"), s.PublicEndpoint)
	}
	if own {
		return
	}
	role := p.Child("assume_role")
	if arn := s.AssumeRole.RoleARN; arn != "" && !allowsARN(b.allows.ARNs, expandTenant(arn, b.name)) {
		b.report(role.Child("role_arn"), "%q is not one of the ARNs of the namespace: %s, or set access_key_id and "+
			"secret_access_key_secret", arn, adviceOf(b.allows.ARNs))
	}
	const trusted = "is not allowed with the credentials of the server, whose policies may trust it: remove it, or set " +
		"access_key_id and secret_access_key_secret"
	if s.AssumeRole.SessionTags != nil {
		b.report(role.Child("session_tags"), trusted)
	}
	if s.AssumeRole.ExternalID != "" && s.AssumeRole.RoleARN == "" {
		b.report(role.Child("external_id"), trusted)
	}
}

// A usedPlace is a place at a path of the spec.
type usedPlace struct {
	path yamlconf.Path
	place
	own bool // is used with credentials of the namespace
}

// usedPlaces returns the places of the tenant and its folders. Those that tenant_defaults gives to all tenants are
// inherited.
func (b *border) usedPlaces() (places, inherited []usedPlace) {
	own := b.own.S3.hasCredentials()
	places = append(places, usedPlace{yamlconf.Path{"bucket"}, place{b.all.Bucket, b.all.Prefix}, own})
	for _, name := range slices.Sorted(maps.Keys(b.all.Folders)) {
		f := b.all.Folders[name]
		p := usedPlace{yamlconf.Path{"folders", name}, place{cmp.Or(f.Bucket, b.all.Bucket), f.Prefix}, own || f.S3.hasCredentials()}
		if b.own.Folders[name] == nil {
			p.own = false
			inherited = append(inherited, p)
			continue
		}
		places = append(places, p)
	}
	return places, inherited
}

// places checks the buckets and prefixes.
func (b *border) places() {
	places, _ := b.usedPlaces()
	for _, p := range places {
		b.place(p, p.prefix)
		state := b.cfg.State
		if p.bucket != "" && state.Bucket == p.bucket && !isHidden(state.Prefix) && overlap(state.Prefix, p.prefix) {
			b.report(p.path, "%s overlaps the shared state of the server: write another bucket or prefix", p.bucket)
		}
	}
}

// place checks a prefix in the bucket of a place.
func (b *border) place(p usedPlace, prefix string) {
	if !p.own && p.bucket != "" && !allowsBucket(b.allows.Buckets, p.bucket, prefix) {
		b.report(p.path, "the prefix %q in the bucket %s is not one of the buckets of the namespace: %s, or set "+
			"s3.access_key_id and s3.secret_access_key_secret", prefix, p.bucket, adviceOf(b.allows.Buckets))
	}
}

// overlap reports whether one of two prefixes contains the other.
func overlap(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// quarantine checks the prefix for refused files in all buckets of the tenant.
func (b *border) quarantine() {
	prefix := b.own.Inspect.Quarantine
	if prefix == "" {
		return
	}
	places, inherited := b.usedPlaces()
	for _, p := range append(places, inherited...) {
		p.path = yamlconf.Path{"inspect", "quarantine"}
		b.place(p, prefix)
		if p.bucket != "" && b.cfg.State.Bucket == p.bucket && overlap(b.cfg.State.Prefix, prefix) {
			b.report(p.path, "%q overlaps the shared state of the server in the bucket %s: write another prefix", prefix, p.bucket)
		}
	}
}

// keys checks the KMS keys.
func (b *border) keys() {
	places, inherited := b.usedPlaces()
	if !slices.ContainsFunc(append(places, inherited...), func(p usedPlace) bool { return !p.own }) {
		return
	}
	check := func(p yamlconf.Path, key string) {
		if key != "" && !allowsARN(b.allows.ARNs, key) {
			b.report(p, "%q is not one of the ARNs of the namespace: %s", key, adviceOf(b.allows.ARNs))
		}
	}
	objects := yamlconf.Path{"objects"}
	check(objects.Child("kms_key_id"), b.own.Objects.KMSKeyID)
	for i, rule := range b.own.Objects.Rules {
		check(objects.Child("rules").Child(strconv.Itoa(i)).Child("set").Child("kms_key"), rule.Set.KMSKey)
	}
}

// A calledAddress is an address at a path of the spec.
type calledAddress struct {
	path yamlconf.Path
	text string
}

// addresses returns the addresses of the spec that the server would call, except for S3.
func (b *border) addresses() []calledAddress {
	t := b.own
	all := []calledAddress{
		{yamlconf.Path{"auth", "hook", "url"}, t.Auth.Hook.URL},
		{yamlconf.Path{"webhook", "url"}, t.Webhook.URL},
		{yamlconf.Path{"inspect", "clamd"}, t.Inspect.Clamd},
		{yamlconf.Path{"inspect", "icap"}, t.Inspect.ICAP},
		{yamlconf.Path{"inspect", "hook", "url"}, t.Inspect.Hook.URL},
	}
	for i, text := range t.Auth.LDAP.URLs {
		all = append(all, calledAddress{yamlconf.Path{"auth", "ldap", "urls", strconv.Itoa(i)}, text})
	}
	return slices.DeleteFunc(all, func(a calledAddress) bool { return a.text == "" })
}

// address checks an address. It is not shown, because it may contain a password.
func (b *border) address(p yamlconf.Path, text string) {
	if !allowsAddress(b.allows.Addresses, text) {
		b.report(p, "is not one of the addresses of the namespace: %s", adviceOf(b.allows.Addresses))
	}
}

// inheritFrom returns a tenant with the defaults for a spec. Sections in which the spec names an address, credentials
// or a file of its own inherit nothing, because secrets of the server must not be sent to addresses of a namespace.
// Keys that a spec cannot have do not apply.
func (t *Tenant) inheritFrom(defaults *Tenant) *Tenant {
	d := yamlconf.Clone(defaults)
	d.Users, d.UsersFile, d.UsersStore, d.RehashPasswords, d.Auth.FTP = nil, "", "", nil, OldServer{}
	d.S3 = S3{} // see S3.Inherit
	if !reflect.ValueOf(t.Auth).IsZero() {
		d.Auth = Auth{}
	}
	if t.Webhook.URL != "" || !t.Webhook.Secret.Empty() {
		d.Webhook = Webhook{}
	}
	if t.Inspect.Clamd != "" || t.Inspect.ICAP != "" || t.Inspect.Hook != (Receiver{}) {
		d.Inspect = Inspect{}
	}
	if t.TLS.CertFile != "" || t.TLS.KeyFile != "" {
		d.TLS.CertFile, d.TLS.KeyFile = "", ""
	}
	if t.TLS.ClientCertificates != (ClientCertificates{}) {
		d.TLS.ClientCertificates = ClientCertificates{}
	}
	for name := range t.Folders {
		delete(d.Folders, name)
	}
	hasEndpoint := t.S3.Endpoint != ""
	for _, f := range t.Folders {
		hasEndpoint = hasEndpoint || f.S3.Endpoint != ""
	}
	if hasEndpoint {
		d.Folders, d.Objects = nil, Objects{}
	}
	return d
}

// serverHosts returns the names of the server itself: of its certificate, of ACME and of passive.public_address.
func (c *Config) serverHosts() map[string]bool {
	names := map[string]bool{}
	for _, host := range c.TLS.ACME.Hosts {
		names[host] = true
	}
	addresses := slices.Collect(maps.Values(c.Passive.PublicAddressByNetwork))
	for _, address := range append(addresses, c.Passive.PublicAddress) {
		for replica, host := range address.hosts {
			for i := range max(c.Cluster.Replicas, 1) {
				names[strings.ReplaceAll(host, replicaMark, strconv.Itoa(max(replica, i)))] = true
			}
		}
	}
	text, _ := os.ReadFile(c.TLS.CertFile) // checked before; "" does not exist
	if block, _ := pem.Decode(text); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			for _, name := range cert.DNSNames {
				names[strings.ToLower(name)] = true // *.example.com is never a host
			}
		}
	}
	return names
}
