package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"
)

// NewClient returns an HTTP client that does not follow redirects, because requests may contain files, passwords and
// names that another server must not receive. It uses the proxy from the environment (HTTPS_PROXY, HTTP_PROXY,
// NO_PROXY), but not for localhost. A timeout of 0 means no timeout.
func NewClient(transport *http.Transport, timeout time.Duration) *http.Client {
	transport.Proxy = http.ProxyFromEnvironment
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// WithoutURL removes the URL from an error of an HTTP client, because its query may contain a key.
func WithoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
