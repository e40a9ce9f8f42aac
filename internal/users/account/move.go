package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// errAlreadyStored means that another login or another replica has stored the user in the meantime.
var errAlreadyStored = errors.New("the user already exists")

// move stores a user in the store of the tenant after the old FTP server has verified the password, which is stored as
// a hash. It returns the address of that server, or an empty string if nothing was stored. The server reloads the users
// within a second, and from then on the user belongs to the configuration. If the user cannot be stored, the login
// succeeds nevertheless, and the next login asks the old server again.
//
// No login waits for the shared state: there, move returns the address, and stores the user in the background.
func (r *Registry) move(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) (from string) {
	from = u.Tenant.Auth.FTP.Address
	if u.Tenant.UsersStore != "" {
		ctx = context.WithoutCancel(ctx)
		panics.Go(func() { r.moveNow(ctx, client, u, req) })
		return from
	}
	if !r.moveNow(ctx, client, u, req) {
		return ""
	}
	return from
}

// moveNow reports whether it has stored the user.
func (r *Registry) moveNow(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) bool {
	about := []any{"tenant", u.Tenant.Name, "user", u.Name, "from", u.Tenant.Auth.FTP.Address}
	if place, err := u.Tenant.store.PlaceOfNew(u.Name); err == nil {
		about = append(about, string(place.Kind), place.Name)
	}
	switch err := r.storeUser(ctx, client, u, req); {
	case errors.Is(err, errAlreadyStored):
		return false
	case err != nil:
		r.log.Error("storing a user of the old FTP server failed; the next login checks the password on that server again",
			append(about, "err", err)...)
		return false
	}
	r.log.Info("stored a user of the old FTP server", about...)
	return true
}

func (r *Registry) storeUser(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) error {
	password, _ := passwordFor(u.Tenant, req)
	// The password is verified, so store the user even if the client disconnects.
	slot, err := r.verifier.queue.Acquire(context.WithoutCancel(ctx), schedule.Key{Member: client.String()})
	if err != nil {
		return err
	}
	defer slot.Release()
	return u.Tenant.store.Edit(context.WithoutCancel(ctx), u.Name, func(d *usersfile.Document) error {
		now := r.current.Load().tenants[u.Tenant.Name]
		if d.HasSpelling(u.Name) || now != nil && now.known[config.FoldUser(u.Name)] {
			return errAlreadyStored
		}
		hash, err := passwordhash.New(password)
		if err != nil {
			return err
		}
		return addMoved(d, u, hash, time.Now())
	})
}

// addMoved adds a user with the settings of the login.
func addMoved(d *usersfile.Document, u *User, hash string, now time.Time) error {
	d.Add(u.Name)
	d.NoteMove(u.Name, u.Tenant.Auth.FTP.Address, now)
	for _, s := range []struct {
		key   string
		value any
		given bool
	}{
		{"password_hash", hash, true},
		{"root", u.Root, u.Root != ""},
		{"home", u.Home, u.Home != ""},
		{"permissions", u.Permissions, u.Permissions != nil},
		{"path_permissions", u.PathPermissions, u.PathPermissions != nil},
		{"language", u.User.Language.String(), u.User.Language != language.Und},
		{"quota", u.Quota.String(), u.Quota != 0},
	} {
		if !s.given {
			continue
		}
		if err := d.Set(u.Name, s.value, s.key); err != nil {
			return fmt.Errorf("%s: %w", s.key, err)
		}
	}
	return nil
}
