package web

import (
	"errors"
	"net/http"
	"net/url"
	"time"
)

// NewClient makes a client that follows no redirect, because another server must not get what a request has: a file, a
// password or names. It asks through the proxy that the environment names (HTTPS_PROXY, HTTP_PROXY, NO_PROXY), but not
// for localhost. A timeout of 0 is none.
func NewClient(transport *http.Transport, timeout time.Duration) *http.Client {
	transport.Proxy = http.ProxyFromEnvironment
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// WithoutURL is the error of a client without the URL, whose query may hold a key.
func WithoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
