// Package bans refuses addresses and users temporarily, either after many failures or because an administrator banned
// them.
//
// A [List] keeps a score for each address and user, which failures increase and which decays over time. A score that
// reaches the maximum becomes a [Ban]. [List.Admit] refuses connections (reply 421, RFC 959, section 4.2.1), and
// [List.Check] and [List.LogIn] refuse logins, all with a [limits.Error]. A new ban also ends sessions that are in
// progress.
//
// The list is kept in memory. With [List.Share], replicas exchange bans and scores through a [state.Store].
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
	// loginPoints is added to the scores for a failed login.
	loginPoints = 1
	// offencePoints is added to the score of an address for an unknown command, or for a connection that a limit
	// refuses. It is low because clients do that by mistake too.
	offencePoints = 0.1
	// forgotten is the score below which an entry is removed.
	forgotten = 0.05
	// administrator is the reason of bans that an administrator added.
	administrator = "an administrator"
)

// A Ban refuses an address, a network or a user.
type Ban struct {
	// Name is an address, a network such as 192.0.2.0/24, or a user such as alice@acme; see [Parse].
	Name   string    `json:"name"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// Kind returns the kind of the name: "user", "network" or "address". A network that counts as a single address is an
// "address"; see [limits.Network].
func (b Ban) Kind() string {
	switch {
	case strings.Contains(b.Name, "@"):
		return "user"
	case b.network().IsValid():
		return "network"
	}
	return "address"
}

// network returns the network of a ban of several addresses, and the zero Prefix for other bans.
func (b Ban) network() netip.Prefix {
	network, err := netip.ParsePrefix(b.Name)
	if err != nil || network == limits.Network(network.Addr()) {
		return netip.Prefix{}
	}
	return network
}

// A List holds the scores and the bans.
type List struct {
	cfg    config.Bans
	rules  config.Networks
	log    *slog.Logger
	banned func(Ban)
	key    []byte // for the hashes of unknown user names

	sharing *Sharing // nil if nothing is shared

	mu       sync.Mutex
	scores   *limits.Expiring[string, limits.Score]
	bans     *limits.Expiring[string, Ban]
	networks map[string]netip.Prefix    // banned networks, by name
	sessions map[*limits.Session]string // the sessions and their users, empty before the login
}

// New returns an empty list. It calls banned for each new ban.
func New(cfg config.Bans, networks config.Networks, log *slog.Logger, banned func(Ban)) *List {
	l := &List{
		cfg: cfg, rules: networks, log: log, banned: banned, key: []byte(rand.Text()),
		networks: map[string]netip.Prefix{}, sessions: map[*limits.Session]string{},
	}
	l.scores = limits.NewExpiring[string](func(s limits.Score) bool { return l.points(s, time.Now()) < forgotten })
	l.bans = limits.NewExpiring[string](Ban.expired)
	return l
}

// Configure replaces the configuration. Scores and bans are kept, and bans keep their end. Sessions from networks
// that are now denied are not ended.
func (l *List) Configure(cfg config.Bans, networks config.Networks) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cfg, l.rules = cfg, networks
}

// addressName returns the ban name of an address, which may be a network; see [limits.Network].
func addressName(addr netip.Addr) string {
	network := limits.Network(addr)
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// Parse returns the canonical name of an address, a network, or a user in the form USER@TENANT.
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

// foldUser returns the ban name of USER@TENANT, which is the same for all spellings of the user.
func foldUser(name string) string {
	at := strings.LastIndexByte(name, '@')
	if at < 0 {
		return name
	}
	return config.FoldUser(name[:at]) + name[at:]
}

// UnknownUser returns the ban name for failures of an unknown user. Such a name is banned like a user, so that
// replies do not reveal which users exist. It is a keyed hash, because people sometimes type their password as a
// name, and an unkeyed hash could be compared with guesses.
func (l *List) UnknownUser(name string) string {
	const digits = 16
	sum := hmac.New(sha256.New, l.key)
	sum.Write([]byte(name))
	return "unknown-" + hex.EncodeToString(sum.Sum(nil))[:digits] + "@"
}

// Admit implements [limits.AddressGuard].
func (l *List) Admit(s *limits.Session) (release func(), err error) {
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

// Check returns an error if the address or the user is banned or denied.
func (l *List) Check(addr netip.Addr, user string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusal(addr, user)
}

// LogIn is like Check, and registers the user of the session so that a ban of the user ends it. The session calls
// release when the user logs out.
func (l *List) LogIn(s *limits.Session, user string) (release func(), err error) {
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

// EndSessions ends the sessions of the users, who are written USER@TENANT, for whom why returns a reason.
func (l *List) EndSessions(why func(user string) *limits.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, user := range l.sessions {
		if reason := why(user); reason != nil {
			s.Cut(reason)
		}
	}
}

// setUser sets the user of a session, unless the session has ended.
func (l *List) setUser(s *limits.Session, user string) {
	if _, found := l.sessions[s]; found {
		l.sessions[s] = user
	}
}

// refusal returns the reason why an address or a user is refused, or nil.
func (l *List) refusal(addr netip.Addr, user string) error {
	switch {
	case l.isBanned(foldUser(user)), !l.rules.Allows(addr) && l.bansAddress(addr):
		return &limits.Error{Limit: limits.Bans}
	case l.rules.Refuses(addr):
		return &limits.Error{Limit: limits.Deny}
	}
	return nil
}

// expired reports whether the ban has ended.
func (b Ban) expired() bool { return !time.Now().Before(b.Until) }

// ByAdministrator reports whether an administrator added the ban.
func (b Ban) ByAdministrator() bool { return b.Reason == administrator }

// isBanned reports whether there is a ban with this name.
func (l *List) isBanned(name string) bool { return !l.bans.Get(name).expired() }

func (l *List) bansAddress(addr netip.Addr) bool {
	return slices.ContainsFunc(l.namesOf(addr, nil), l.isBanned)
}

// namesOf appends the names of all bans that could apply to an address. It removes expired networks.
func (l *List) namesOf(addr netip.Addr, names []string) []string {
	names = append(names, addressName(addr))
	for name, network := range l.networks {
		switch {
		case !l.isBanned(name):
			delete(l.networks, name)
		case network.Contains(addr.Unmap().WithZone("")):
			names = append(names, name)
		}
	}
	return names
}

// Offended implements [limits.AddressGuard].
func (l *List) Offended(addr netip.Addr) {
	l.count("unknown commands or refused connections", offencePoints, addr, "")
}

// LoginFailed counts a failed login from an address as a user.
func (l *List) LoginFailed(addr netip.Addr, user string) {
	l.count("failed logins", loginPoints, addr, user)
}

// count adds points to the scores of an address and a user. A maximum score of 0 disables bans.
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

// add adds points to a score, and bans the name when the scores of all replicas reach the maximum.
func (l *List) add(reason string, points float64, name string, maximum int) {
	now := time.Now()
	s := l.scores.Get(name).Add(points, now, l.cfg.HalfLife)
	if l.points(s, now)+l.sharing.points(name, now, l.cfg.HalfLife) < float64(maximum)-forgotten {
		l.scores.Set(name, s)
		return
	}
	l.scores.Delete(name)
	l.ban(Ban{Name: name, Until: now.Add(l.cfg.Time), Reason: reason})
}

// points returns the current value of a score.
func (l *List) points(s limits.Score, now time.Time) float64 { return s.At(now, l.cfg.HalfLife) }

// ban adds a ban unless there is one that lasts longer, ends sessions, and reports the ban.
func (l *List) ban(b Ban) {
	if l.bans.Get(b.Name).Until.After(b.Until) {
		return
	}
	l.put(b)
	l.cut()
	l.banned(b)
	l.sharing.set(b.Name, &b)
	l.log.Warn("banned", "kind", b.Kind(), "name", b.Name, "until", b.Until, "reason", b.Reason)
}

// put adds a ban or replaces the ban with the same name.
func (l *List) put(b Ban) {
	l.bans.Set(b.Name, b)
	if network := b.network(); network.IsValid() {
		l.networks[b.Name] = network
	}
}

// cut ends the sessions that a ban applies to. A ban because of failures ends only sessions that are not logged in:
// the others have authenticated, and strangers must not be able to end their transfers by guessing passwords. A ban
// by an administrator ends all sessions.
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
		return l.isBanned(name) && l.bans.Get(name).ByAdministrator()
	})
}

// remove removes a ban.
func (l *List) remove(name string) {
	l.bans.Delete(name)
	delete(l.networks, name)
}

// Add bans a name, which has the format of [Parse], for a duration; 0 means the configured one.
func (l *List) Add(name string, d time.Duration) Ban {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := Ban{Name: name, Until: time.Now().Add(cmp.Or(d, l.cfg.Time)), Reason: administrator}
	l.remove(name) // because the new ban may end earlier
	l.ban(b)
	return b
}

// Remove removes a ban and resets the score. It reports whether there was a ban.
func (l *List) Remove(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.isBanned(name)
	l.remove(name)
	l.scores.Delete(name)
	l.sharing.set(name, nil)
	return found
}

// All returns the bans, sorted by name.
func (l *List) All() []Ban {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Ban{}
	for _, b := range l.bans.All() {
		if !b.expired() {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Ban) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
