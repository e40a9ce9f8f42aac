package server

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// accounts gives administrators access to the users of all tenants.
type accounts struct{ s *Server }

var _ admin.Accounts = accounts{}

// Config implements [admin.Accounts].
func (a accounts) Config() *config.Config { return a.s.active.Load().cfg }

// Store implements [admin.Accounts].
func (a accounts) Store(tenant string) (*usersfile.Store, bool) { return a.s.UsersStore(tenant) }

// Remembered implements [admin.Accounts].
func (a accounts) Remembered(tenant string) []string { return a.s.tenants.Remembered(tenant) }

// Hash implements [admin.Accounts].
func (a accounts) Hash(ctx context.Context, client, user, password string) (string, error) {
	return a.s.tenants.HashPassword(ctx, client, user, password)
}

// errNotNoticed is returned if no reload was refused, but the change is not in use either.
var errNotNoticed = errors.New("see the log")

// Await implements [admin.Accounts].
func (a accounts) Await(ctx context.Context, tenant, user string, accept func(*config.User) bool) error {
	err := errNotNoticed
	if check := a.s.opts.CheckFiles; check != nil {
		if refused := check(ctx); refused != nil {
			err = fmt.Errorf("the configuration is invalid; fix it: %w", refused)
			ctx = canceled(ctx)
		}
	}
	if a.s.tenants.AwaitUser(ctx, tenant, user, accept) {
		return nil
	}
	for _, ignored := range a.s.IgnoredUsers() {
		if ignored.Tenant == tenant && ignored.User == config.NormalizeUser(user) {
			err = errors.New(ignored.Reason)
		}
	}
	return err
}

// canceled returns a context that has ended.
func canceled(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// sampleUser is the user in the texts of a tenant.
const sampleUser = "alice"

// Texts implements [admin.Accounts].
func (a accounts) Texts(tenant string, tag language.Tag) (admin.Texts, bool) {
	t := a.s.tenants.Tenant(tenant)
	if t == nil {
		return admin.Texts{}, false
	}
	active := a.s.active.Load()
	locale := reply.NewLocale(reply.Preferences{Bundle: active.bundle, DefaultLanguage: active.cfg.DefaultLanguage})
	locale.SetTenant(reply.PreferencesOf(t, nil), language.Und)
	if found, ok := t.Bundle.Match(tag); ok && tag != language.Und {
		locale.Select(found)
	}
	texts := admin.Texts{
		Tenant: tenant, Language: locale.Tag().String(), Languages: []admin.Language{},
		Greeting:    reply.Greeting(locale, t, nil),
		Login:       append(reply.Greeting(locale, t, t.SampleLogin(sampleUser)), locale.Text(i18n.LoggedIn)),
		LoginFailed: locale.Text(i18n.LoginFailed),
	}
	if texts.Greeting == nil {
		texts.Greeting = []string{locale.Text(i18n.ServiceReady)}
	}
	for _, l := range t.Bundle.Completeness() {
		texts.Languages = append(texts.Languages, admin.Language{Tag: l.Tag.String(), Name: l.Name})
	}
	return texts, true
}
