package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// errMoved says that another login, or another replica, has stored the user.
var errMoved = errors.New("the user is there already")

// move stores a user of the old FTP server, which has accepted the password, in the users_file of the tenant, with a
// hash of the password. It returns the address of that server, empty if nothing was stored. The server reads the
// changed file within a second, and from then on the user is one of the configuration. Where the user cannot be stored,
// the login goes on, and the next one asks the old server again.
func (r *Registry) move(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) (from string) {
	from = u.Tenant.Auth.FTP.Address
	about := []any{"tenant", u.Tenant.Name, "user", u.Name, "from", from, "file", u.Tenant.UsersFile}
	switch err := r.storeUser(ctx, client, u, req); {
	case errors.Is(err, errMoved):
		return ""
	case err != nil:
		r.log.Error("a user of the old FTP server cannot be stored in users_file; the next login asks that server again",
			append(about, "err", err)...)
		return ""
	}
	r.log.Info("a user of the old FTP server is stored in users_file", about...)
	return from
}

func (r *Registry) storeUser(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) error {
	password, _ := passwordFor(u.Tenant, req)
	// The login is decided, so the client may leave.
	slot, err := r.verifier.queue.Enter(context.WithoutCancel(ctx), schedule.Key{Member: client.String()})
	if err != nil {
		return err
	}
	defer slot.Leave()
	return usersfile.Change(u.Tenant.UsersFile, func(d *usersfile.Document) error {
		if d.HasSpelling(u.Name) {
			return errMoved
		}
		hash, err := passwordhash.New(password)
		if err != nil {
			return err
		}
		return addMoved(d, u, hash, time.Now())
	}, func(string, []byte) error {
		next := *u.User
		next.Disabled = true // it needs no hash
		return r.current.Load().cfg.CheckUser(u.Tenant.Name, u.Name, &next)
	})
}

// addMoved adds a user with the settings that the login had.
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
		if err := d.Set(u.Name, s.key, s.value); err != nil {
			return fmt.Errorf("%s: %w", s.key, err)
		}
	}
	return nil
}
