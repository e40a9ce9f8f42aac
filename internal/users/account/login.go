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

// A Login is the result of a successful login.
type Login struct {
	*User
	// Certificate is the subject of the verified client certificate, or empty.
	Certificate string
	// Compatibility is the combination of the settings of the user, the network of the client and the tenant.
	Compatibility config.Compatibility
	// MixedCharset reports whether a charset is set for the tenant, but not for the user or the network.
	MixedCharset bool
	// TLSRequired reports whether data connections must be encrypted.
	TLSRequired bool
	// NoPassword reports whether the user logged in with a certificate alone.
	NoPassword bool
	// MovedFrom is the address of the old FTP server that verified the password, if this login stored the user in
	// users_file, or stores it in the shared state.
	MovedFrom       string
	passwordChanged bool         // by this session
	current         func() *User // in the configuration in use; nil in tests

	// LastLogin is the time of the previous login, or zero if it is unknown.
	LastLogin time.Time
	// Scopes are the limits of the server, the address, the tenant and the user.
	Scopes limits.Scopes
	// View is the part of the storage that the user sees.
	View *view.View
	// Usage returns the usage of the quota with the least space left, or nil if no quota applies.
	Usage func() *Usage
	// MemoryContended reports whether others wait for memory that uploads of this user hold or may request. It is nil
	// if memory is not limited.
	MemoryContended func() bool
	// End must be called once, when the user logs out or the session ends. It may be nil.
	End func()
}

// Files returns the user's view of the storage for one command of a client. Operations stop when ctx is done. note receives the
// events that belong to the outcome of the command.
func (l *Login) Files(ctx context.Context, client Client, note func(view.Note)) *view.Files {
	ctx = InTenant(ctx, l.Tenant.Name)
	if len(l.Tenant.rules) > 0 {
		ctx = withClient(ctx, client)
	}
	return l.View.For(ctx, note)
}

// NameRules returns how the client encodes file names.
func (l *Login) NameRules() pathname.Rules {
	return pathname.Rules{
		Encoding: l.Compatibility.Charset.Encoding, Mixed: l.MixedCharset, DirectoryEncodings: l.DirectoryEncodings,
		Normalization: l.Compatibility.NormalizationOf(), Backslash: l.Compatibility.BackslashOf(),
	}
}

// errReplaced is returned by a login to a tenant that a configuration change has replaced. The login is retried with
// the new tenant.
var errReplaced = errors.New("the tenant was replaced")

// RequiresTLS implements [Backend]. For users of a service, the tenant decides. If the tenant is not known before the
// response, TLS is required if any of the possible tenants requires it; see [service].
func (r *Registry) RequiresTLS(req *LoginRequest) bool {
	who := r.identify(req)
	t := who.tenant()
	if t == nil {
		t = who.requested
	}
	if who.user == nil && t == nil && req.Host == "" && r.current.Load().strictTLS {
		return true
	}
	return requiresTLS(who.user, t, req)
}

// requiresTLS reports whether connections of a user must be encrypted. u and t may be nil.
func requiresTLS(u *User, t *Tenant, req *LoginRequest) bool {
	switch {
	case u != nil && u.TLS.Required != nil:
		return *u.TLS.Required
	case t != nil && t.TLS.Required != nil:
		return *t.TLS.Required
	}
	return req.TLSRequired
}

// errUsersUnknown is the reason of an [UnavailableError] as long as the users in the shared state have not been read.
// The login is neither checked nor counted, because the user may exist.
var errUsersUnknown = errors.New("the users in the shared state are not known yet, because S3 does not answer and there is " +
	"no copy in state.folder")

// errTenantsUnknown is the reason of an [UnavailableError] without a tenant, as long as the custom resources have not
// been read.
var errTenantsUnknown = errors.New("the custom resources are not known yet, because the API server of Kubernetes does " +
	"not respond and there is no copy in kubernetes.folder")

// unavailable returns an error if an unknown user may exist, because not all users and tenants could be read yet.
func (d *tenantTable) unavailable(who identity) error {
	if t := d.unknownUsers(who); t != nil {
		return &UnavailableError{Tenant: t, Err: errUsersUnknown}
	}
	if d.cfg.TenantsUnknown && who.user == nil && who.requested == nil {
		return &UnavailableError{Err: errTenantsUnknown}
	}
	return nil
}

// unknownUsers returns the tenant to which an unknown user may belong, because its users could not be read yet, or nil.
func (d *tenantTable) unknownUsers(who identity) *Tenant {
	switch {
	case who.user != nil, who.requested != nil && !who.requested.UsersUnknown:
		return nil
	case who.requested != nil:
		return who.requested
	}
	for _, t := range d.tenants {
		if t.UsersUnknown {
			return t
		}
	}
	return nil
}

// Login implements [Backend].
func (r *Registry) Login(ctx context.Context, req *LoginRequest) (*Login, error) {
	limited := req.Limits.Login() // counted once, even if the login is retried
	for {
		if login, err := r.login(ctx, req, limited); !errors.Is(err, errReplaced) {
			return login, err
		}
	}
}

// login returns errReplaced if the login must be retried. limited is the error of the login rates of the server and
// the address.
func (r *Registry) login(ctx context.Context, req *LoginRequest, limited error) (*Login, error) {
	addr, who := netaddr.Of(req.RemoteAddr), r.identify(req)
	if !req.Encrypted && r.RequiresTLS(req) { // HOST or a reload may have changed the requirement since USER
		return nil, &LoginError{Err: ErrTLSRequired}
	}
	if err := r.current.Load().unavailable(who); err != nil {
		return nil, err
	}
	u, err := r.admit(ctx, addr, who, req, limited)
	if err != nil {
		return nil, err
	}
	if !req.Encrypted && requiresTLS(u, u.Tenant, req) { // known only since the response named the tenant
		return nil, &LoginError{Tenant: u.Tenant.Name, User: u.Name, Err: ErrTLSRequired}
	}
	if why := u.closedReason(time.Now()); why != "" {
		return nil, &LoginError{Tenant: u.Tenant.Name, User: u.Name, Err: &ClosedError{User: u, Limit: why}}
	}
	if u.Tenant.Limits.Tenant.Refuses(addr) || u.limits().Refuses(addr) {
		return nil, limitError(u.Tenant, &limits.Error{Tenant: u.Tenant.Name, Limit: limits.Deny})
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
	release, err := r.begin(req, u, own)
	if err != nil {
		return nil, limitError(u.Tenant, err)
	}
	login := &Login{
		User:        u,
		Certificate: u.Tenant.subject(req.Certificates), Compatibility: compatibility,
		MixedCharset: !u.hasCharset(addr),
		TLSRequired:  requiresTLS(u, u.Tenant, req),
		NoPassword:   who.user != nil && u.needsNoPassword(),
		current:      func() *User { return r.now(u) },
		LastLogin:    r.lastLogins.record(u.stateKey(), time.Now()),
		Scopes:       scopes,
		View:         r.view(u, compatibility, mounts),
		Usage:        func() *Usage { return r.usage(u) },
		End:          release,
	}
	if memory := r.current.Load().files.Memory; memory != nil {
		login.MemoryContended = func() bool { return memory.For(u.Tenant.Name, u.Name).IsContended() }
	}
	if who.usesService() && u.Tenant.Auth.UsesFTP() {
		login.MovedFrom = r.move(ctx, limits.Network(addr), u, req)
	}
	return login, nil
}

// admit returns the user if the password is right and no limit or ban refuses the attempt, and counts failures.
func (r *Registry) admit(
	ctx context.Context, addr netip.Addr, who identity, req *LoginRequest, limited error,
) (*User, error) {
	for _, err := range []error{r.bans.Check(addr, who.id), limited} {
		if err != nil {
			return nil, limitError(nil, err)
		}
	}
	u, err := r.authenticate(ctx, limits.Network(addr), who, req)
	if err != nil {
		switch {
		case errors.Is(err, ErrLoginRefused):
			r.bans.LoginFailed(addr, who.id)
		case r.isReplaced(who): // its service may have failed because it was closed
			return nil, errReplaced
		}
		return nil, who.loginError(err)
	}
	return u, nil
}

// view returns what a client of this user sees of the mounts.
func (r *Registry) view(u *User, client config.Compatibility, mounts view.Mounts) *view.View {
	v := &view.View{
		Mounts: mounts, Policy: u.Policy, Form: client.NormalizationOf().Normalize,
		Printable:   client.ControlCharacters == config.RefuseControlCharacters,
		Deny:        u.deny,
		MaxSize:     u.maxFileSize,
		Directories: u.directories, User: u.Name,
	}
	if u.Tenant.Resumable() {
		v.Owner, v.EndingUploads = u.owner(), &r.endings
	}
	if u.Tenant.events != nil {
		v.Events, v.Skip = u.Tenant.events, u.Tenant.skip
	}
	if name := u.Tenant.VersionsDirectory; name != "" {
		v.Past = view.Past{Dir: "/" + name, Zone: u.Zone(), Policy: u.past}
	}
	return v
}

// begin counts the login and the session of an authenticated user, and registers the session so that a ban of the
// user ends it. It returns the function that releases them.
func (r *Registry) begin(req *LoginRequest, u *User, own limits.Scopes) (release func(), err error) {
	r.loginMu.RLock()
	defer r.loginMu.RUnlock()
	if u.Tenant.isReplaced() {
		return nil, errReplaced
	}
	left, err := r.states.beginSession(u, own)
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
	ends = append(ends, u.directories.BeginSession(), r.sessions.begin(u.Tenant))
	if u.Tenant.events != nil {
		ends = append(ends, u.Tenant.events.Use())
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}, nil
}

// An identity is the result of looking up the user name of a login in the configuration.
type identity struct {
	id        string  // the name that failures are counted for
	requested *Tenant // the tenant that the client requested, or nil
	rules     certificates
	user      *User      // the user in the configuration, or nil
	service   *service   // authenticates names that are not in the configuration; may be nil
	known     bool       // the configuration has the name in some spelling
	host      *HostError // set if the client named a host, for the error of an unknown user
	ambiguous bool       // several tenants have this name, and the client requested none
	name      string     // as passed to the service
}

// usesService reports whether the service authenticates the user.
func (who identity) usesService() bool { return who.user == nil && who.service != nil && !who.known }

// tenant returns the tenant of the user. It is nil if it is unknown or only the response of the service will name it.
func (who identity) tenant() *Tenant {
	switch {
	case who.user != nil:
		return who.user.Tenant
	case who.usesService():
		return who.requested
	}
	return nil
}

// loginError adds the tenant and the user to the error of a login, as far as the log may contain them.
func (who identity) loginError(err error) error {
	if _, isLogin := errors.AsType[*LoginError](err); isLogin {
		return err
	}
	failed, t := LoginError{Err: err}, who.tenant()
	switch {
	case who.user != nil:
		failed.Tenant, failed.User = t.Name, who.user.Name
	case errors.Is(err, ErrLoginRefused): // an unknown user
		switch {
		case err != ErrLoginRefused: //nolint:errorlint // a more specific error is kept
		case who.host != nil:
			failed.Err = who.host
		case who.ambiguous:
			failed.Err = errSeveralTenants
		}
	case t == nil:
		return err
	default:
		failed.Tenant = t.Name // its service could not say whether the user exists
	}
	return &failed
}

// isReplaced reports whether a configuration change has replaced the tenant or the service of a login.
func (r *Registry) isReplaced(who identity) bool {
	if t := who.tenant(); t != nil {
		return t.isReplaced()
	}
	return who.usesService() && r.current.Load().settings.service != who.service
}

const (
	// anyTenant replaces the tenant in an identity if the client requested none.
	anyTenant = "*"
	// maxIdentity is the length, in bytes, up to which an identity is kept in plain text.
	maxIdentity = 128
)

// identify looks up the user name of a login. It sends no request to a service.
//
// Failures are counted for the name that the client requested, whether the user exists or not, so that bans do not
// reveal which users exist. "user" and "user@tenant" count separately unless there is only one tenant. People
// sometimes type their password as a name, so names of unknown users are stored as hashes, and so are long names,
// which a service might know.
func (r *Registry) identify(req *LoginRequest) identity {
	d := r.current.Load()
	addr := netaddr.Of(req.RemoteAddr)
	t, name := d.requestedTenant(addr, req.Host, req.User)
	who := identity{id: Owner(config.FoldUser(name), anyTenant), requested: t, rules: d.certificatesFor(t)}
	if t != nil {
		who.id = Owner(config.FoldUser(name), t.Name)
	}
	who.user, who.service, who.name = d.find(addr, req.Host, req.User), d.serviceFor(req.Host, t, name), name
	who.known, who.host = d.knows(t, name), d.hostError(req)
	who.ambiguous = t == nil && who.user == nil && d.isAmbiguous(req.User)
	if who.user == nil && !who.usesService() || len(who.id) > maxIdentity {
		who.id = r.bans.UnknownUser(who.id)
	}
	return who
}

// hostError returns the error for an unknown user at a virtual host, or nil if the client named no host.
func (d *tenantTable) hostError(req *LoginRequest) *HostError {
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

// limitError wraps the error of an exceeded limit in a [FullError]. The reply is in the language of the tenant.
func limitError(t *Tenant, err error) error {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		return &FullError{Tenant: t, Limit: reached}
	}
	return err
}

// authenticate returns the user if the password is right. It delays clients that have failed before.
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

// abandoned wraps the error of a login whose context was done while it waited.
func abandoned(err error) error { return fmt.Errorf("%w: %w", ErrAbandoned, err) }

// decide verifies the password of a configured user, or asks the service. For a wrong password, the error does not
// contain a user name.
func (r *Registry) decide(
	ctx context.Context, client netip.Prefix, who identity, req *LoginRequest,
) (*User, error) {
	refused := ErrLoginRefused
	var c credential
	passwords := []string{req.Password}
	switch {
	case who.user != nil:
		if err := who.user.verify(req.Certificates); err != nil {
			refused = err
			break // continue as for an unknown user, so that the time does not reveal whether the password is right
		}
		if who.user.needsNoPassword() {
			return who.user, nil
		}
		charset := who.user.compatibilityAt(netaddr.Of(req.RemoteAddr)).Charset
		c, passwords = who.user.credential(), readings(req.Password, charset)
		c.verified = func(password string) { r.rehasher.schedule(ctx, who.user, password) }
	case who.usesService():
		if who.requested == nil {
			// the result does not matter, but the reply must take as long; the policy of the user's tenant decides
			// later
			_ = who.rules.verify(req.Certificates)
		} else if refused = who.requested.verify(req.Certificates); refused != nil {
			break
		}
		var u *User
		u, refused = r.askService(ctx, client, who, req)
		if refused == nil {
			refused = u.verify(req.Certificates)
		}
		if refused == nil || !errors.Is(refused, ErrLoginRefused) {
			return u, refused
		}
	default:
		_ = who.rules.verify(req.Certificates)
	}
	// Refusals of the service also hash the password, so that they do not take less time than refusals of configured
	// users.
	right, err := r.verifier.checkAny(ctx, client, c, passwords)
	switch {
	case err != nil:
		return nil, err
	case !right:
		if err := r.imitateRefusal(ctx, who, req); err != nil {
			return nil, abandoned(err)
		}
		return nil, refused
	}
	return who.user, nil
}
