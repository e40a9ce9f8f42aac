// Package bans refuses addresses and users for a time after many failures, or because an administrator says so.
//
// A [List] keeps scores, which decay, and bans. [List.Enter] refuses the connections of an address (reply 421, RFC
// 959, section 4.2.1), and [List.Check] and [List.LogIn] refuse logins. They return a [limits.Error]. A new ban cuts
// sessions.
//
// The list is in the memory of one process.
package bans

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// loginPoints is what a failed login adds to the scores.
	loginPoints = 1
	// offencePoints is what an unknown command, or a connection that a limit refuses, adds to the score of an
	// address. Clients do that by mistake too.
	offencePoints = 0.1
	// forgotten is the score below which it is removed.
	forgotten = 0.05
	// administrator is the reason of a ban that no failures have caused.
	administrator = "an administrator"
)

// A Ban is an address, a network or a user that the server refuses.
type Ban struct {
	// Name is that of [Parse].
	Name   string    `json:"name"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Kind is the kind of the name: "user", "network" or "address". A network that counts as one address is an address.
func (b Ban) Kind() string {
	switch {
	case strings.Contains(b.Name, "@"):
		return "user"
	case b.network().IsValid():
		return "network"
	}
	return "address"
}

// network is that of a ban of several addresses, and not valid for any other.
func (b Ban) network() netip.Prefix {
	network, err := netip.ParsePrefix(b.Name)
	if err != nil || network == limits.Network(network.Addr()) {
		return netip.Prefix{}
	}
	return network
}

// A List has the scores and the bans.
type List struct {
	cfg    config.Bans
	rules  config.Networks
	log    *slog.Logger
	banned func(Ban)
	key    []byte // of the names of unknown users

	mu       sync.Mutex
	scores   *limits.Expiring[string, limits.Score]
	bans     *limits.Expiring[string, Ban]
	networks map[string]netip.Prefix    // of bans of several addresses
	sessions map[*limits.Session]string // their users, empty before the login
}

// New makes a list without bans. It calls banned for each ban.
func New(cfg config.Bans, networks config.Networks, log *slog.Logger, banned func(Ban)) *List {
	l := &List{
		cfg: cfg, rules: networks, log: log, banned: banned, key: []byte(rand.Text()),
		networks: map[string]netip.Prefix{}, sessions: map[*limits.Session]string{},
	}
	l.scores = limits.NewExpiring[string](func(s limits.Score) bool { return l.points(s, time.Now()) < forgotten })
	l.bans = limits.NewExpiring[string](Ban.over)
	return l
}

// Configure replaces the rules. Scores and bans stay, and bans keep their time. Networks that are denied from then on
// keep their sessions.
func (l *List) Configure(cfg config.Bans, networks config.Networks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg, l.rules = cfg, networks
}

// addressName is the name of what an address counts as: see [limits.Network].
func addressName(addr netip.Addr) string {
	network := limits.Network(addr)
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// Parse returns the name of an address, of a network, or of a user, which is written USER@TENANT.
func Parse(name string) (string, error) {
	if at := strings.LastIndexByte(name, '@'); at > 0 && at < len(name)-1 {
		return foldUser(name), nil
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		return addressName(addr), nil
	}
	network, err := netip.ParsePrefix(name)
	counted := limits.Network(network.Addr())
	switch {
	case err != nil, network.Addr().Is4In6():
		return "", fmt.Errorf(
			"%q is not an address, network or user: write it like 203.0.113.7, 203.0.113.0/24 or alice@acme", name)
	case network.Bits() >= counted.Bits():
		return addressName(network.Addr()), nil
	case network != network.Masked():
		return "", fmt.Errorf("%s is not a network: write %s", name, network.Masked())
	}
	return network.String(), nil
}

// foldUser returns the name of a ban of a user, USER@TENANT, which all spellings of the user share.
func foldUser(name string) string {
	at := strings.LastIndexByte(name, '@')
	if at < 0 {
		return name
	}
	return config.FoldUser(name[:at]) + name[at:]
}

// UnknownUser is what the failures of a name count for that no tenant has. So the server bans it like a user, and the
// reply does not tell which names exist. People type passwords there, so the name itself is not kept, and the hash
// cannot be compared with that of a guess.
func (l *List) UnknownUser(name string) string {
	const digits = 16
	sum := hmac.New(sha256.New, l.key)
	sum.Write([]byte(name))
	return "unknown-" + hex.EncodeToString(sum.Sum(nil))[:digits] + "@"
}

// Enter implements [limits.Guard].
func (l *List) Enter(s *limits.Session) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(s.Addr, ""); err != nil {
		return nil, err
	}
	l.sessions[s] = ""
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.sessions, s)
	}, nil
}

// Check returns an error for a login from an address that is refused, or as a user who is banned.
func (l *List) Check(addr netip.Addr, user string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal(addr, user)
}

// LogIn is Check for a session, which from then on ends with a ban of its user. The session calls leave when the user
// has logged out.
func (l *List) LogIn(s *limits.Session, user string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refusal(s.Addr, user); err != nil {
		return nil, err
	}
	l.setUser(s, user)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.setUser(s, "")
	}, nil
}

// EndSessions ends the sessions of users, written USER@TENANT, each with its reason.
func (l *List) EndSessions(users map[string]*limits.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, user := range l.sessions {
		if why := users[user]; why != nil {
			s.Cut(why)
		}
	}
}

// setUser sets the user of a session that has not ended.
func (l *List) setUser(s *limits.Session, user string) {
	if _, found := l.sessions[s]; found {
		l.sessions[s] = user
	}
}

// refusal is why an address or a user is refused, nil for those that are not.
func (l *List) refusal(addr netip.Addr, user string) error {
	switch {
	case l.live(foldUser(user)), !l.rules.Allows(addr) && l.bansAddress(addr):
		return &limits.Error{Limit: limits.Bans}
	case l.rules.Refuses(addr):
		return &limits.Error{Limit: limits.Deny}
	}
	return nil
}

// over tells whether the time of a ban has passed.
func (b Ban) over() bool { return !time.Now().Before(b.Until) }

// ByAdministrator tells whether an administrator has asked for the ban, and not failures.
func (b Ban) ByAdministrator() bool { return b.Reason == administrator }

// live tells whether a name is banned.
func (l *List) live(name string) bool { return !l.bans.Get(name).over() }

func (l *List) bansAddress(addr netip.Addr) bool {
	return slices.ContainsFunc(l.namesOf(addr, nil), l.live)
}

// namesOf appends the names of bans that an address may have.
func (l *List) namesOf(addr netip.Addr, names []string) []string {
	names = append(names, addressName(addr))
	for name, network := range l.networks {
		switch {
		case !l.live(name):
			delete(l.networks, name)
		case network.Contains(addr.Unmap().WithZone("")):
			names = append(names, name)
		}
	}
	return names
}

// Offended implements [limits.Guard].
func (l *List) Offended(addr netip.Addr) {
	l.count("unknown commands or refused connections", offencePoints, addr, "")
}

// LoginFailed counts a failed login from an address as a user.
func (l *List) LoginFailed(addr netip.Addr, user string) {
	l.count("failed logins", loginPoints, addr, user)
}

// count adds to the scores of an address and of a user. A maximum of 0 is none.
func (l *List) count(reason string, points float64, addr netip.Addr, user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cfg.AddressScore > 0 && addr.IsValid() && !l.rules.Allows(addr) {
		l.add(reason, points, addressName(addr), l.cfg.AddressScore)
	}
	if l.cfg.UserScore > 0 && user != "" {
		l.add(reason, points, foldUser(user), l.cfg.UserScore)
	}
}

// add adds to a score, and bans its name at the maximum.
func (l *List) add(reason string, points float64, name string, most int) {
	now := time.Now()
	s := l.scores.Get(name).Add(points, now, l.cfg.HalfLife)
	if l.points(s, now) < float64(most)-forgotten {
		l.scores.Set(name, s)
		return
	}
	l.scores.Delete(name)
	l.ban(Ban{Name: name, Until: now.Add(l.cfg.Time), Reason: reason})
}

// points are those that a score has left.
func (l *List) points(s limits.Score, now time.Time) float64 { return s.At(now, l.cfg.HalfLife) }

// ban adds a ban, unless there is a longer one, and reports it.
func (l *List) ban(b Ban) {
	if l.bans.Get(b.Name).Until.After(b.Until) {
		return
	}
	l.put(b)
	l.cut()
	l.banned(b)
	l.log.Warn("banned", "kind", b.Kind(), "name", b.Name, "until", b.Until, "reason", b.Reason)
}

// put adds a ban, in place of another one.
func (l *List) put(b Ban) {
	l.bans.Set(b.Name, b)
	if network := b.network(); network.IsValid() {
		l.networks[b.Name] = network
	}
}

// cut ends the sessions that are banned. A ban after failures ends the sessions of the address that are not logged in.
// The others have shown a right password, and strangers must not end their transfers by guesses. A ban by an
// administrator ends all.
func (l *List) cut() {
	for s, user := range l.sessions {
		if user == "" && l.refusal(s.Addr, "") != nil || user != "" && l.bannedByAdministrator(s.Addr, user) {
			s.Cut(&limits.Error{Limit: limits.Bans})
		}
	}
}

func (l *List) bannedByAdministrator(addr netip.Addr, user string) bool {
	names := []string{foldUser(user)}
	if !l.rules.Allows(addr) {
		names = l.namesOf(addr, names)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		return l.live(name) && l.bans.Get(name).ByAdministrator()
	})
}

// drop removes a ban.
func (l *List) drop(name string) {
	l.bans.Delete(name)
	delete(l.networks, name)
}

// Add bans a name for a time, or for that of the configuration with 0. The name is that of [Parse].
func (l *List) Add(name string, d time.Duration) Ban {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := Ban{Name: name, Until: time.Now().Add(cmp.Or(d, l.cfg.Time)), Reason: administrator}
	l.drop(name) // a new time may be shorter
	l.ban(b)
	return b
}

// Remove ends a ban, and forgets the failures. It returns false where there is no ban.
func (l *List) Remove(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.live(name)
	l.drop(name)
	l.scores.Delete(name)
	return found
}

// All returns the bans, sorted by name.
func (l *List) All() []Ban {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Ban{}
	for _, b := range l.bans.All() {
		if !b.over() {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Ban) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
