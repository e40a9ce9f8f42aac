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

// An Error is returned if a limit is reached. It wraps [syscall.EBUSY].
type Error struct {
	Tenant string // empty for a limit of the server or of an address
	Limit  string // key of the limit in the configuration
}

// Error implements error. The client gets a reply of its own.
func (e *Error) Error() string { return "the limit " + e.Limit + " is reached" }

// Unwrap returns EBUSY.
func (e *Error) Unwrap() error { return syscall.EBUSY }

// Limits that are not fields of a [Scope].
const (
	LoginTimeout = "login_timeout"
	PassivePorts = "passive.ports"
	Descriptors  = "descriptors" // file descriptors of the process

	Bans = "bans" // the address or the user is banned
	Deny = "deny" // the address is in a denied network

	UserDisabled = "user.disabled" // the user of a session was disabled
	UserExpired  = "user.expired"  // the user of a session has expired
)

// ServerWide returns the names of all limits that can be reached without a tenant: the limits of the server and of
// addresses, and the limits that are not fields of a [Scope].
func ServerWide() []string {
	names := []string{LoginTimeout, PassivePorts, Descriptors, Bans, Deny}
	for _, prefix := range []string{serverPrefix, addressPrefix} {
		names = append(names, newScope("", prefix, Bounds{}).limits()...)
	}
	return names
}

// Limits on concurrent sessions that clients can avoid by closing other sessions.
const (
	AddressSessions = addressPrefix + "sessions"
	UserSessions    = userPrefix + "sessions"
)

// The last parts of the names of limits on logins and commands per second, after "address." for example.
const (
	LoginRate   = "login_rate"
	CommandRate = "command_rate"
)

// A Scope enforces the [Bounds] of the server, an address, a tenant or a user. It is safe for concurrent use.
type Scope struct {
	tenant, prefix string
	counts         [allCounts]counter
	rates          [allRates]meter
}

// A count is a resource of which a scope allows a number at the same time.
type count int

const (
	sessions count = iota
	transfers
	operations
	beforeLogin // sessions that have not logged in; limited only for the whole server
	allCounts
)

// A flow is a resource of which a scope allows a number per second.
type flow int

const (
	logins flow = iota
	commands
	uploads   // bytes
	downloads // bytes
	allRates
)

// The names of limits begin with their scope, for example "address.sessions".
const (
	serverPrefix  = "server."
	addressPrefix = "address."
	tenantPrefix  = "tenant."
	userPrefix    = "user."
)

// NewTenant returns the scope of a tenant.
func NewTenant(name string, u Usage) *Scope { return newScope(name, tenantPrefix, Bounds{Usage: u}) }

// NewUser returns the scope of a user of a tenant.
func NewUser(tenant string, u Usage) *Scope { return newScope(tenant, userPrefix, Bounds{Usage: u}) }

// newScope contains the table of all limits with their names and values. The rates of transfers have no names, because
// they slow transfers down and never cause an error. Sessions that have not logged in may use half of the sessions of
// the server, so that the other half is left for clients that log in.
func newScope(tenant, prefix string, b Bounds) *Scope {
	s := &Scope{
		tenant: tenant, prefix: prefix,
		counts: [...]counter{
			sessions:    {limit: prefix + "sessions", maximum: b.Sessions},
			transfers:   {limit: prefix + "transfers", maximum: b.Transfers},
			operations:  {limit: prefix + "operations", maximum: b.Operations},
			beforeLogin: {},
		},
	}
	for f, row := range [...]struct {
		limit            string
		perSecond, burst int
	}{
		logins:    {prefix + LoginRate, b.LoginRate, b.LoginRate},
		commands:  {prefix + CommandRate, b.CommandRate, b.CommandRate},
		uploads:   {"", int(b.UploadRate), burst(int(b.UploadRate))},
		downloads: {"", int(b.DownloadRate), burst(int(b.DownloadRate))},
	} {
		s.rates[f].limit = row.limit
		s.rates[f].set(row.perSecond, row.burst)
	}
	if prefix == serverPrefix {
		s.counts[beforeLogin] = counter{limit: "sessions_before_login", maximum: (b.Sessions + 1) / 2}
	}
	return s
}

// limits returns the names of all limits that have a name.
func (s *Scope) limits() (names []string) {
	for i := range s.counts {
		names = append(names, s.counts[i].limit)
	}
	for i := range s.rates {
		names = append(names, s.rates[i].limit)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Configure changes the limits of a tenant or a user. Current counts are kept. If they exceed a new limit, nothing is
// ended. Running transfers keep their rate.
func (s *Scope) Configure(u Usage) { s.configure(Bounds{Usage: u}) }

func (s *Scope) configure(b Bounds) {
	next := newScope(s.tenant, s.prefix, b)
	for i := range s.counts {
		s.counts[i].setMaximum(next.counts[i].maximum)
	}
	for i := range s.rates {
		s.rates[i].adopt(&next.rates[i])
	}
}

// InUse reports whether the scope has any sessions.
func (s *Scope) InUse() bool { return s.counts[sessions].inUse() > 0 }

// A counter counts and limits how many of a resource are in use.
type counter struct {
	limit   string
	maximum int // 0 means no limit

	mu        sync.Mutex
	used      int
	refusedAt time.Time // when acquire last failed
}

// acquire counts one more. It returns false if the maximum, or a share of it, is already in use. A share of 0 means the
// whole maximum.
func (c *counter) acquire(share int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.maximum > 0 && c.used >= c.maximum || share > 0 && c.used >= share {
		c.refusedAt = time.Now()
		return false
	}
	c.used++
	return true
}

// currentMaximum returns the maximum, or 0 for no limit.
func (c *counter) currentMaximum() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maximum
}

func (c *counter) inUse() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.used) //nolint:gosec // never negative, because each release follows an acquire
}

// hasRefused reports whether acquire has failed in the last minute and would still fail.
func (c *counter) hasRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.maximum > 0 && c.used >= c.maximum && time.Since(c.refusedAt) < time.Minute
}

// reacquire counts one more, even above the maximum.
func (c *counter) reacquire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used++
}

func (c *counter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used--
}

// setMaximum sets the maximum; 0 means no limit.
func (c *counter) setMaximum(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maximum = n
}

// A meter limits how many of a resource may be used per second.
type meter struct {
	limit   string
	limiter atomic.Pointer[rate.Limiter] // nil for no limit
}

// set sets the limit and the burst. A limit of 0 means no limit.
func (m *meter) set(perSecond, burst int) {
	if perSecond > 0 {
		m.limiter.Store(rate.NewLimiter(rate.Limit(perSecond), burst))
	}
}

// adopt copies the rate of another meter. If the rate is the same, the limiter keeps its state. Scopes never share a
// limiter.
func (m *meter) adopt(other *meter) {
	own, next := m.limiter.Load(), other.limiter.Load()
	switch {
	case next == nil:
		m.limiter.Store(nil)
	case own == nil || own.Limit() != next.Limit():
		m.limiter.Store(rate.NewLimiter(next.Limit(), next.Burst()))
	}
}

// Scopes are the scopes that a session belongs to, from the server to the user.
type Scopes []*Scope

// AcquireSession counts a session in each scope. If one of them is full, it counts the session in none and returns an
// [Error]. The session must call release once, when it has ended.
func (s Scopes) AcquireSession() (release func(), err error) {
	return s.acquire(sessions, nil)
}

// LogIn must be called when a session of [Server.Admit] has logged in. The session calls loggedOut when its login ends.
func (s Scopes) LogIn() (loggedOut func()) {
	for _, scope := range s {
		scope.counts[beforeLogin].release()
	}
	return func() {
		for _, scope := range s {
			scope.counts[beforeLogin].reacquire()
		}
	}
}

// AcquireTransfer is like AcquireSession, for a transfer.
func (s Scopes) AcquireTransfer() (release func(), err error) {
	return s.acquire(transfers, nil)
}

// TransfersRefused reports whether one of the scopes has refused a transfer in the last minute and is still full.
func (s Scopes) TransfersRefused() bool {
	return slices.ContainsFunc(s, func(scope *Scope) bool { return scope.counts[transfers].hasRefused() })
}

// AcquireOperation is like AcquireSession, for an operation on a whole directory. A tenant gets at most three quarters
// of the operations of the server, and a user three quarters of the tenant's, so that some are always left for others.
func (s Scopes) AcquireOperation() (release func(), err error) {
	shares := map[string]int{}
	for _, scope := range s {
		if scope.prefix == serverPrefix {
			ofServer := scope.counts[operations].currentMaximum()
			ofTenant := threeQuarters(ofServer)
			if ofTenant < ofServer { // otherwise the error names the limit of the server, which can be raised
				shares[tenantPrefix] = ofTenant
			}
			if ofUser := threeQuarters(ofTenant); ofUser < ofTenant {
				shares[userPrefix] = ofUser
			}
		}
	}
	return s.acquire(operations, shares)
}

// threeQuarters returns three quarters of a number, rounded up, so that 1 stays 1.
func threeQuarters(n int) int { return (3*n + 3) / 4 }

// acquire counts c in every scope, or fails and counts nothing. shares contains lower maximums, by the prefix of the
// scope.
func (s Scopes) acquire(c count, shares map[string]int) (release func(), err error) {
	for i := len(s) - 1; i >= 0; i-- { // the error names the narrowest scope that is full
		if counter := &s[i].counts[c]; !counter.acquire(shares[s[i].prefix]) {
			for _, scope := range s[i+1:] {
				scope.counts[c].release()
			}
			return nil, &Error{s[i].tenant, counter.limit}
		}
	}
	return func() {
		for _, scope := range s {
			scope.counts[c].release()
		}
	}, nil
}

// Login counts a login in each scope, or returns an [Error].
func (s Scopes) Login() error {
	_, err := s.reserve(logins, 0)
	return err
}

// maxCommandWait is the maximum delay of a command. Clients with a reply timeout give up after 15 to 20 seconds.
const maxCommandWait = 10 * time.Second

// Command counts a command in each scope, and returns how long the command has to wait. If that is too long, it counts
// nothing and returns an [Error].
func (s Scopes) Command() (wait time.Duration, err error) {
	return s.reserve(commands, maxCommandWait)
}

// CommandNow counts a command in each scope. If the command would have to wait, it counts nothing and returns an
// [Error].
func (s Scopes) CommandNow() error {
	_, err := s.reserve(commands, 0)
	return err
}

// reserve counts one in the meter of each scope, or in none if the wait would exceed maxWait.
func (s Scopes) reserve(f flow, maxWait time.Duration) (wait time.Duration, err error) {
	var taken []*rate.Reservation
	for _, scope := range s {
		m := &scope.rates[f]
		limiter := m.limiter.Load()
		if limiter == nil {
			continue
		}
		r := limiter.Reserve()
		taken = append(taken, r)
		if wait = max(wait, r.Delay()); wait > maxWait {
			for _, r := range taken {
				r.Cancel()
			}
			return 0, &Error{scope.tenant, m.limit}
		}
	}
	return wait, nil
}

// Pace returns the rates of uploads or of downloads, or nil if they are unlimited.
func (s Scopes) Pace(upload bool) (pace Pace) {
	f := downloads
	if upload {
		f = uploads
	}
	for _, scope := range s {
		if limiter := scope.rates[f].limiter.Load(); limiter != nil {
			pace = append(pace, limiter)
		}
	}
	return pace
}

// A Pace limits the bytes per second of all transfers that share its limiters. The nil Pace has no limit.
type Pace []*rate.Limiter

const (
	// paceShare is the number of bursts per second, so that slow transfers move continuously.
	paceShare = 8
	// minBurst is the minimum size of a burst in bytes.
	minBurst = 512
)

// burst returns the size of a burst in bytes.
func burst(bytesPerSecond int) int { return max(bytesPerSecond/paceShare, minBurst) }

// Chunk returns how many of n bytes may be sent at once.
func (p Pace) Chunk(n int) int {
	for _, limiter := range p {
		n = min(n, limiter.Burst())
	}
	return n
}

// Wait waits until n bytes may be sent. n must not exceed the result of Chunk. If ctx ends first, Wait returns its
// error.
func (p Pace) Wait(ctx context.Context, n int) error {
	var wait time.Duration
	for _, limiter := range p {
		wait = max(wait, limiter.ReserveN(time.Now(), n).Delay())
	}
	return Sleep(ctx, wait)
}

// Take waits until n bytes may be sent, for any n. If ctx ends first, Take returns its error.
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

// Sleep waits for the given time. If ctx ends first, Sleep returns its error.
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

// A Session is a session that an [AddressGuard] may end.
type Session struct {
	Addr netip.Addr
	// BeforeLogin is the maximum number of sessions that have not logged in, including this one, for which there are
	// enough file descriptors. If it is 0, there are not even enough for this session. The caller must then end it
	// after Admit has checked bans and limits.
	BeforeLogin uint64
	// Cut ends the session with an [Error]. It does not block, and may be called more than once and by any goroutine.
	Cut func(error)
}

// An AddressGuard refuses the sessions of banned addresses, and is told about the offenses of addresses.
type AddressGuard interface {
	// Admit returns an [Error] if the address of the session is refused. Otherwise the guard may cut the session until
	// the session calls release.
	Admit(*Session) (release func(), err error)
	// Offended must be called if an address has sent an unknown command or has exceeded one of its limits.
	Offended(netip.Addr)
}

// A Server has the scope of the server and a scope for each address, see [Network].
type Server struct {
	Guard      AddressGuard // optional
	scope      *Scope
	perAddress Bounds
	mu         sync.Mutex
	addresses  *Expiring[netip.Prefix, *address]
}

// An address is the scope of an address.
type address struct {
	*Scope
	users  int       // sessions that use the scope
	idleAt time.Time // when the last session ended
}

// NewServer returns a Server with the limits of the server and of each address.
func NewServer(server, perAddress Bounds) *Server {
	return &Server{
		scope: newScope("", serverPrefix, server), perAddress: perAddress,
		addresses: NewExpiring[netip.Prefix]((*address).expired),
	}
}

// Configure changes the limits of the server and of all addresses, like [Scope.Configure].
func (s *Server) Configure(server, perAddress Bounds) {
	s.scope.configure(server)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.perAddress = perAddress
	for _, a := range s.addresses.All() {
		a.configure(perAddress)
	}
}

func (s *Server) addressScope() *Scope { return newScope("", addressPrefix, s.perAddress) }

// addressIdle is the time for which the scope of an address without sessions is kept. Its rates recover within a
// second, so nothing is lost.
const addressIdle = 2 * time.Second

// Admit counts a new session, and returns the scopes of the server and its address. The session must call release once,
// when it has ended. If the session is refused, the error is an [Error].
func (s *Server) Admit(session *Session) (scopes Scopes, release func(), err error) {
	releaseGuard := func() {}
	if s.Guard != nil {
		if releaseGuard, err = s.Guard.Admit(session); err != nil {
			return nil, nil, err
		}
	}
	a := s.use(Network(session.Addr))
	scopes = Scopes{s.scope, a.Scope}
	releaseSession, err := scopes.acquireBeforeLogin()
	if err == nil && session.BeforeLogin > 0 && s.scope.counts[beforeLogin].inUse() > session.BeforeLogin {
		releaseSession()
		err = &Error{Limit: s.scope.counts[beforeLogin].limit}
	}
	if err != nil {
		s.release(a)
		releaseGuard()
		if reached, ok := errors.AsType[*Error](err); ok && reached.Limit == a.counts[sessions].limit {
			s.Offended(session.Addr)
		}
		return nil, nil, err
	}
	return scopes, func() { releaseSession(); s.release(a); releaseGuard() }, nil
}

// acquireBeforeLogin is like AcquireSession, for a session that has not logged in.
func (s Scopes) acquireBeforeLogin() (release func(), err error) {
	releaseSession, err := s.AcquireSession()
	if err != nil {
		return nil, err
	}
	releaseLogin, err := s.acquire(beforeLogin, nil)
	if err != nil {
		releaseSession()
		return nil, err
	}
	return func() { releaseSession(); releaseLogin() }, nil
}

// Offended forwards an offense to the guard, if there is one.
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
	a.idleAt = time.Now()
}

// expired reports whether the scope has been unused for longer than addressIdle.
func (a *address) expired() bool { return a.users == 0 && time.Since(a.idleAt) > addressIdle }
