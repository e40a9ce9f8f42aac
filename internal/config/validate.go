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
	// minAbandonedUploads allows for clock differences between S3 and the servers. With a lower value, an upload in
	// progress could be removed.
	minAbandonedUploads = 10 * time.Second
	// maxCommitDelay limits a delay that users notice in every upload.
	maxCommitDelay = time.Second
)

// Validate validates a configuration that was not loaded. Problems are returned as [Problems].
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
	v.problems, v.invalidTexts = unique(v.problems), unique(v.invalidTexts)
	return v
}

// A validator collects the problems of a configuration. Each section has a method check, which may also depend on
// other sections in cfg. The validator itself checks values that several sections have in common, and everything that
// concerns several tenants.
type validator struct {
	cfg          *Config
	bundle       *i18n.Bundle // nil if the message catalogs are invalid
	problems     Problems
	invalidTexts Problems // invalid message texts of tenants
}

// report adds a problem with the value at p, unless a problem with the value or with a parent was already reported.
func (v *validator) report(p yamlconf.Path, format string, args ...any) {
	if problem := v.cfg.positions.Problem(p, fmt.Sprintf(format, args...)); problem != nil {
		v.problems = append(v.problems, problem)
	}
}

// rejectEmpty reports a list or section that is given but empty, and therefore restricts nothing.
func (v *validator) rejectEmpty(p yamlconf.Path) {
	if v.cfg.positions.IsSet(p) {
		v.report(p, "is empty and restricts nothing: write a value, or remove the key")
	}
}

// broken reports whether the value of one of these keys below p is unknown, because a problem with it was reported.
func (v *validator) broken(p yamlconf.Path, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return v.cfg.positions.Broken(p.Child(key)) })
}

// unique sorts problems and removes duplicates, which occur if several tenants have the same defaults.
func unique(problems Problems) Problems {
	problems.Sort()
	return slices.CompactFunc(problems, func(a, b *yamlconf.Problem) bool { return a.Line > 0 && *a == *b })
}

// settings validates everything except for the tenants.
func (v *validator) settings() {
	v.catalogs()
	v.language(yamlconf.Path{"default_language"}, v.cfg.DefaultLanguage)
	v.addresses()
	v.cfg.TLS.check(v, yamlconf.Path{"tls"})
	v.cfg.S3.check(v, yamlconf.Path{"s3"}, slices.Sorted(maps.Keys(v.cfg.Tenants)))
	v.cfg.ProxyProtocol.check(v, yamlconf.Path{"proxy_protocol"})
	v.cfg.Cluster.check(v, yamlconf.Path{"cluster"})
	v.cfg.Admin.check(v, yamlconf.Path{"admin"})
	v.cfg.Kubernetes.check(v, yamlconf.Path{"kubernetes"})
	v.authorities(nil, v.cfg.CAFile)
	v.cfg.Auth.checkOfServer(v, yamlconf.Path{"auth"})
	v.durations()
	v.cfg.Limits.check(v, yamlconf.Path{"limits"})
	v.uploads()
	v.cfg.State.check(v, yamlconf.Path{"state"})
	v.cfg.Audit.check(v, yamlconf.Path{"audit"})
	v.cfg.Passive.check(v, yamlconf.Path{"passive"})
}

// catalogs loads the message catalogs.
func (v *validator) catalogs() {
	p := yamlconf.Path{"locales_dir"}
	if dir := v.cfg.LocalesDir; dir != "" {
		if info, err := os.Stat(dir); err != nil {
			v.report(p, "cannot read the catalogs in %s: %v", dir, yamlconf.WithoutPath(err))
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

// addresses reports invalid listen addresses, and ports that are used twice or are in the range for data connections.
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
		if port == 0 { // any free port
			continue
		}
		if other, taken := ports[int(port)]; taken {
			v.report(l.path, "port %d is already used by %s: choose another one", port, other)
		}
		ports[int(port)] = l.path
		if data.Contains(uint16(port)) {
			v.report(l.path, "port %d is in passive.ports (%s): choose another port or range", port, data)
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
		v.report(yamlconf.Path{"commit_delay"}, "must be at most %s, because it delays uploads", maxCommitDelay)
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
			yamlconf.Path{"memory"}, "%s is less than one part of an upload: write at least %s", c.Memory,
			c.PartSize)
	}
	if c.AbandonedUploads != 0 && c.AbandonedUploads < minAbandonedUploads {
		v.report(yamlconf.Path{"abandoned_uploads"}, "must be at least %s, or 0 to remove none", minAbandonedUploads)
	}
}
