package config

import (
	"cmp"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// AuthServices are what can decide on logins of users whom the configuration does not have.
type AuthServices struct {
	Hook Hook `yaml:"hook"`
	LDAP LDAP `yaml:"ldap" since:"0.2.0"`
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

// Attributes name the attributes of an entry in a directory that have settings of the user. In place of one that
// is missing, the setting of `auth.user` counts.
type Attributes struct {
	// Name of that with the directory that the user sees as `/`.
	Root string `yaml:"root" default:"none" since:"0.2.0"`
	// Name of that with the directory in which a login starts.
	Home string `yaml:"home" default:"none" since:"0.2.0"`
	// Name of that with the size of the quota, such as `10GiB`.
	Quota string `yaml:"quota" default:"none" since:"0.2.0"`
	// Name of that with the language, such as `preferredLanguage` or `locale`. It may be a list like HTTP's
	// Accept-Language (RFC 2798 2.7).
	Language string `yaml:"language" default:"none" since:"0.2.0"`
	// Name of that with the permissions, one in each value.
	Permissions string `yaml:"permissions" default:"none" since:"0.2.0"`
	// Name of that with the groups of the user for `auth.groups`, such as `memberOf`.
	Groups string `yaml:"groups" default:"none" since:"0.2.0"`
}

const (
	defaultAuthTimeout = 5 * time.Second
	// maxAuthCache is how long a user whom the service no longer knows may log in.
	maxAuthCache = 10 * time.Minute
)

// TimeoutOf is how long the service may take to answer.
func (h *Hook) TimeoutOf() time.Duration { return cmp.Or(h.Timeout, defaultAuthTimeout) }

// Given are the keys of the services that there are.
func (s AuthServices) Given() []string {
	var keys []string
	for v, i := reflect.ValueOf(s), 0; i < v.NumField(); i++ {
		if !v.Field(i).IsZero() {
			keys = append(keys, v.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}

// Files are the names of files in the sections.
func (s *AuthServices) Files() []*string { return []*string{&s.Hook.CAFile, &s.LDAP.CAFile} }

// Check reports what is wrong with the sections in that which p leads to. A service must answer in the time that a
// session has for its login.
func (s *AuthServices) Check(p yamlconf.Path, loginTimeout time.Duration, report yamlconf.Report) {
	given := s.Given()
	if len(given) > 1 {
		report(p.Child(given[1]), "is one service too many: a login asks one, keep %s or %s", given[0], given[1])
	}
	for _, key := range given {
		switch key {
		case "hook":
			s.Hook.check(p.Child(key), report)
			checkTimes(p.Child(key), s.Hook.Timeout, s.Hook.TimeoutOf(), s.Hook.Cache, loginTimeout, report)
		case "ldap":
			s.LDAP.check(p.Child(key), report)
			checkTimes(p.Child(key), s.LDAP.Timeout, s.LDAP.TimeoutOf(), s.LDAP.Cache, loginTimeout, report)
		}
	}
}

func (h *Hook) check(p yamlconf.Path, report yamlconf.Report) {
	switch {
	case h.URL == "":
		report(p.Child("url"), "is missing: write the URL of the service")
	case !isURL(h.URL, "http", "https"): // not shown: it may hold a password
		report(
			p.Child(
				"url"), "is no URL of a service: write it like https://auth.example.com/ftp, and a password as secret")
	}
	checkAuthorities(p, h.CAFile, report)
}

// isURL reports whether text is the URL of a host with one of two schemes and without credentials.
func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && strings.Contains(" "+strings.Join(schemes, " ")+" ", " "+u.Scheme+" ") && u.Hostname() != "" &&
		u.User == nil
}

func checkAuthorities(p yamlconf.Path, name string, report yamlconf.Report) {
	if _, err := Authorities(name); err != nil {
		report(p.Child("ca_file"), "%v", err)
	}
}

// checkTimes checks the timeout as it is written and as it is in effect, and the time of the cache.
func checkTimes(p yamlconf.Path, written, timeout, cache, loginTimeout time.Duration, report yamlconf.Report) {
	if written < 0 || timeout >= loginTimeout {
		report(p.Child("timeout"), "%s is not between 0s and limits.login_timeout (%s)", written, loginTimeout)
	}
	if cache < 0 || cache > maxAuthCache {
		report(p.Child("cache"), "%s is not between 0s and %s", cache, maxAuthCache)
	}
}
