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
	for _, prefix := range []string{serverPrefix, addressPrefix} {
		names = append(names, newScope("", prefix, Bounds{}).limits()...)
	}
	return names
}

// Limits on sessions at the same time that a client can do something about.
const (
	AddressSessions = addressPrefix + "sessions"
	UserSessions    = userPrefix + "sessions"
)

// Limits of how many there are in a second. The names of an address's and a user's end so.
const (
	LoginRate   = "login_rate"
	CommandRate = "command_rate"
)

// A Scope is what shares its [Bounds]: the server, an address, a tenant or a user. It counts what is in use.
type Scope struct {
	tenant, prefix string
	counts         [allCounts]slots
	rates          [allRates]meter
}

// A count is something of which a scope allows a number at the same time.
type count int

const (
	sessions count = iota
	transfers
	operations
	beforeLogin // sessions that have not logged in, which only the server bounds
	allCounts
)

// A flow is something of which a scope allows a number in a second.
type flow int

const (
	logins flow = iota
	commands
	uploads   // bytes
	downloads // bytes
	allRates
)

// The name of a limit begins with its scope, as in the configuration: "address.sessions" for example.
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

// newScope is the table of all limits: the name of each, and its value. A rate of transfers has no name, because it
// only slows transfers down and refuses nothing. Sessions before the login may take half of the sessions of the server,
// so that the other half stays for clients that are logged in.
func newScope(tenant, prefix string, b Bounds) *Scope {
	s := &Scope{
		tenant: tenant, prefix: prefix,
		counts: [...]slots{
			sessions:    {limit: prefix + "sessions", most: b.Sessions},
			transfers:   {limit: prefix + "transfers", most: b.Transfers},
			operations:  {limit: prefix + "operations", most: b.Operations},
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
		s.counts[beforeLogin] = slots{limit: "sessions_before_login", most: (b.Sessions + 1) / 2}
	}
	return s
}

// limits returns the names of the limits that refuse something.
func (s *Scope) limits() (names []string) {
	for i := range s.counts {
		names = append(names, s.counts[i].limit)
	}
	for i := range s.rates {
		names = append(names, s.rates[i].limit)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// Configure sets the limits of a tenant or a user. What is in use stays counted. Nothing ends because it is above a
// lower limit, and running transfers keep their rate.
func (s *Scope) Configure(u Usage) { s.configure(Bounds{Usage: u}) }

func (s *Scope) configure(b Bounds) {
	next := newScope(s.tenant, s.prefix, b)
	for i := range s.counts {
		s.counts[i].setMost(next.counts[i].most)
	}
	for i := range s.rates {
		s.rates[i].adopt(&next.rates[i])
	}
}

// InUse reports whether there is a session.
func (s *Scope) InUse() bool { return s.counts[sessions].inUse() > 0 }

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

// setMost sets the number of slots, 0 for no limit.
func (s *slots) setMost(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = n
}

// A meter limits how many there are in a second.
type meter struct {
	limit   string
	limiter atomic.Pointer[rate.Limiter] // nil for no limit
}

// set sets the limit, 0 for no limit, that allows burst at once.
func (m *meter) set(perSecond, burst int) {
	if perSecond > 0 {
		m.limiter.Store(rate.NewLimiter(rate.Limit(perSecond), burst))
	}
}

// adopt sets the rate of another meter. A limiter that has this rate stays, with what it has counted. Scopes never
// share a limiter.
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
	return s.enter(sessions, nil)
}

// LogIn says that a session of [Server.Enter] has logged in. The session calls loggedOut when the login has ended.
func (s Scopes) LogIn() (loggedOut func()) {
	for _, scope := range s {
		scope.counts[beforeLogin].leave()
	}
	return func() {
		for _, scope := range s {
			scope.counts[beforeLogin].reenter()
		}
	}
}

// EnterTransfer is EnterSession for a transfer.
func (s Scopes) EnterTransfer() (leave func(), err error) {
	return s.enter(transfers, nil)
}

// TransfersRefused reports whether a transfer was refused in the last minute because one of these scopes was full, and
// still is.
func (s Scopes) TransfersRefused() bool {
	return slices.ContainsFunc(s, func(scope *Scope) bool { return scope.counts[transfers].wanted() })
}

// EnterOperation is EnterSession for an operation on a whole directory. A tenant gets at most three quarters of the
// operations of the server, and a user three quarters of the tenant's, so that others always find a free one.
func (s Scopes) EnterOperation() (leave func(), err error) {
	shares := map[string]int{}
	for _, scope := range s {
		if scope.prefix == serverPrefix {
			ofServer := scope.counts[operations].limitNow()
			ofTenant := threeQuarters(ofServer)
			if ofTenant < ofServer { // otherwise the error names the limit that can be raised
				shares[tenantPrefix] = ofTenant
			}
			if ofUser := threeQuarters(ofTenant); ofUser < ofTenant {
				shares[userPrefix] = ofUser
			}
		}
	}
	return s.enter(operations, shares)
}

// threeQuarters returns three quarters of a number, rounded up, so that 1 stays 1.
func threeQuarters(n int) int { return (3*n + 3) / 4 }

// enter takes a slot in every scope, or fails and takes no slot. Shares limit slots further, by the prefix of a scope.
func (s Scopes) enter(c count, shares map[string]int) (leave func(), err error) {
	for i := len(s) - 1; i >= 0; i-- { // the narrowest scope is the one to name
		if counted := &s[i].counts[c]; !counted.enter(shares[s[i].prefix]) {
			for _, scope := range s[i+1:] {
				scope.counts[c].leave()
			}
			return nil, &Error{s[i].tenant, counted.limit}
		}
	}
	return func() {
		for _, scope := range s {
			scope.counts[c].leave()
		}
	}, nil
}

// Login takes a login in each scope, or returns an [Error].
func (s Scopes) Login() error {
	_, err := s.reserve(logins, 0)
	return err
}

// maxCommandWait is how long a command waits at most. Clients with a time limit on replies give up after 15 to 20
// seconds.
const maxCommandWait = 10 * time.Second

// Command takes a command in each scope, and returns how long the command has to wait. The error is an [Error] where
// that is too long.
func (s Scopes) Command() (wait time.Duration, err error) {
	return s.reserve(commands, maxCommandWait)
}

// CommandNow takes a command in each scope, or returns an [Error] where it would have to wait.
func (s Scopes) CommandNow() error {
	_, err := s.reserve(commands, 0)
	return err
}

// reserve takes one from the meter of each scope, or from none if the wait would be longer than most.
func (s Scopes) reserve(f flow, most time.Duration) (wait time.Duration, err error) {
	var taken []*rate.Reservation
	for _, scope := range s {
		m := &scope.rates[f]
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
	perAddress Bounds
	mu         sync.Mutex
	addresses  *Expiring[netip.Prefix, *address]
}

// An address is a scope, and how many use it.
type address struct {
	*Scope
	users int
	since time.Time // when the last one has left
}

// NewServer returns the scopes of a server, and of each address.
func NewServer(server, perAddress Bounds) *Server {
	return &Server{
		scope: newScope("", serverPrefix, server), perAddress: perAddress,
		addresses: NewExpiring[netip.Prefix]((*address).over),
	}
}

// Configure sets the limits of the server and of all addresses, as [Scope.Configure] does.
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
	if err == nil && session.BeforeLogin > 0 && s.scope.counts[beforeLogin].inUse() > session.BeforeLogin {
		left()
		err = &Error{Limit: s.scope.counts[beforeLogin].limit}
	}
	if err != nil {
		s.release(a)
		pass()
		if reached, ok := errors.AsType[*Error](err); ok && reached.Limit == a.counts[sessions].limit {
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
	leftLogin, err := s.enter(beforeLogin, nil)
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
