// Package auth authenticates users who are not in the configuration with a directory, an HTTP hook or an old FTP
// server, and returns their settings.
//
// [New] returns the [Source] of a configuration. A hook gets a POST request for each login, a directory gets a bind
// with the name and the password, and an old FTP server gets a login. [Probe] checks that a source can be used,
// without a user's credentials. Package account decides which source is used, queues and throttles the requests, and
// creates the user from the [Response].
//
// Implemented specifications:
//
//   - RFC 4511, sections 4.2, 4.5 and 4.14: bind, search and StartTLS
//   - RFC 4513, section 5.1.2: a bind never has a name without a password
//   - RFC 959, sections 4.1.1 and 5.4, and RFC 4217, section 4: USER, PASS and AUTH TLS, as a client
//   - RFC 4514 and RFC 4515, section 3: escaping in distinguished names and filters
package auth

import (
	"context"
	"errors"
	"time"

	"github.com/babelftp/babelftp/internal/config"
)

// ErrRefused is the error that a [Source] wraps for a wrong name or password.
var ErrRefused = errors.New("login refused")

// A Request is a login of a user outside of the configuration.
type Request struct {
	Tenant    string // the tenant that the client selected, or empty
	User      string // without the tenant
	Password  string // never empty
	Address   string // the client's address, without the port
	Encrypted bool   // whether the control connection uses TLS
}

// A Response is the result of a successful login.
type Response struct {
	Tenant string       // the tenant of the user, if the source names it
	User   *config.User // the validated settings
}

// A Source authenticates users.
type Source interface {
	// Authenticate returns the response for a right password. Errors other than [ErrRefused] mean that the source
	// could not decide. Errors never contain a user name or a password.
	Authenticate(ctx context.Context, req *Request) (*Response, error)
}

// New returns the source of a tenant or of the server, or nil if none is configured. It fails if a file, such as a CA
// certificate, cannot be read.
func New(cfg *config.Auth) (Source, error) {
	switch {
	case cfg.Hook.URL != "":
		hook, err := newHook(&cfg.Hook)
		return withCache(hook, cfg.Cache, err)
	case len(cfg.LDAP.URLs) > 0:
		directory, err := newDirectory(cfg)
		return withCache(directory, cfg.Cache, err)
	case cfg.UsesFTP():
		return newOldServer(cfg)
	}
	return nil, nil
}

// Probe checks that a source can be used for logins. It sends a HEAD request to a hook, or connects to the server
// like a login, including TLS and, for a directory that is searched, the bind of the search account. It sends no user
// name and password.
func Probe(ctx context.Context, cfg *config.Auth) error {
	switch {
	case cfg.Hook.URL != "":
		hook, err := newHook(&cfg.Hook)
		if err != nil {
			return err
		}
		return hook.probe(ctx)
	case len(cfg.LDAP.URLs) > 0:
		directory, err := newDirectory(cfg)
		if err != nil {
			return err
		}
		return directory.probe(ctx)
	case cfg.UsesFTP():
		old, err := newOldServer(cfg)
		if err != nil {
			return err
		}
		return old.probe(ctx)
	}
	return nil
}

func withCache(s Source, ttl time.Duration, err error) (Source, error) {
	if err != nil || ttl == 0 {
		return s, err
	}
	return newCache(s, ttl), nil
}
