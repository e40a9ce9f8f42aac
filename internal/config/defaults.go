package config

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Defaults for keys that are not set. They are not part of Default, because they depend on other keys.
const (
	// DefaultFile is the configuration file that is used without --config.
	DefaultFile = "/etc/babelftp/babelftp.yaml"
	// DefaultMetricsListen is the default address of metrics and probes.
	DefaultMetricsListen = "127.0.0.1:9121"
	// DefaultAdminSocket is the default socket by which commands connect to a running server.
	DefaultAdminSocket = "/run/babelftp/admin/admin.sock"
)

// fillIn sets the defaults of keys that depend on other keys. A default must never make a configured key invalid.
func (c *Config) fillIn(given yamlconf.Positions) {
	missing := func(keys ...string) bool { return !given.IsSet(keys) }
	if missing("metrics_listen") && !c.uses(DefaultMetricsListen) {
		c.MetricsListen = DefaultMetricsListen
	}
	if missing("admin_socket") {
		c.AdminSocket, c.OptionalSocket = DefaultAdminSocket, true
	}
	c.Limits.FailedLoginDelay = min(defaultFailedLoginDelay, c.Limits.LoginTimeout/2)
	if c.Limits.Address.Sessions == 0 { // addresses do not identify clients
		c.Limits.FailedLoginDelay = 0
	}
	if missing("memory") {
		c.Memory = max(c.Memory, partsInMemory*c.PartSize)
	}
	c.trust()
	c.Auth.fillIn(c.Limits.LoginTimeout)
	for _, t := range c.Tenants {
		c.fillInTenant(t)
	}
}

// fillInTenant sets the defaults of keys of a tenant that depend on other keys.
func (c *Config) fillInTenant(t *Tenant) {
	if t.Resume == "" && c.AbandonedUploads > 0 && !t.usesDirectoryBucket(c) {
		t.Resume, t.ResumeByDefault = KeepInterrupted, true
	}
	t.Auth.fillIn(c.Limits.LoginTimeout)
}

// trust sets the CA file of every service that the server calls: the one of the tenant, or else of the server.
func (c *Config) trust() {
	if c.TLS.ACME.IsSet() {
		c.TLS.ACME.CAFile = c.CAFile
	}
	c.Audit.Webhook.trust(c.CAFile)
	c.Auth.trust(c.CAFile)
	c.Admin.OIDC.trust(c.CAFile)
	for _, t := range c.Tenants {
		c.trustTenant(t)
	}
}

// trustTenant sets the CA file of the services of a tenant.
func (c *Config) trustTenant(t *Tenant) {
	file := cmp.Or(t.CAFile, c.CAFile)
	t.Auth.trust(file)
	t.Webhook.trust(file)
	t.Inspect.Hook.trust(file)
}

// partsInMemory is the number of parts that fit into the default memory of a large part_size. A part may take at most
// nine sixteenths of the memory.
const partsInMemory = 2

// uses reports whether another listener uses the port of this address.
func (c *Config) uses(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	for _, other := range []string{
		c.Listen, c.TLS.ImplicitListen, c.TLS.ACME.HTTPListen, c.TLS.ACME.TLSListen, c.Admin.Listen,
	} {
		if strings.HasSuffix(other, ":"+port) {
			return true
		}
	}
	return c.Passive.Ports.Contains(defaultMetricsPort)
}

const defaultMetricsPort = 9121 // the port in DefaultMetricsListen

// usesDirectoryBucket reports whether the tenant has files in a directory bucket (S3 Express), where interrupted
// uploads cannot be found.
func (t *Tenant) usesDirectoryBucket(c *Config) bool {
	buckets := []string{t.Bucket}
	for _, f := range t.Folders {
		buckets = append(buckets, f.Bucket)
	}
	return slices.ContainsFunc(c.storagesOf(t), func(s S3) bool { return s.Profile == "aws-directory" }) ||
		slices.ContainsFunc(buckets, func(name string) bool { return strings.HasSuffix(name, "--x-s3") })
}
