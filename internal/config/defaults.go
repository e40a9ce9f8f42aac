package config

import (
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// What stands for keys that a file leaves out. Default has none of them, because they depend on what the file says, or
// on the machine.
const (
	// DefaultFile is the configuration where --config names no other.
	DefaultFile = "/etc/babelftp/babelftp.yaml"
	// DefaultMetricsListen is where probes and metrics are answered.
	DefaultMetricsListen = "127.0.0.1:9121"
	// DefaultAdminSocket is where the commands look for a running server.
	DefaultAdminSocket = "/run/babelftp/admin/admin.sock"
)

// fillIn gives the keys that a file leaves out the values that go with the others: no default makes a key wrong that
// the file has.
func (c *Config) fillIn(given yamlconf.Positions) {
	missing := func(keys ...string) bool { return !given.Given(keys) }
	if missing("metrics_listen") && !c.uses(DefaultMetricsListen) {
		c.MetricsListen = DefaultMetricsListen
	}
	if missing("admin_socket") {
		c.AdminSocket, c.OptionalSocket = DefaultAdminSocket, true
	}
	c.Limits.FailedLoginDelay = min(defaultFailedLoginDelay, c.Limits.LoginTimeout/2)
	if c.Limits.Address.Sessions == 0 { // addresses do not tell clients apart
		c.Limits.FailedLoginDelay = 0
	}
	if missing("memory") {
		c.Memory = max(c.Memory, partsInMemory*c.PartSize)
	}
	c.trust()
	c.Auth.fillIn(c.Limits.LoginTimeout)
	for _, t := range c.Tenants {
		if t.Resume == "" && c.AbandonedUploads > 0 && !t.usesDirectoryBucket(c) {
			t.Resume, t.ResumeByDefault = KeepInterrupted, true
		}
		t.Auth.fillIn(c.Limits.LoginTimeout)
	}
}

// trust gives all that the server calls the authorities of the tenant, or of the server.
func (c *Config) trust() {
	if c.TLS.ACME.Given() {
		c.TLS.ACME.CAFile = c.CAFile
	}
	c.Audit.Webhook.trust(c.CAFile)
	c.Auth.trust(c.CAFile)
	for _, t := range c.Tenants {
		file := cmp.Or(t.CAFile, c.CAFile)
		t.Auth.trust(file)
		t.Webhook.trust(file)
		t.Inspect.Hook.trust(file)
	}
}

// partsInMemory is how many parts have room in the memory that a large part_size brings with it. One takes nine
// sixteenths at most.
const partsInMemory = 2

// uses reports whether the port of an address is another one's already.
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

const defaultMetricsPort = 9121 // of DefaultMetricsListen

// usesDirectoryBucket reports whether files of the tenant lie in a directory bucket of S3 Express. Interrupted uploads
// cannot be found there.
func (t *Tenant) usesDirectoryBucket(c *Config) bool {
	buckets := []string{t.Bucket}
	for _, f := range t.Folders {
		buckets = append(buckets, f.Bucket)
	}
	return slices.ContainsFunc(c.storagesOf(t), func(s S3) bool { return s.Profile == "aws-directory" }) ||
		slices.ContainsFunc(buckets, func(name string) bool { return strings.HasSuffix(name, "--x-s3") })
}
