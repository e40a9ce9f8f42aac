// Package auth asks a directory, an HTTP hook or an old FTP server whether users who are not in the configuration may
// log in, and what they may do.
//
// [New] makes a [Source], which POSTs each login to a hook, binds to a directory as the user, or logs in to the old
// server. Package account decides who is asked, makes clients wait in turns and after failures, and makes a user of the
// answer.
//
// Implemented here:
//
//   - RFC 4511, sections 4.2, 4.5 and 4.14: bind, search and StartTLS
//   - RFC 4513, section 5.1.2: no bind has a name and no password
//   - RFC 959, sections 4.1.1 and 5.4, and RFC 4217, section 4: USER, PASS and AUTH TLS, as a client
//   - RFC 4514 and RFC 4515, section 3: names in distinguished names and filters are escaped
package auth

import (
	"context"
	"errors"
	"time"

	"github.com/babelftp/babelftp/internal/config"
)

// ErrRefused is the error of a [Source], wrapped, for a wrong name or password.
var ErrRefused = errors.New("login refused")

// A Request is a login of a user who is not in the configuration.
type Request struct {
	Tenant    string // that the client has asked for, empty for none
	User      string // without the tenant
	Password  string // never empty
	Address   string // of the client, without the port
	Encrypted bool   // whether the control connection is under TLS
}

// An Answer is what a source says of a user whose password is right.
type Answer struct {
	Tenant string       // of the user, as the source names it; empty where it does not
	User   *config.User // the settings, which have been checked
}

// A Source decides on logins.
type Source interface {
	// Authenticate returns the answer for the right password. Any error but [ErrRefused] means that
	// the source could not decide. No error has a name of a user or a password.
	Authenticate(ctx context.Context, req *Request) (*Answer, error)
}

// New makes the source of a tenant or of the server, nil if there is none. The error says which file cannot be used.
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

// Probe returns an error if no login could ask the source. It asks a hook for nothing, or connects to the server, under
// TLS as a login would, and binds to a directory that it would search. It sends no name and no password of a user.
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
