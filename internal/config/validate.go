package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits of S3, see https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html.
const (
	minPartSize = 5 * value.MiB
	maxPartSize = 5 * value.GiB
)

const (
	// maxUploadConcurrency is where more parts at once gain nothing on any network that was seen, but each costs
	// PartSize.
	maxUploadConcurrency = 64
	// maxDownloadConcurrency is where one download would keep the connections that all share to itself.
	maxDownloadConcurrency = 64
	// maxCommitDelay is where users would feel every upload wait.
	maxCommitDelay = time.Second
	// minAbandonedUploads is more than the clocks of S3 and of the servers may differ. Below it a sweep could remove
	// an upload under way.
	minAbandonedUploads = 10 * time.Second
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
	v.server()
	v.tenants()
	v.problems.Sort()
	return v
}

// A validator collects the problems of a configuration whose values have the right types.
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

func (v *validator) server() {
	v.catalogues()
	v.language(yamlconf.Path{"default_language"}, v.cfg.DefaultLanguage)
	v.addresses()
	v.cfg.TLS.Check(yamlconf.Path{"tls"}, v.report)
	v.cfg.S3.Check(yamlconf.Path{"s3"}, slices.Sorted(maps.Keys(v.cfg.Tenants)), v.report)
	v.cfg.ProxyProtocol.Check(yamlconf.Path{"proxy_protocol"}, v.report)
	v.cfg.Cluster.Check(yamlconf.Path{"cluster"}, v.cfg.Listen, v.cfg.Passive.Ports, v.report)
	v.cfg.Admin.Check(yamlconf.Path{"admin"}, v.report)
	v.durations()
	v.cfg.Limits.Check(yamlconf.Path{"limits"}, v.report)
	v.uploads()
	for key, problem := range v.cfg.Audit.Webhook.Problems() {
		v.report(yamlconf.Path{"audit", "webhook", key}, "%s", problem)
	}
	v.cfg.Passive.Check(yamlconf.Path{"passive"}, v.cfg.Cluster.Replicas, v.report)
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
	v.report(
		p, "there is no catalogue for %s: write one that `babelftp languages` shows, or add a catalogue in locales_dir",
		tag)
	return false
}

// addresses checks the addresses to listen on.
func (v *validator) addresses() {
	checkListeners([]listener{
		{Path: yamlconf.Path{"listen"}, Address: v.cfg.Listen, Required: true},
		{Path: yamlconf.Path{"tls", "implicit_listen"}, Address: v.cfg.TLS.ImplicitListen},
		{Path: yamlconf.Path{"tls", "acme", "http_listen"}, Address: v.cfg.TLS.ACME.HTTPListen},
		{Path: yamlconf.Path{"tls", "acme", "tls_listen"}, Address: v.cfg.TLS.ACME.TLSListen},
		{Path: yamlconf.Path{"metrics_listen"}, Address: v.cfg.MetricsListen},
		{Path: yamlconf.Path{"admin", "listen"}, Address: v.cfg.Admin.Listen},
	}, v.cfg.Passive.Ports, v.report)
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
