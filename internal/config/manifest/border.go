package manifest

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config"
)

// border adds what a tenant uses.
func (e *exporter) border(t *config.Tenant) {
	b := &e.result.Border
	for _, host := range t.Hosts {
		b.Hosts = append(b.Hosts, netaddr.NormalizeHost(host))
	}
	e.place(t.S3, t.Bucket, t.Prefix)
	if t.Inspect.Quarantine != "" {
		e.place(t.S3, t.Bucket, t.Inspect.Quarantine)
	}
	for _, f := range t.Folders {
		e.place(f.S3.Inherit(t.S3), cmp.Or(f.Bucket, t.Bucket), f.Prefix)
		if t.Inspect.Quarantine != "" {
			e.place(f.S3.Inherit(t.S3), cmp.Or(f.Bucket, t.Bucket), t.Inspect.Quarantine)
		}
		e.address(f.S3.Endpoint, f.S3.PublicEndpoint)
	}
	e.address(t.S3.Endpoint, t.S3.PublicEndpoint, t.Auth.Hook.URL, t.Webhook.URL, t.Inspect.Clamd, t.Inspect.ICAP,
		t.Inspect.Hook.URL)
	e.address(t.Auth.LDAP.URLs...)
	keys := []string{t.Objects.KMSKeyID}
	for _, r := range t.Objects.Rules {
		keys = append(keys, r.Set.KMSKey)
	}
	if t.S3.AccessKeyID == "" {
		b.ARNs = append(b.ARNs, slices.DeleteFunc(keys, func(key string) bool { return key == "" })...)
	}
}

// place adds a part of a bucket, and the role that reaches it, unless the tenant has its own credentials.
func (e *exporter) place(s config.S3, bucket, prefix string) {
	b := &e.result.Border
	if s.AccessKeyID != "" {
		return
	}
	pattern := bucket
	if prefix != "" {
		pattern += "/" + strings.TrimSuffix(prefix, "/") + "/*"
	}
	b.Buckets = append(b.Buckets, pattern)
	if s.AssumeRole.IsSet() {
		b.ARNs = append(b.ARNs, s.AssumeRole.RoleARN)
	}
}

// address adds addresses without their paths.
func (e *exporter) address(texts ...string) {
	for _, text := range texts {
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			text = u.Scheme + "://" + u.Host
		}
		if text != "" {
			e.result.Border.Addresses = append(e.result.Border.Addresses, text)
		}
	}
}
