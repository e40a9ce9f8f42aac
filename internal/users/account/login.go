package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A Login is an accepted user.
type Login struct {
	*User
	// Certificate is the subject of the client's certificate, which is valid; empty without one.
	Certificate string
	// Compatibility is how the client is treated: as the user, the network and the tenant say.
	Compatibility config.Compatibility
	// MixedCharset reports that neither the user nor the network has a charset, but the whole tenant has one.
	MixedCharset bool
	// TLSRequired says that data connections must be encrypted.
	TLSRequired bool
	// NoPassword says that the certificate was enough.
	NoPassword bool
	// MovedFrom is the old FTP server that has accepted the password, if this login has stored the user, else empty.
	MovedFrom string
	// LastLogin is when the user logged in before, zero where that is not known.
	LastLogin time.Time
	// Scopes are those of the request, of the tenant and of the user.
	Scopes limits.Scopes
	// View is what the user sees of the storage.
	View *view.View
	// Usage returns how much is used of the quota that is in force and has the least room, nil without a quota.
	Usage func() *Usage
	// Scarce tells whether others wait for memory that uploads of this user hold, or may hold; nil where that is not
	// known.
	Scarce func() bool
	// End is called once, when the user has logged out or the session has ended; nil where nothing waits for it.
	End func()
}

// Files returns what the user sees of the storage for a command. The end of ctx ends its operations. note gets what
// they ask, for the outcome of the command.
func (l *Login) Files(ctx context.Context, note func(view.Note)) *view.Files {
	return l.View.For(InTenant(ctx, l.Tenant.Name), note)
}

// NameRules say how the client writes names.
func (l *Login) NameRules() pathname.Rules {
	return pathname.Rules{
		Encoding: l.Compatibility.Charset.Encoding, Mixed: l.MixedCharset, DirectoryEncodings: l.DirectoryEncodings,
		Normalization: l.Compatibility.NormalizationOf(), Backslash: l.Compatibility.BackslashOf(),
	}
}

// errReplaced is for a login to a tenant that a change has replaced meanwhile.
var errReplaced = errors.New("the tenant was replaced")

// RequiresTLS implements [Backend]. The tenant decides for users of a hook or directory. Where only the answer will
// name the tenant, the strictest one does: see [service].
func (r *Registry) RequiresTLS(req *LoginRequest) bool {
	who := r.identify(req)
	t := who.tenant()
	if t == nil {
		t = who.asked
	}
	if who.user == nil && t == nil && req.Host == "" && r.current.Load().strictTLS {
		return true
	}
	return requiresTLS(who.user, t, req)
}

// requiresTLS tells whether connections of a user of a tenant, which may both be nil, must be encrypted.
func requiresTLS(u *User, t *Tenant, req *LoginRequest) bool {
	switch {
	case u != nil && u.TLS.Required != nil:
		return *u.TLS.Required
	case t != nil && t.TLS.Required != nil:
		return *t.TLS.Required
	}
	return req.TLSRequired
}

// Login implements [Backend].
func (r *Registry) Login(ctx context.Context, req *LoginRequest) (*Login, error) {
	limited := req.Limits.Login() // once, however often the tenant is replaced
	for {
		if login, err := r.login(ctx, req, limited); !errors.Is(err, errReplaced) {
			return login, err
		}
	}
}

// login returns errReplaced where the login must begin again. limited is the error of the rates of the server and of
// the address.
func (r *Registry) login(ctx context.Context, req *LoginRequest, limited error) (*Login, error) {
	addr, who := netaddr.Of(req.RemoteAddr), r.identify(req)
	if !req.Encrypted && r.RequiresTLS(req) { // since USER, by HOST or a reload
		return nil, &LoginError{Err: ErrTLSRequired}
	}
	for _, err := range []error{r.bans.Check(addr, who.id), limited} {
		if err != nil {
			return nil, full(nil, err)
		}
	}
	u, err := r.authenticate(ctx, limits.Network(addr), who, req)
	if err != nil {
		switch {
		case errors.Is(err, ErrLoginRefused):
			r.bans.LoginFailed(addr, who.id)
		case r.isReplaced(who): // and the service with it, which may have failed
			return nil, errReplaced
		}
		return nil, who.failed(err)
	}
	if !req.Encrypted && requiresTLS(u, u.Tenant, req) { // since the answer has named the tenant
		return nil, &LoginError{Tenant: u.Tenant.Name, User: u.Name, Err: ErrTLSRequired}
	}
	if why := u.closed(time.Now()); why != "" {
		return nil, &LoginError{Tenant: u.Tenant.Name, User: u.Name, Err: &ClosedError{User: u, Limit: why}}
	}
	if u.Tenant.Limits.Tenant.Refuses(addr) || u.limits().Refuses(addr) {
		return nil, full(u.Tenant, &limits.Error{Tenant: u.Tenant.Name, Limit: limits.Deny})
	}
	own := limits.Scopes{u.Tenant.state.scope, u.state.scope}
	scopes := slices.Concat(req.Limits, own)
	compatibility := u.compatibilityAt(addr)
	mounts, err := r.mounts(ctx, u, compatibility, req, scopes)
	if err != nil {
		if u.Tenant.isReplaced() {
			err = errReplaced
		}
		return nil, err
	}
	leave, err := r.enter(req, u, own)
	if err != nil {
		return nil, full(u.Tenant, err)
	}
	login := &Login{
		User:        u,
		Certificate: u.Tenant.subject(req.Certificates), Compatibility: compatibility,
		MixedCharset: !u.hasCharset(addr),
		TLSRequired:  requiresTLS(u, u.Tenant, req),
		NoPassword:   who.user != nil && u.needsNoPassword(),
		LastLogin:    u.state.loggedIn(time.Now()),
		Scopes:       scopes,
		View:         r.view(u, compatibility, mounts),
		Usage:        func() *Usage { return r.usage(u) },
		End:          leave,
	}
	if memory := r.current.Load().files.Memory; memory != nil {
		login.Scarce = func() bool { return memory.For(u.Tenant.Name, u.Name).Scarce() }
	}
	if who.asks() && u.Tenant.Auth.UsesFTP() {
		login.MovedFrom = r.move(ctx, limits.Network(addr), u, req)
	}
	return login, nil
}

// view is what a client of a user sees of these mounts.
func (r *Registry) view(u *User, client config.Compatibility, mounts view.Mounts) *view.View {
	v := &view.View{
		Mounts: mounts, Policy: u.Policy, Form: client.NormalizationOf().Normalize,
		Printable:   client.ControlCharacters == config.RefuseControlCharacters,
		Deny:        u.deny,
		MaxSize:     u.maxFileSize,
		Directories: u.directories, User: u.Name,
	}
	if u.Tenant.Resumable() {
		v.Owner, v.Endings = u.owner(), &r.endings
	}
	if u.Tenant.events != nil {
		v.Events, v.Skip = u.Tenant.events, u.Tenant.skip
	}
	if name := u.Tenant.VersionsDirectory; name != "" {
		v.Past = view.Past{Dir: "/" + name, Zone: u.zone(), Policy: u.past}
	}
	return v
}

// enter counts the login and the session of a user who has shown the right password, and lets a ban of the user cut it.
func (r *Registry) enter(req *LoginRequest, u *User, own limits.Scopes) (leave func(), err error) {
	r.entering.RLock()
	defer r.entering.RUnlock()
	if u.Tenant.isReplaced() {
		return nil, errReplaced
	}
	left, err := r.states.enter(u, own)
	if err != nil {
		return nil, err
	}
	ends := []func(){left}
	if req.Session != nil {
		loggedOut, err := r.bans.LogIn(req.Session, u.owner())
		if err != nil {
			left()
			return nil, err
		}
		ends = append(ends, loggedOut, req.Limits.LogIn())
	}
	ends = append(ends, u.directories.Enter(), r.sessions.begin(u.Tenant))
	if u.Tenant.events != nil {
		ends = append(ends, u.Tenant.events.Use())
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}, nil
}

// An identity is the user that a login names.
type identity struct {
	id      string  // what failures count for
	asked   *Tenant // the one that the client has asked for, nil for none
	rules   certificates
	user    *User      // of the configuration, nil for others
	service *service   // decides on names that the configuration does not have, nil if there is no service
	known   bool       // the configuration knows the name
	host    *HostError // why no other tenant is asked; nil if the client has named no host
	several bool       // several tenants have the name, and the client has named none
	name    string     // for the service
}

// asks tells whether the service decides.
func (who identity) asks() bool { return who.user == nil && who.service != nil && !who.known }

// tenant is that of the user, or nil where there is none, or only the answer of the service will name it.
func (who identity) tenant() *Tenant {
	switch {
	case who.user != nil:
		return who.user.Tenant
	case who.asks():
		return who.asked
	}
	return nil
}

// failed is the error of a login that was not accepted, with the tenant and the user, as far as the log may have them.
func (who identity) failed(err error) error {
	if _, told := errors.AsType[*LoginError](err); told {
		return err
	}
	failed, t := LoginError{Err: err}, who.tenant()
	switch {
	case who.user != nil:
		failed.Tenant, failed.User = t.Name, who.user.Name
	case errors.Is(err, ErrLoginRefused): // an unknown user
		switch {
		case err != ErrLoginRefused: //nolint:errorlint // a more exact error stays
		case who.host != nil:
			failed.Err = who.host
		case who.several:
			failed.Err = errSeveralTenants
		}
	case t == nil:
		return err
	default:
		failed.Tenant = t.Name // whose service does not know whether there is such a user
	}
	return &failed
}

// isReplaced reports whether a change has replaced the tenant that a login names, or the service that it asks.
func (r *Registry) isReplaced(who identity) bool {
	if t := who.tenant(); t != nil {
		return t.isReplaced()
	}
	return who.asks() && r.current.Load().settings.service != who.service
}

const (
	// anyTenant is in the place of a tenant where a client has named none.
	anyTenant = "*"
	// maxIdentity is how long a name may be, in bytes, that failures count for as it is.
	maxIdentity = 128
)

// identify finds the user that a login names, and asks no service.
//
// What failures count for is the name that the client has asked for, whether there is such a user or not. So a client
// does not learn from bans who exists. A user who needs no tenant in the name is another one with it, unless there is
// one tenant only. People type passwords as names, so those of unknown users are not kept, and neither are long ones,
// which a service may know.
func (r *Registry) identify(req *LoginRequest) identity {
	d := r.current.Load()
	addr := netaddr.Of(req.RemoteAddr)
	t, name := d.asked(addr, req.Host, req.User)
	who := identity{id: Owner(config.FoldUser(name), anyTenant), asked: t, rules: d.certificatesOf(t)}
	if t != nil {
		who.id = Owner(config.FoldUser(name), t.Name)
	}
	who.user, who.service, who.name = d.find(addr, req.Host, req.User), d.serviceOf(req.Host, t, name), name
	who.known, who.host = d.knows(t, name), d.hostError(req)
	who.several = t == nil && who.user == nil && d.hasSeveral(req.User)
	if who.user == nil && !who.asks() || len(who.id) > maxIdentity {
		who.id = r.bans.UnknownUser(who.id)
	}
	return who
}

// hostError returns the error for an unknown user at a host, nil without a host.
func (d *directory) hostError(req *LoginRequest) *HostError {
	t := d.hosts[netaddr.NormalizeHost(req.Host)]
	if t == nil {
		return nil
	}
	e := &HostError{Host: req.Host, ByTLS: req.HostByTLS, Tenant: t.Name}
	if at := strings.LastIndexByte(req.User, '@'); at >= 0 {
		if named := d.tenants[req.User[at+1:]]; named != nil && named != t {
			e.Named = named.Name
		}
	}
	return e
}

// full is the error of a limit that is reached, with the tenant that has the language of the reply.
func full(t *Tenant, err error) error {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		return &FullError{Tenant: t, Limit: reached}
	}
	return err
}

// authenticate returns the user whose password is right. A client waits after failures.
func (r *Registry) authenticate(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	if err := r.throttle.Wait(ctx, client, who.id); err != nil {
		return nil, abandoned(err)
	}
	u, err := r.decide(ctx, client, who, req)
	switch {
	case errors.Is(err, ErrLoginRefused):
		r.throttle.Failed(client, who.id)
	case err == nil:
		r.throttle.Succeeded(client, who.id)
	}
	return u, err
}

// abandoned is the error of a login whose context has ended while it waited.
func abandoned(err error) error { return fmt.Errorf("%w: %w", ErrAbandoned, err) }

// decide compares the password of a configured user, or asks the service. The error names no user whose password is
// wrong.
func (r *Registry) decide(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	refused := ErrLoginRefused
	var c credential
	passwords := []string{req.Password}
	switch {
	case who.user != nil:
		if err := who.user.accepts(req.Certificates); err != nil {
			refused = err
			break // the login takes the time of an unknown user, whether the password is right or not
		}
		if who.user.needsNoPassword() {
			return who.user, nil
		}
		charset := who.user.compatibilityAt(netaddr.Of(req.RemoteAddr)).Charset
		c, passwords = who.user.credential(), readings(req.Password, charset)
	case who.asks():
		if who.asked == nil {
			_ = who.rules.accepts(req.Certificates) // those of the user's tenant decide, when it is known
		} else if refused = who.asked.accepts(req.Certificates); refused != nil {
			break
		}
		var u *User
		u, refused = r.askService(ctx, client, who, req)
		if refused == nil {
			refused = u.accepts(req.Certificates)
		}
		if refused == nil || !errors.Is(refused, ErrLoginRefused) {
			return u, refused
		}
	default:
		_ = who.rules.accepts(req.Certificates)
	}
	// A refusal of the service comes no sooner than that of a configured user.
	right, err := r.verifier.checkAny(ctx, client, c, passwords)
	switch {
	case err != nil:
		return nil, err
	case !right:
		if err := r.pretend(ctx, who, req); err != nil {
			return nil, abandoned(err)
		}
		return nil, refused
	}
	return who.user, nil
}
