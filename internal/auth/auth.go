// Package auth asks services whether users may log in whom the configuration does not have, and what these users may do.
//
// A [Source] is such a service: [New] makes one that POSTs each login to an HTTP hook. Package tenant decides who is asked, makes
// clients wait in turns and after failures, and makes a user of the answer.
package auth

import (
	"context"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/external"
)

// A Request is a login of a user whom the configuration does not have.
type Request struct {
	Tenant    string
	User      string // without the tenant
	Password  string // never empty
	Address   string // of the client, without the port
	Encrypted bool   // whether the control connection is under TLS
}

// A Source decides on logins.
type Source interface {
	// Authenticate returns the settings of the user, which have been checked. The error is [account.ErrLoginRefused], wrapped, for a
	// wrong name or password. Any other error means that the source could not decide. No error has a name of a user or a password.
	Authenticate(ctx context.Context, req *Request) (*config.User, error)
}

// New makes the source of a tenant, nil if the tenant has none. The error says which file cannot be used.
func New(cfg external.Auth) (Source, error) {
	if cfg.Hook.URL == "" {
		return nil, nil
	}
	hook, err := newHook(&cfg.Hook)
	if err != nil {
		return nil, err
	}
	if cfg.Hook.Cache == 0 {
		return hook, nil
	}
	return newCache(hook, cfg.Hook.Cache), nil
}
