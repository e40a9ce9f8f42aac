package config

import (
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Hook is an HTTP service that receives each login as JSON and returns the settings of the user.
type Hook struct {
	// URL of the service, `https://` or `http://`. Each login is a POST request.
	URL string `yaml:"url" default:"none"`
	// Bearer token (`Authorization: Bearer`) by which the service authenticates the server.
	Secret value.Secret `yaml:"secret" default:"none"`
	// CAFile has additional CA certificates to trust. It is not a key; it is set from ca_file of the tenant or the
	// server.
	CAFile string
	// Timeout limits a request. It is not a key; Load sets it to less than the login timeout of a session.
	Timeout time.Duration
}

const (
	defaultAuthTimeout = 5 * time.Second
	// maxAuthCache limits how long a user can still log in after the service has removed the user.
	maxAuthCache = 10 * time.Minute
)

func (h *Hook) check(v *validator, p yamlconf.Path) {
	switch {
	case h.URL == "":
		v.report(p.Child("url"), "is missing: write the URL of the service")
	case !isURL(h.URL, "http", "https"): // not shown, because it may contain a password
		v.report(p.Child("url"),
			"is not an HTTP URL: write it like https://auth.example.com/ftp, and use secret for a password")
	}
}
