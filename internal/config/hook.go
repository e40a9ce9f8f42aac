package config

import (
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Hook is an HTTP service that gets each login in JSON and answers with the settings of the user.
type Hook struct {
	// URL of the service, `https://` or `http://`. Each login is a POST request.
	URL string `yaml:"url" default:"none"`
	// Text that the service gets as `Authorization: Bearer`, to know the server by.
	Secret value.Secret `yaml:"secret" default:"none"`
	// CAFile has authorities to trust in addition to those of the system. It is no key: it is that of the tenant or
	// server.
	CAFile string
	// Timeout is how long the service may take to answer: it must do so in the time that a session has for its login.
	// It is no key: Load sets it.
	Timeout time.Duration
}

const (
	defaultAuthTimeout = 5 * time.Second
	// maxAuthCache is how long a user may still log in after the service has removed the user.
	maxAuthCache = 10 * time.Minute
)

func (h *Hook) check(v *validator, p yamlconf.Path) {
	switch {
	case h.URL == "":
		v.report(p.Child("url"), "is missing: write the URL of the service")
	case !isURL(h.URL, "http", "https"): // not shown: it may hold a password
		v.report(p.Child("url"),
			"is no URL of a service: write it like https://auth.example.com/ftp, and a password as secret")
	}
}
