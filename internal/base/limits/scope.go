package limits

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// An Error reports a limit that is reached. It is a [syscall.EBUSY].
type Error struct {
	Tenant string // empty where the limit is the server's, or an address's
	Limit  string // its key in the configuration
}

// Error is for the log.
func (e *Error) Error() string { return "the limit " + e.Limit + " is reached" }

// Unwrap returns the kind of the error.
func (e *Error) Unwrap() error { return syscall.EBUSY }

// Limits that are not fields of a [Scope].
const (
	LoginTimeout = "login_timeout"
	PassivePorts = "passive.ports"
	Descriptors  = "descriptors" // of the process

	Bans = "bans" // the address or the user is banned
	Deny = "deny" // the address is in a network that is denied

	UserDisabled = "user.disabled" // the user of a session may no longer log in
	UserExpired  = "user.expired"
)

// ServerWide returns the names of all limits that can be reached without a tenant: the limits of the server and of an
// address, and those that are not fields of a [Scope].
func ServerWide() []string {
	names := []string{LoginTimeout, PassivePorts, Descriptors, Bans, Deny}
	for _, scope := range []*Scope{serverScope(Usage{}), newScope("", addressPrefix, Usage{})} {
		names = append(names, scope.limits()...)
	}
	return names
}

// Limits on sessions at the same time that a client can do something about.
const (
	AddressSessions = addressPrefix + sessions
	UserSessions    = userPrefix + sessions
)

// Limits of how many there are in a second. The names of an address's and a user's end so.
const (
	LoginRate   = "login_rate"
	CommandRate = "command_rate"
)

// A Scope is what shares a [Usage]: the server, an address, a tenant or a user. It counts what is in use. The nil
// Scope has no limits. The methods counts and rates list its fields.
type Scope struct {
	tenant                         string
	sessions, transfers, operation slots
	beforeLogin                    slots // sessions, which only the server bounds
	logins, commands               meter
	upload, download               meter // of bytes
}

// Names of scopes begin the names of their limits, as in the configuration: "address.sessions" for example.
const (
	serverPrefix  = "server."
	addressPrefix = "address."
	tenantPrefix  = "tenant."
	userPrefix    = "user."
	sessions      = "sessions"
	operations    = "operations"
)

// sessionsBeforeLogin names the limit on sessions of the server that are not logged in.
const sessionsBeforeLogin = "sessions_before_login"

// NewTenant makes the scope of a tenant.
func NewTenant(name string, u Usage) *Scope { return newScope(name, tenantPrefix, u) }

// NewUser makes the scope of a user of a tenant.
func NewUser(tenant string, u Usage) *Scope { return newScope(tenant, userPrefix, u) }

func newScope(tenant, prefix string, u Usage) *Scope {
	s := &Scope{
		tenant:    tenant,
		sessions:  slots{limit: prefix + sessions, most: u.Sessions},
		transfers: slots{limit: prefix + "transfers", most: u.Transfers},
		operation: slots{limit: prefix + operations, most: u.Operations},
		logins:    meter{limit: prefix + LoginRate},
		commands:  meter{limit: prefix + CommandRate},
	}
	s.logins.set(u.Logins, u.Logins)
	s.commands.set(u.Commands, u.Commands)
	s.upload.set(u.UploadRate, burst(u.UploadRate))
	s.download.set(u.DownloadRate, burst(u.DownloadRate))
	return s
}

// counts returns what the scope counts, always in the same order.
func (s *Scope) counts() []*slots {
	return []*slots{&s.sessions, &s.transfers, &s.operation, &s.beforeLogin}
}

// rates returns the rates of the scope, always in the same order.
func (s *Scope) rates() []*meter { return []*meter{&s.logins, &s.commands, &s.upload, &s.download} }

// limits returns the names of the limits that refuse something. A transfer rate only slows transfers down, and has no
// name.
func (s *Scope) limits() (names []string) {
	for _, c := range s.counts() {
		names = append(names, c.limit)
	}
	for _, m := range s.rates() {
		names = append(names, m.limit)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Adopt gives the scope the limits of another one of its kind. What is in use stays counted. Nothing ends because it
// is above a lower limit, and transfers that run keep their rate.
func (s *Scope) Adopt(other *Scope) {
	counts, rates := other.counts(), other.rates()
	for i, c := range s.counts() {
		c.adopt(counts[i])
	}
	for i, m := range s.rates() {
		m.adopt(rates[i])
	}
}

// InUse reports whether there is a session.
func (s *Scope) InUse() bool { return s.sessions.inUse() > 0 }

// slots counts what is in use at the same time.
type slots struct {
	limit string
	most  int // 0 for no limit

	mu      sync.Mutex
	used    int
	refused time.Time // the last one for which there was no room
}

// enter takes a slot. It returns false if all slots, or share of them, are in use. A share of 0 means no share.
func (s *slots) enter(share int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.used >= s.most || share > 0 && s.used >= share {
		s.refused = time.Now()
		return false
	}
	s.used++
	return true
}

// limitNow returns the number of slots, 0 for no limit.
func (s *slots) limitNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

func (s *slots) inUse() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.used) //nolint:gosec // what left has entered
}

// wanted tells whether there was no room for another one in the last minute, and still is none.
func (s *slots) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most > 0 && s.used >= s.most && time.Since(s.refused) < time.Minute
}

// reenter counts one that has been let in before.
func (s *slots) reenter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
}

func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
}

// adopt takes the number of another one for the same limit, whose name is read without the lock.
func (s *slots) adopt(other *slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = other.most
}

// A meter bounds how many there are in a second.
type meter struct {
	limit   string
	limiter atomic.Pointer[rate.Limiter] // nil for no limit
}

// set sets the limit, 0 for none, of which so many may come at once.
func (m *meter) set(perSecond, burst int) {
	if perSecond > 0 {
		m.limiter.Store(rate.NewLimiter(rate.Limit(perSecond), burst))
	}
}

// adopt takes the rate of another one, unless it is the same. The limiter is its own: scopes that adopt the same
// limits share none.
func (m *meter) adopt(other *meter) {
	own, next := m.limiter.Load(), other.limiter.Load()
	switch {
	case next == nil:
		m.limiter.Store(nil)
	case own == nil || own.Limit() != next.Limit():
		m.limiter.Store(rate.NewLimiter(next.Limit(), next.Burst()))
	}
}

// Scopes are those that a session belongs to: the server's first, the user's last.
type Scopes []*Scope

// EnterSession counts a session in each scope, or in none: then the error is an [Error]. The session calls leave
// once, when it has ended.
func (s Scopes) EnterSession() (leave func(), err error) {
	return s.enter(func(scope *Scope) *slots { return &scope.sessions }, nil)
}

// LogIn says that a session of [Server.Enter] has logged in. The session calls loggedOut when the login has ended.
func (s Scopes) LogIn() (loggedOut func()) {
	for _, scope := range s {
		scope.beforeLogin.leave()
	}
	return func() {
		for _, scope := range s {
			scope.beforeLogin.reenter()
		}
	}
}

// EnterTransfer is EnterSession for a transfer.
func (s Scopes) EnterTransfer() (leave func(), err error) {
	return s.enter(func(scope *Scope) *slots { return &scope.transfers }, nil)
}

// TransfersRefused tells whether a transfer was refused in the last minute for want of a place that a transfer of
// these scopes holds.
func (s Scopes) TransfersRefused() bool {
	return slices.ContainsFunc(s, func(scope *Scope) bool { return scope.transfers.wanted() })
}

// EnterOperation is EnterSession for an operation on a whole directory. A tenant gets at most three quarters of the
// operations of the server, and a user three quarters of the tenant's, so that others always find a free one.
func (s Scopes) EnterOperation() (leave func(), err error) {
	shares := map[string]int{}
	for _, scope := range s {
		if scope.operation.limit == serverPrefix+operations {
			ofServer := scope.operation.limitNow()
			ofTenant := threeQuarters(ofServer)
			if ofTenant < ofServer { // otherwise the error names the limit that can be raised
				shares[tenantPrefix+operations] = ofTenant
			}
			if ofUser := threeQuarters(ofTenant); ofUser < ofTenant {
				shares[userPrefix+operations] = ofUser
			}
		}
	}
	return s.enter(func(scope *Scope) *slots { return &scope.operation }, shares)
}

// threeQuarters returns three quarters of a number, rounded up, so that 1 stays 1.
func threeQuarters(n int) int { return (3*n + 3) / 4 }

// enter takes a slot in every scope, or fails and takes no slot. Shares bound slots further, by the name of their
// limit.
func (s Scopes) enter(of func(*Scope) *slots, shares map[string]int) (leave func(), err error) {
	for i := len(s) - 1; i >= 0; i-- { // the narrowest scope is the one to name
		if counted := of(s[i]); !counted.enter(shares[counted.limit]) {
			for _, scope := range s[i+1:] {
				of(scope).leave()
			}
			return nil, &Error{s[i].tenant, counted.limit}
		}
	}
	return func() {
		for _, scope := range s {
			of(scope).leave()
		}
	}, nil
}

// Login takes a login in each scope, or returns an [Error].
func (s Scopes) Login() error {
	_, err := s.reserve(func(scope *Scope) *meter { return &scope.logins }, 0)
	return err
}

// maxCommandWait is how long a command waits at most. Clients with a time limit on replies give up after 15 to 20
// seconds.
const maxCommandWait = 10 * time.Second

// Command takes a command in each scope, and returns how long the command has to wait. The error is an [Error] where
// that is too long.
func (s Scopes) Command() (wait time.Duration, err error) {
	return s.reserve(func(scope *Scope) *meter { return &scope.commands }, maxCommandWait)
}

// CommandNow takes a command in each scope, or returns an [Error] where it would have to wait.
func (s Scopes) CommandNow() error {
	_, err := s.reserve(func(scope *Scope) *meter { return &scope.commands }, 0)
	return err
}

// reserve takes one of each meter, or of none where the wait would be longer than most.
func (s Scopes) reserve(of func(*Scope) *meter, most time.Duration) (wait time.Duration, err error) {
	var taken []*rate.Reservation
	for _, scope := range s {
		m := of(scope)
		limiter := m.limiter.Load()
		if limiter == nil {
			continue
		}
		r := limiter.Reserve()
		taken = append(taken, r)
		if wait = max(wait, r.Delay()); wait > most {
			for _, r := range taken {
				r.Cancel()
			}
			return 0, &Error{scope.tenant, m.limit}
		}
	}
	return wait, nil
}

// Pace returns the rates of uploads or of downloads, nil without any.
func (s Scopes) Pace(upload bool) (pace Pace) {
	for _, scope := range s {
		limiter := scope.download.limiter.Load()
		if upload {
			limiter = scope.upload.limiter.Load()
		}
		if limiter != nil {
			pace = append(pace, limiter)
		}
	}
	return pace
}

// A Pace bounds the bytes a second of transfers that share its limiters. The nil Pace bounds nothing.
type Pace []*rate.Limiter

const (
	// paceShare is the part of a second whose bytes move at once, so that a slow transfer moves some in every moment.
	paceShare = 8
	// minBurst is the least number of bytes that move at once.
	minBurst = 512
)

// burst is how many bytes move at once.
func burst(bytesPerSecond int) int { return max(bytesPerSecond/paceShare, minBurst) }

// Chunk is how many of n bytes may move at once.
func (p Pace) Chunk(n int) int {
	for _, limiter := range p {
		n = min(n, limiter.Burst())
	}
	return n
}

// Wait waits for the turn of n bytes, as many as Chunk allows at most. The error is that of ctx.
func (p Pace) Wait(ctx context.Context, n int) error {
	var wait time.Duration
	for _, limiter := range p {
		wait = max(wait, limiter.ReserveN(time.Now(), n).Delay())
	}
	return Sleep(ctx, wait)
}

// Take waits for the turn of any number of bytes. The error is that of ctx.
func (p Pace) Take(ctx context.Context, n int) error {
	for n > 0 {
		chunk := p.Chunk(n)
		if err := p.Wait(ctx, chunk); err != nil {
			return err
		}
		n -= chunk
	}
	return nil
}

// Sleep waits for a time. The error is that of ctx.
func Sleep(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Session is what a [Guard] may cut.
type Session struct {
	Addr netip.Addr
	// BeforeLogin is how many sessions there may be that are not logged in, with this one, as far as descriptors go.
	// With 0 none is left: then the caller ends the session, when Enter has looked for bans and limits.
	BeforeLogin uint64
	// Cut ends the session because of an [Error]. It does not wait, and may be called again, by any goroutine.
	Cut func(error)
}

// A Guard refuses addresses, and learns of what they do.
type Guard interface {
	// Enter returns an [Error] for a session whose address is refused. It may cut any other until that calls leave.
	Enter(*Session) (leave func(), err error)
	// Offended notes that an address has sent an unknown command, or was above a limit of its own.
	Offended(netip.Addr)
}

// A Server has the scope of a server, and one for each address, by [Network].
type Server struct {
	Guard      Guard // nil for none
	scope      *Scope
	perAddress Usage
	mu         sync.Mutex
	addresses  *Expiring[netip.Prefix, *address]
}

// An address is a scope, and how many use it.
type address struct {
	*Scope
	users int
	since time.Time // when the last one has left
}

// NewServer makes the scopes of a server, and of each address.
func NewServer(u, perAddress Usage) *Server {
	return &Server{
		scope: serverScope(u), perAddress: perAddress,
		addresses: NewExpiring[netip.Prefix]((*address).over),
	}
}

// Adopt gives the scopes of the server and of all addresses the limits of another server, as [Scope.Adopt] does.
func (s *Server) Adopt(other *Server) {
	s.scope.Adopt(other.scope)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAddress = other.perAddress
	limits := s.addressScope()
	for _, a := range s.addresses.All() {
		a.Adopt(limits)
	}
}

// serverScope lets strangers take half of the sessions: the other half stays for those who are logged in.
func serverScope(u Usage) *Scope {
	scope := newScope("", serverPrefix, u)
	scope.beforeLogin = slots{limit: sessionsBeforeLogin, most: (u.Sessions + 1) / 2}
	return scope
}

func (s *Server) addressScope() *Scope { return newScope("", addressPrefix, s.perAddress) }

// addressIdle is how long the scope of an address without sessions stays. Its rates are full again after a second.
const addressIdle = 2 * time.Second

// Enter counts a session, and returns the scopes of its address. The session calls leave once, when it has ended. The
// error is an [Error].
func (s *Server) Enter(session *Session) (scopes Scopes, leave func(), err error) {
	pass := func() {}
	if s.Guard != nil {
		if pass, err = s.Guard.Enter(session); err != nil {
			return nil, nil, err
		}
	}
	a := s.use(Network(session.Addr))
	scopes = Scopes{s.scope, a.Scope}
	left, err := scopes.enterBeforeLogin()
	if err == nil && session.BeforeLogin > 0 && s.scope.beforeLogin.inUse() > session.BeforeLogin {
		left()
		err = &Error{Limit: s.scope.beforeLogin.limit}
	}
	if err != nil {
		s.release(a)
		pass()
		if reached, ok := errors.AsType[*Error](err); ok && reached.Limit == a.sessions.limit {
			s.Offended(session.Addr)
		}
		return nil, nil, err
	}
	return scopes, func() { left(); s.release(a); pass() }, nil
}

// enterBeforeLogin is EnterSession for a session that is not logged in.
func (s Scopes) enterBeforeLogin() (leave func(), err error) {
	left, err := s.EnterSession()
	if err != nil {
		return nil, err
	}
	leftLogin, err := s.enter(func(scope *Scope) *slots { return &scope.beforeLogin }, nil)
	if err != nil {
		left()
		return nil, err
	}
	return func() { left(); leftLogin() }, nil
}

// Offended tells the guard, if there is one.
func (s *Server) Offended(addr netip.Addr) {
	if s.Guard != nil {
		s.Guard.Offended(addr)
	}
}

func (s *Server) use(network netip.Prefix) *address {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.addresses.Get(network)
	if a == nil {
		a = &address{Scope: s.addressScope()}
		s.addresses.Set(network, a)
	}
	a.users++
	return a
}

func (s *Server) release(a *address) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.users--
	a.since = time.Now()
}

// over tells whether an address has not been in use for a time.
func (a *address) over() bool { return a.users == 0 && time.Since(a.since) > addressIdle }
