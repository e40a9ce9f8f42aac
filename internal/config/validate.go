package config

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits of S3, see https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html.
const (
	minPartSize = 5 * bytesize.MiB
	maxPartSize = 5 * bytesize.GiB
)

const (
	// minAbandonedUploads is more than the clocks of S3 and of the servers may differ. Below it a sweep could remove
	// an upload under way.
	minAbandonedUploads = 10 * time.Second
	// maxCommitDelay is where users would feel every upload wait.
	maxCommitDelay = time.Second
)

// Validate checks a configuration that was not loaded. What is wrong is returned as [Problems].
func (c *Config) Validate() error {
	if v := c.validate(); len(v.problems) > 0 {
		return v.problems
	}
	return nil
}

func (c *Config) validate() *validator {
	v := &validator{cfg: c}
	v.settings()
	v.tenants()
	v.problems, v.refused = once(v.problems), once(v.refused)
	return v
}

// A validator collects the problems of a configuration whose values have the right types. Each section has a method
// check for its own values, of which some depend on others in cfg. The validator itself checks what several sections
// have, and what concerns all tenants.
type validator struct {
	cfg      *Config
	bundle   *i18n.Bundle // nil when the catalogues are broken
	problems Problems
	refused  Problems // with texts of tenants
}

// report adds a problem with the value that p leads to, unless one was found already with it or with what holds it.
func (v *validator) report(p yamlconf.Path, format string, args ...any) {
	if problem := v.cfg.positions.Problem(p, fmt.Sprintf(format, args...)); problem != nil {
		v.problems = append(v.problems, problem)
	}
}

// refuseEmpty reports a key that is given and restricts nothing, because its list or section is empty.
func (v *validator) refuseEmpty(p yamlconf.Path) {
	if v.cfg.positions.Given(p) {
		v.report(p, "is empty, and so restricts nothing: write a value, or remove the key")
	}
}

// broken reports whether a problem was found with one of the keys below p, so that its value is not known.
func (v *validator) broken(p yamlconf.Path, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return v.cfg.positions.Broken(p.Child(key)) })
}

// once sorts problems, and leaves out those with a default that another tenant has too.
func once(problems Problems) Problems {
	problems.Sort()
	return slices.CompactFunc(problems, func(a, b *yamlconf.Problem) bool { return a.Line > 0 && *a == *b })
}

// settings checks all but the tenants.
func (v *validator) settings() {
	v.catalogues()
	v.language(yamlconf.Path{"default_language"}, v.cfg.DefaultLanguage)
	v.addresses()
	v.cfg.TLS.check(v, yamlconf.Path{"tls"})
	v.cfg.S3.check(v, yamlconf.Path{"s3"}, slices.Sorted(maps.Keys(v.cfg.Tenants)))
	v.cfg.ProxyProtocol.check(v, yamlconf.Path{"proxy_protocol"})
	v.cfg.Cluster.check(v, yamlconf.Path{"cluster"})
	v.cfg.Admin.check(v, yamlconf.Path{"admin"})
	v.authorities(nil, v.cfg.CAFile)
	v.cfg.Auth.checkOfServer(v, yamlconf.Path{"auth"})
	v.durations()
	v.cfg.Limits.check(v, yamlconf.Path{"limits"})
	v.uploads()
	v.cfg.Audit.check(v, yamlconf.Path{"audit"})
	v.cfg.Passive.check(v, yamlconf.Path{"passive"})
}

// catalogues learns which languages there are.
func (v *validator) catalogues() {
	p := yamlconf.Path{"locales_dir"}
	if dir := v.cfg.LocalesDir; dir != "" {
		if info, err := os.Stat(dir); err != nil {
			v.report(p, "cannot read the catalogues in %s: %v", dir, yamlconf.WithoutPath(err))
			return
		} else if !info.IsDir() {
			v.report(p, "%s is not a folder: name the one that holds a folder for each language", dir)
			return
		}
	}
	var err error
	if v.bundle, err = v.cfg.Bundle(); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			v.report(p, "%s", line)
		}
	}
}

// addresses reports addresses to listen on that are none, and those that share a port with another one or with data
// connections.
func (v *validator) addresses() {
	data := v.cfg.Passive.Ports
	ports := map[int]yamlconf.Path{}
	for _, l := range []struct {
		path    yamlconf.Path
		address string
	}{
		{yamlconf.Path{"listen"}, v.cfg.Listen},
		{yamlconf.Path{"tls", "implicit_listen"}, v.cfg.TLS.ImplicitListen},
		{yamlconf.Path{"tls", "acme", "http_listen"}, v.cfg.TLS.ACME.HTTPListen},
		{yamlconf.Path{"tls", "acme", "tls_listen"}, v.cfg.TLS.ACME.TLSListen},
		{yamlconf.Path{"metrics_listen"}, v.cfg.MetricsListen},
		{yamlconf.Path{"admin", "listen"}, v.cfg.Admin.Listen},
	} {
		if l.address == "" && l.path.String() != "listen" {
			continue
		}
		_, portText, err := net.SplitHostPort(l.address)
		port, errPort := strconv.ParseUint(portText, 10, 16)
		if err != nil || errPort != nil {
			v.report(l.path, "%q is not an address to listen on: write it like :21 or 127.0.0.1:2121", l.address)
			continue
		}
		if port == 0 { // any free one
			continue
		}
		if other, taken := ports[int(port)]; taken {
			v.report(l.path, "port %d is that of %s too: choose another", port, other)
		}
		ports[int(port)] = l.path
		if data.Contains(uint16(port)) {
			v.report(l.path, "port %d lies in passive.ports (%s): choose another, or another range", port, data)
		}
	}
}

func (v *validator) durations() {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"idle_timeout", v.cfg.IdleTimeout},
		{"stall_timeout", v.cfg.StallTimeout},
		{"commit_delay", v.cfg.CommitDelay},
		{"drain_timeout", v.cfg.DrainTimeout},
	} {
		if d.value <= 0 {
			v.report(yamlconf.Path{d.key}, "must be longer than 0")
		}
	}
	if v.cfg.CommitDelay > maxCommitDelay {
		v.report(yamlconf.Path{"commit_delay"}, "must be at most %s: uploads wait so long", maxCommitDelay)
	}
}

func (v *validator) uploads() {
	c := v.cfg
	if c.PartSize < minPartSize || c.PartSize > maxPartSize {
		v.report(
			yamlconf.Path{"part_size"}, "%s is not between %s and %s, which S3 allows", c.PartSize, minPartSize,
			maxPartSize)
	}
	if c.Memory < c.PartSize {
		v.report(
			yamlconf.Path{"memory"}, "%s has no room for one part of an upload: write at least %s", c.Memory,
			c.PartSize)
	}
	if c.AbandonedUploads != 0 && c.AbandonedUploads < minAbandonedUploads {
		v.report(yamlconf.Path{"abandoned_uploads"}, "must be at least %s, or 0 to remove none", minAbandonedUploads)
	}
}
