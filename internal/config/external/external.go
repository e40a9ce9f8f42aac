// Package external describes services outside of the server that decide on logins: the section auth of a tenant.
package external

import (
	"cmp"
	"net/url"
	"time"

	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Auth is the service that decides on logins of users whom the configuration does not have.
type Auth struct {
	Hook Hook `yaml:"hook"`
}

// Hook is an HTTP service that gets each login in JSON and answers with the settings of the user.
type Hook struct {
	// URL of the service, `https://` or `http://`. Each login is a POST request.
	URL string `yaml:"url" default:"none" since:"0.2.0"`
	// Text that the service gets as `Authorization: Bearer`, to know the server by.
	Secret value.Secret `yaml:"secret" default:"none" since:"0.2.0"`
	// PEM file of the authorities that the certificate of the service may come from.
	CAFile string `yaml:"ca_file" default:"those of the system" since:"0.2.0"`
	// How long the service may take to answer.
	Timeout time.Duration `yaml:"timeout" default:"5s" since:"0.2.0"`
	// How long the same login from the same address needs no further request, up to 10m.
	Cache time.Duration `yaml:"cache" default:"not at all" since:"0.2.0"`
}

const (
	defaultHookTimeout = 5 * time.Second
	// maxHookCache is how long a user whom the service no longer knows may log in.
	maxHookCache = 10 * time.Minute
)

// TimeoutOf is how long the service may take to answer.
func (h *Hook) TimeoutOf() time.Duration { return cmp.Or(h.Timeout, defaultHookTimeout) }

// Given reports whether there is a service.
func (a Auth) Given() bool { return a != Auth{} }

// Check reports what is wrong with the section that p leads to. A service must answer in the time that a session has for its login.
func (a Auth) Check(p yamlconf.Path, loginTimeout time.Duration, report func(p yamlconf.Path, format string, args ...any)) {
	p, h := p.Child("hook"), a.Hook
	if h == (Hook{}) {
		return
	}
	u, err := url.Parse(h.URL)
	switch {
	case h.URL == "":
		report(p.Child("url"), "is missing: write the URL of the service")
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil: // not shown: it may hold a password
		report(p.Child("url"), "is no URL of a service: write it like https://auth.example.com/ftp, and a password as secret")
	}
	if _, err := encryption.Authorities(h.CAFile); err != nil {
		report(p.Child("ca_file"), "%v", err)
	}
	if h.Timeout < 0 || h.TimeoutOf() >= loginTimeout {
		report(p.Child("timeout"), "%s is not between 0s and limits.login_timeout (%s)", h.Timeout, loginTimeout)
	}
	if h.Cache < 0 || h.Cache > maxHookCache {
		report(p.Child("cache"), "%s is not between 0s and %s", h.Cache, maxHookCache)
	}
}
