package account

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// Errors of ChangePassword of a [Backend].
var (
	ErrPasswordInvalid   = errors.New("the new password contains control characters or is not UTF-8")
	ErrPasswordTooShort  = errors.New("the new password is too short")
	ErrPasswordTooWeak   = errors.New("the new password is too easy to guess")
	ErrPasswordElsewhere = errors.New("the service in auth has the password")
	ErrPasswordFixed     = errors.New("the server cannot store a new password")
	ErrPasswordNotStored = errors.New("the new password was not stored")
)

// errNoPasswordPermission is returned to users without the permission.
var errNoPasswordPermission = fmt.Errorf("%w: permissions lacks password", fs.ErrPermission)

// maxReloadWait limits the time for which ChangePassword waits for the server to read the changed file.
const maxReloadWait = 5 * time.Second

// ReadPassword decodes a new password that the client has sent. It returns false if the password is in an unknown
// charset or contains control characters, with which the user might not be able to log in.
func (l *Login) ReadPassword(sent string) (password string, ok bool) {
	password = decode(sent, l.Compatibility.Charset)
	return password, utf8.ValidString(password) && !strings.ContainsFunc(password, unicode.IsControl)
}

// ChangePassword implements [Backend]. It stores the hash of the new password in the store of the tenant, and waits
// until the server has read it, so that the user can log in with the new password at once. Sessions of
// the user go on.
func (r *Registry) ChangePassword(ctx context.Context, login *Login, req *LoginRequest, password string) error {
	addr, who := netaddr.Of(req.RemoteAddr), r.identify(req)
	u := cmp.Or(who.user, login.User)
	switch {
	case !u.Tenant.MayChangePassword(u.User):
		return errNoPasswordPermission
	case who.usesService():
		return ErrPasswordElsewhere
	case who.user == nil || u.owner() != login.owner():
		return fmt.Errorf("%w: the user was removed from the configuration", ErrPasswordFixed)
	case u.PasswordHash.Empty():
		return fmt.Errorf("%w: the user has none, and logs in with a certificate", ErrPasswordFixed)
	}
	place, err := u.placeOfPassword(ctx)
	if err == nil {
		err = checkNewPassword(u.Name, req.Password, password)
	}
	if err != nil {
		return err
	}
	switch _, err := r.admit(ctx, addr, who, req, req.Limits.Login()); {
	case errors.Is(err, errReplaced):
		return fmt.Errorf("%w: %w", ErrPasswordNotStored, err)
	case err != nil:
		return err
	}
	// The client may disconnect now, and the change is completed nevertheless.
	ctx = context.WithoutCancel(ctx)
	slot, err := r.verifier.queue.Acquire(ctx, schedule.Key{Member: limits.Network(addr).String()})
	if err != nil {
		return err
	}
	hash, err := passwordhash.New(password)
	slot.Release()
	if err != nil {
		return err
	}
	change := usersfile.Rehash{User: u.Name, Old: u.PasswordHash.Reveal(), New: hash}
	switch changed, err := u.Tenant.store.SetPassword(ctx, place, change); {
	case err != nil:
		return fmt.Errorf("%w: %v", ErrPasswordNotStored, err) //nolint:errorlint // its kind must not choose the reply
	case !changed:
		return fmt.Errorf("%w: %s was changed at the same time", ErrPasswordNotStored, place)
	}
	about := []any{"tenant", u.Tenant.Name, "user", u.Name, string(place.Kind), place.Name}
	r.log.Info("user changed the password", about...)
	login.passwordChanged = true
	if !r.awaitReload(ctx, u) {
		r.log.Warn("new password not in use yet, because the server has not read it; check the log for an invalid configuration",
			about...)
	}
	return nil
}

// MustChangePassword reports whether the user may do nothing but change the password. It is false as soon as the user
// has changed it, also in another session.
func (l *Login) MustChangePassword() bool {
	return l.User.MustChangePassword && !l.passwordChanged &&
		(l.current == nil || l.current().MustChangePassword)
}

// now returns the user in the configuration in use, or u if the user was removed.
func (r *Registry) now(u *User) *User {
	if t := r.current.Load().tenants[u.Tenant.Name]; t != nil && t.users[u.Name] != nil {
		return t.users[u.Name]
	}
	return u
}

// placeOfPassword returns where the password hash of the user is stored, or an [ErrPasswordFixed] if the server cannot
// change it.
func (u *User) placeOfPassword(ctx context.Context) (usersfile.Place, error) {
	store := u.Tenant.store
	if !store.IsSet() {
		return usersfile.Place{}, fmt.Errorf("%w: the tenant has neither users_store nor users_file", ErrPasswordFixed)
	}
	d, place, err := store.Read(ctx, u.Name)
	switch {
	case errors.Is(err, usersfile.ErrNotFound):
		return place, fmt.Errorf("%w: the user is in users, not in users_file or users_store", ErrPasswordFixed)
	case err != nil:
		return place, fmt.Errorf("%w: %v", ErrPasswordNotStored, err) //nolint:errorlint // see ChangePassword
	}
	err = store.Writable(place)
	if d.Get(u.Name, "password_hash") == "" {
		err = fmt.Errorf("%s: the hash is not in the file itself, but in password_hash_file", place)
	}
	if err != nil {
		return place, fmt.Errorf("%w: %v", ErrPasswordFixed, err) //nolint:errorlint // see ChangePassword
	}
	return place, nil
}

// awaitReload waits until the server uses another password hash of the user, and returns false if that takes too long.
func (r *Registry) awaitReload(ctx context.Context, u *User) bool {
	ctx, cancel := context.WithTimeout(ctx, maxReloadWait)
	defer cancel()
	for {
		r.loginMu.RLock()
		t := r.current.Load().tenants[u.Tenant.Name]
		r.loginMu.RUnlock()
		if t == nil {
			return true // a change has removed the tenant
		}
		if now := t.users[u.Name]; now == nil || now.PasswordHash.Reveal() != u.PasswordHash.Reveal() {
			return true
		}
		select {
		case <-t.replaced:
		case <-ctx.Done():
			return false
		}
	}
}

// MinPassword is the number of characters that a new password must have. NIST SP 800-63B-4 asks for 15 where the
// password is the only factor, and for 8 with a second one.
const MinPassword = 12

// checkNewPassword returns an error if a password is too short or too easy to guess. There are no rules about digits
// and signs, which make people choose worse passwords (NIST SP 800-63B-4, section 3.1.1.2).
func checkNewPassword(user, before, password string) error {
	password = norm.NFC.String(password)
	switch {
	case utf8.RuneCountInString(password) < MinPassword:
		return ErrPasswordTooShort
	case password == norm.NFC.String(before), isGuessable(strings.ToLower(user), strings.ToLower(password)):
		return ErrPasswordTooWeak
	}
	return nil
}

// commonPasswords has a password on each line after the comment.
//
//go:embed commonpasswords.txt
var commonPasswords string

const (
	minDistinct = 5 // characters
	minRuns     = 4 // parts such as abcd, 4321 and 1111
	minBesides  = 8 // characters besides the user name
)

// isGuessable reports whether a password in lower case is a common one with other characters around it, contains little
// more than the user name, or consists of a few runs or of repetitions.
func isGuessable(user, password string) bool {
	core := strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) })
	if core != "" && strings.Contains(commonPasswords, "\n"+core+"\n") {
		return true
	}
	if user != "" && strings.Contains(password, user) &&
		utf8.RuneCountInString(strings.ReplaceAll(password, user, "")) < minBesides {
		return true
	}
	distinct, runs, before, step := map[rune]bool{}, 0, rune(0), rune(0)
	for i, r := range []rune(password) {
		distinct[r] = true
		if next := r - before; i == 0 || next < -1 || next > 1 || step != next && step != 0 {
			runs, step = runs+1, 0
		} else {
			step = next
		}
		before = r
	}
	// A text that consists of repetitions occurs in its double at another place than the beginning and the middle.
	repeats := strings.Index((password + password)[1:], password) < len(password)-1
	return len(distinct) < minDistinct || runs < minRuns || repeats
}
