package account

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
)

// HashPassword returns the hash of a password that an administrator sets for a user. It waits for its turn among the
// logins, whose hashes share one budget of memory; requests from one client take turns. The error is
// [ErrPasswordTooShort] or [ErrPasswordTooWeak] for a password that users could not choose either.
func (r *Registry) HashPassword(ctx context.Context, client, user, password string) (string, error) {
	if !utf8.ValidString(password) || strings.ContainsFunc(password, unicode.IsControl) {
		return "", ErrPasswordInvalid
	}
	if err := checkNewPassword(config.NormalizeUser(user), "", password); err != nil {
		return "", err
	}
	slot, err := r.verifier.queue.Acquire(ctx, schedule.Key{Member: client})
	if err != nil {
		return "", err
	}
	defer slot.Release()
	return passwordhash.New(password)
}

// AwaitUser waits until accept returns true for the settings of a user in use, which are nil if the user or the tenant
// does not exist. It returns false if ctx ends first.
func (r *Registry) AwaitUser(ctx context.Context, tenant, user string, accept func(*config.User) bool) bool {
	for {
		r.loginMu.RLock()
		t := r.current.Load().tenants[tenant]
		r.loginMu.RUnlock()
		if t == nil {
			return accept(nil)
		}
		var now *config.User
		if u := t.users[config.NormalizeUser(user)]; u != nil {
			now = u.User
		}
		if accept(now) {
			return true
		}
		select {
		case <-t.replaced:
		case <-ctx.Done():
			return false
		}
	}
}

// Remembered returns the names of the users of a service that the server remembers since their last login, sorted.
func (r *Registry) Remembered(tenant string) (names []string) {
	t := r.current.Load().tenants[tenant]
	if t == nil || t.external == nil {
		return nil
	}
	for _, u := range t.external.snapshot() {
		names = append(names, u.Name)
	}
	slices.Sort(names)
	return names
}

// Tenant returns a tenant in use, or nil.
func (r *Registry) Tenant(name string) *Tenant { return r.current.Load().tenants[name] }

// SampleLogin returns a login of a user without a session, which shows texts of the tenant as its users see them.
func (t *Tenant) SampleLogin(user string) *Login {
	return &Login{User: newUser(t, user, &config.User{}), Usage: func() *Usage { return nil }}
}
