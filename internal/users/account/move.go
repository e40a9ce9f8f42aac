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

// errAlreadyStored means that another login or another replica has stored the user in the meantime.
var errAlreadyStored = errors.New("the user already exists")

// move stores a user in the users_file of the tenant after the old FTP server has verified the password, which is
// stored as a hash. It returns the address of that server, or an empty string if nothing was stored. The server
// reloads the file within a second, and from then on the user belongs to the configuration. If the user cannot be
// stored, the login succeeds nevertheless, and the next login asks the old server again.
func (r *Registry) move(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) (from string) {
	from = u.Tenant.Auth.FTP.Address
	about := []any{"tenant", u.Tenant.Name, "user", u.Name, "from", from, "file", u.Tenant.UsersFile}
	switch err := r.storeUser(ctx, client, u, req); {
	case errors.Is(err, errAlreadyStored):
		return ""
	case err != nil:
		r.log.Error("storing a user of the old FTP server in users_file failed; the next login checks the password on that server again",
			append(about, "err", err)...)
		return ""
	}
	r.log.Info("stored a user of the old FTP server in users_file", about...)
	return from
}

func (r *Registry) storeUser(ctx context.Context, client netip.Prefix, u *User, req *LoginRequest) error {
	password, _ := passwordFor(u.Tenant, req)
	// The password is verified, so store the user even if the client disconnects.
	slot, err := r.verifier.queue.Acquire(context.WithoutCancel(ctx), schedule.Key{Member: client.String()})
	if err != nil {
		return err
	}
	defer slot.Release()
	return usersfile.Edit(u.Tenant.UsersFile, func(d *usersfile.Document) error {
		if d.HasSpelling(u.Name) {
			return errAlreadyStored
		}
		hash, err := passwordhash.New(password)
		if err != nil {
			return err
		}
		return addMoved(d, u, hash, time.Now())
	}, func(string, []byte) error {
		next := *u.User
		next.Disabled = true // so that CheckUser does not require a password hash
		return r.current.Load().cfg.CheckUser(u.Tenant.Name, u.Name, &next)
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
