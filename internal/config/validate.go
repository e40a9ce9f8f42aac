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

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits of S3, see https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html.
const (
	minPartSize = 5 * value.MiB
	maxPartSize = 5 * value.GiB
)

const (
	// maxUploadConcurrency is where more parts at once gain nothing on any network that was seen, but each costs PartSize.
	maxUploadConcurrency = 64
	// maxDownloadConcurrency is where one download would keep the connections that all share to itself.
	maxDownloadConcurrency = 64
	// maxCommitDelay is where users would feel every upload wait.
	maxCommitDelay = time.Second
	// minAbandonedUploads is more than the clocks of S3 and of the servers may differ. Below it a sweep could remove an upload under way.
	minAbandonedUploads = 10 * time.Second
)

// Validate checks a configuration that was not loaded. What is wrong is returned as [Problems].
func (c *Config) Validate() error {
	if problems := c.validate(); len(problems) > 0 {
		return problems
	}
	return nil
}

func (c *Config) validate() Problems {
	v := &validator{cfg: c}
	v.server()
	v.tenants()
	v.problems.Sort()
	return v.problems
}

// A validator collects the problems of a configuration whose values have the right types.
type validator struct {
	cfg      *Config
	bundle   *i18n.Bundle // nil when the catalogues are broken
	problems Problems
}

// report adds a problem with the value that p leads to, unless one was found already with it or with what holds it.
func (v *validator) report(p yamlconf.Path, format string, args ...any) {
	if problem := v.cfg.positions.Problem(p, fmt.Sprintf(format, args...)); problem != nil {
		v.problems = append(v.problems, problem)
	}
}

func (v *validator) server() {
	v.catalogues()
	v.language(yamlconf.Path{"default_language"}, v.cfg.DefaultLanguage)
	v.addresses()
	v.cfg.TLS.Check(yamlconf.Path{"tls"}, v.report)
	v.cfg.S3.Check(yamlconf.Path{"s3"}, slices.Sorted(maps.Keys(v.cfg.Tenants)), v.report)
	v.durations()
	v.limits()
	v.uploads()
	for key, problem := range v.cfg.Audit.Webhook.Problems() {
		v.report(yamlconf.Path{"audit", "webhook", key}, "%s", problem)
	}
	if addr := v.cfg.Passive.PublicAddress; addr.IsValid() && !addr.Unmap().Is4() {
		v.report(yamlconf.Path{"passive", "public_address"}, "%s is no IPv4 address: PASV can show no other, and EPSV needs none", addr)
	}
	if v.cfg.MaxFailedLogins < 1 {
		v.report(yamlconf.Path{"max_failed_logins"}, "must be at least 1")
	}
}

// catalogues learns which languages there are.
func (v *validator) catalogues() {
	p := yamlconf.Path{"locales_dir"}
	if dir := v.cfg.LocalesDir; dir != "" {
		if info, err := os.Stat(dir); err != nil {
			v.report(p, "cannot read the catalogues in %s: %v", dir, yamlconf.WithoutPath(err))
			return
		} else if !info.IsDir() {
			v.report(p, "%s is no folder: name the one that holds a folder for each language", dir)
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

// language checks that there is a catalogue for tag, or for its nearest relative, and reports whether there is.
func (v *validator) language(p yamlconf.Path, tag language.Tag) bool {
	if v.bundle == nil {
		return true // not known
	}
	if _, err := v.bundle.Negotiate(tag.String()); err == nil {
		return true
	}
	v.report(p, "there is no catalogue for %s: write one that `babelftp languages` shows, or add a catalogue in locales_dir", tag)
	return false
}

// addresses checks the addresses to listen on, and that no two of them share a port.
func (v *validator) addresses() {
	ports := map[int]yamlconf.Path{}
	for _, a := range []struct {
		path     yamlconf.Path
		address  string
		required bool
	}{
		{yamlconf.Path{"listen"}, v.cfg.Listen, true},
		{yamlconf.Path{"tls", "implicit_listen"}, v.cfg.TLS.ImplicitListen, false},
		{yamlconf.Path{"tls", "acme", "http_listen"}, v.cfg.TLS.ACME.HTTPListen, false},
		{yamlconf.Path{"tls", "acme", "tls_listen"}, v.cfg.TLS.ACME.TLSListen, false},
		{yamlconf.Path{"metrics_listen"}, v.cfg.MetricsListen, false},
	} {
		if a.address == "" && !a.required {
			continue
		}
		_, portText, err := net.SplitHostPort(a.address)
		port, errPort := strconv.ParseUint(portText, 10, 16)
		if err != nil || errPort != nil {
			v.report(a.path, "%q is no address to listen on: write it like :21 or 127.0.0.1:2121", a.address)
			continue
		}
		if port == 0 { // any free one
			continue
		}
		if other, taken := ports[int(port)]; taken {
			v.report(a.path, "port %d is that of %s too: choose another", port, other)
		}
		ports[int(port)] = a.path
		if v.cfg.Passive.Ports.Contains(uint16(port)) {
			v.report(a.path, "port %d lies in passive.ports (%s): choose another, or another range", port, v.cfg.Passive.Ports)
		}
	}
}

func (v *validator) durations() {
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"idle_timeout", v.cfg.IdleTimeout},
		{"data_timeout", v.cfg.DataTimeout},
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

func (v *validator) limits() {
	p, l := yamlconf.Path{"limits"}, v.cfg.Limits
	l.CheckStore(p, v.report)
	v.usage(p, l.Usage)
	v.usage(p.Child("per_address"), l.PerAddress)
	notNegative(v, p.Child("sessions"), l.Sessions)
	notNegative(v, p.Child("sessions_per_address"), l.SessionsPerAddress)
	notNegative(v, p.Child("sessions_before_login"), l.SessionsBeforeLogin)
	notNegative(v, p.Child("sessions_before_login_per_address"), l.SessionsBeforeLoginPerAddress)
	notNegative(v, p.Child("command_timeout"), l.CommandTimeout)
	notNegative(v, p.Child("bans").Child("address_score"), l.Bans.AddressScore)
	notNegative(v, p.Child("bans").Child("user_score"), l.Bans.UserScore)
	for key, d := range map[string]time.Duration{"time": l.Bans.Time, "half_life": l.Bans.HalfLife} {
		if d <= 0 {
			v.report(p.Child("bans").Child(key), "must be longer than 0")
		}
	}
	if l.LoginTimeout <= 0 {
		v.report(p.Child("login_timeout"), "must be longer than 0")
	}
	if l.FailedLoginDelay < 0 || l.FailedLoginDelay >= l.LoginTimeout && l.FailedLoginDelay > 0 {
		v.report(p.Child("failed_login_delay"), "%s is not between 0s and limits.login_timeout (%s): a login that waits must still be in time",
			l.FailedLoginDelay, l.LoginTimeout)
	}
}

// usage checks the numbers; a size is never negative.
func (v *validator) usage(p yamlconf.Path, u limit.Usage) {
	notNegative(v, p.Child("login_rate"), u.LoginRate)
	notNegative(v, p.Child("command_rate"), u.CommandRate)
	notNegative(v, p.Child("transfers"), u.Transfers)
	notNegative(v, p.Child("operations"), u.Operations)
	notNegative(v, p.Child("passive_ports"), u.PassivePorts)
}

func (v *validator) times(p yamlconf.Path, t limit.TimeLimits) {
	notNegative(v, p.Child("idle_timeout"), t.IdleTimeout)
	notNegative(v, p.Child("command_timeout"), t.CommandTimeout)
}

func notNegative[N int | time.Duration](v *validator, p yamlconf.Path, n N) {
	if n < 0 {
		v.report(p, "must be at least 0, which means no limit")
	}
}

func (v *validator) uploads() {
	c := v.cfg
	if c.PartSize < minPartSize || c.PartSize > maxPartSize {
		v.report(yamlconf.Path{"part_size"}, "%s is not between %s and %s, which S3 allows", c.PartSize, minPartSize, maxPartSize)
	}
	if c.Memory < c.PartSize {
		v.report(yamlconf.Path{"memory"}, "%s has no room for one part of an upload: write at least %s", c.Memory, c.PartSize)
	}
	if c.UploadConcurrency < 1 || c.UploadConcurrency > maxUploadConcurrency {
		v.report(yamlconf.Path{"upload_concurrency"}, "must be between 1 and %d", maxUploadConcurrency)
	}
	if c.DownloadConcurrency < 1 || c.DownloadConcurrency > maxDownloadConcurrency {
		v.report(yamlconf.Path{"download_concurrency"}, "must be between 1 and %d", maxDownloadConcurrency)
	}
	if c.AbandonedUploads != 0 && c.AbandonedUploads < minAbandonedUploads {
		v.report(yamlconf.Path{"abandoned_uploads"}, "must be at least %s, or 0 to remove none", minAbandonedUploads)
	}
}
