// Package bans refuses addresses and users for a time after many failures, or because an administrator says so.
//
// A [List] keeps scores, which decay, and bans. [List.Check] refuses the connections of an address (reply 421, RFC 959, section 4.2.1), and
// [List.CheckUser] logins. Both return a [limits.Error]. The list is in the memory of one process.
package bans

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/limits"
)

const (
	// loginPoints is what a failed login adds to the scores.
	loginPoints = 1
	// offencePoints is what an unknown command, or a connection that a limit refuses, adds to the score of an address. Clients do that by mistake too.
	offencePoints = 0.1
	// sweepAt is the least number of scores and bans at which the list looks for those to remove.
	sweepAt = 1000
	// forgotten is the score below which it is removed.
	forgotten = 0.05
)

// A Ban is an address or a user whom the server refuses.
type Ban struct {
	// Name is that of [Parse].
	Name   string    `json:"name"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
}

// A List has the scores and the bans.
type List struct {
	cfg      limit.Bans
	networks limit.Networks
	log      *slog.Logger
	banned   func(kind string)

	mu      sync.Mutex
	scores  map[string]*score
	bans    map[string]Ban
	sweepAt int
}

// A score is the number of failures, and when that was right.
type score struct {
	points float64
	at     time.Time
}

// New makes a list without bans. It calls banned for each ban, with "address" or "user".
func New(cfg limit.Bans, networks limit.Networks, log *slog.Logger, banned func(kind string)) *List {
	return &List{cfg: cfg, networks: networks, log: log, banned: banned, scores: map[string]*score{}, bans: map[string]Ban{}, sweepAt: sweepAt}
}

// addressName is the name of what an address counts as: see [limits.Network].
func addressName(addr netip.Addr) string {
	network := limits.Network(addr)
	if network.IsSingleIP() {
		return network.Addr().String()
	}
	return network.String()
}

// Parse returns the name of an address, of a network that counts as one address, or of a user, which is written USER@TENANT.
func Parse(name string) (string, error) {
	network, err := netip.ParsePrefix(name)
	addr := network.Addr()
	if err != nil {
		if addr, err = netip.ParseAddr(name); err != nil {
			if at := strings.LastIndexByte(name, '@'); at > 0 && at < len(name)-1 {
				return name, nil
			}
			return "", fmt.Errorf("%q is neither an address nor a user: write it like 203.0.113.7 or alice@acme", name)
		}
		return addressName(addr), nil
	}
	if counted := limits.Network(addr); counted != network.Masked() {
		return "", fmt.Errorf("%s is no network that counts as one client, such as %s: write networks to limits.deny in the configuration", name, counted)
	}
	return addressName(addr), nil
}

// Check implements [limits.Guard].
func (l *List) Check(addr netip.Addr) error {
	switch {
	case l.networks.Allows(addr):
		return nil
	case l.networks.Refuses(addr):
		return &limits.Error{Limit: limits.Deny}
	}
	return l.check(addressName(addr))
}

// CheckUser returns an error for a user who is banned.
func (l *List) CheckUser(name string) error { return l.check(name) }

func (l *List) check(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ban, found := l.bans[name]; found && time.Now().Before(ban.Until) {
		return &limits.Error{Limit: limits.Bans}
	}
	return nil
}

// Offended implements [limits.Guard].
func (l *List) Offended(addr netip.Addr) {
	l.addAddress(addr, offencePoints, "unknown commands or refused connections")
}

// LoginFailed counts a failed login from an address as a user.
func (l *List) LoginFailed(addr netip.Addr, user string) {
	const reason = "failed logins"
	l.addAddress(addr, loginPoints, reason)
	l.add("user", user, loginPoints, l.cfg.UserScore, reason)
}

func (l *List) addAddress(addr netip.Addr, points float64, reason string) {
	if addr.IsValid() && !l.networks.Allows(addr) {
		l.add("address", addressName(addr), points, l.cfg.AddressScore, reason)
	}
}

// add adds to a score, and bans where that reaches a maximum. A maximum of 0 is none.
func (l *List) add(kind, name string, points float64, most int, reason string) {
	if most == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s := l.scores[name]
	if s == nil {
		l.sweep(now)
		s = &score{at: now}
		l.scores[name] = s
	}
	l.decay(s, now)
	if s.points += points; s.points < float64(most)-forgotten {
		return
	}
	delete(l.scores, name)
	l.ban(kind, Ban{Name: name, Until: now.Add(l.cfg.Time), Reason: reason})
}

func (l *List) decay(s *score, now time.Time) {
	s.points *= math.Exp2(-now.Sub(s.at).Seconds() / l.cfg.HalfLife.Seconds())
	s.at = now
}

func (l *List) ban(kind string, b Ban) {
	if l.bans[b.Name].Until.After(b.Until) {
		return
	}
	l.bans[b.Name] = b
	l.banned(kind)
	l.log.Warn("banned", "kind", kind, "name", b.Name, "until", b.Until, "reason", b.Reason)
}

// sweep removes what is over, each time when there is twice as much.
func (l *List) sweep(now time.Time) {
	if len(l.scores)+len(l.bans) < l.sweepAt {
		return
	}
	for name, s := range l.scores {
		if l.decay(s, now); s.points < forgotten {
			delete(l.scores, name)
		}
	}
	for name, b := range l.bans {
		if !now.Before(b.Until) {
			delete(l.bans, name)
		}
	}
	l.sweepAt = max(sweepAt, 2*(len(l.scores)+len(l.bans)))
}

// Add bans a name for a time, or for that of the configuration with 0. The name is that of [Parse].
func (l *List) Add(name string, d time.Duration) Ban {
	kind := "address"
	if strings.Contains(name, "@") {
		kind = "user"
	}
	b := Ban{Name: name, Until: time.Now().Add(cmp.Or(d, l.cfg.Time)).Round(time.Second), Reason: "an administrator"}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.bans, name) // a new time may be shorter
	l.ban(kind, b)
	return b
}

// Remove ends a ban, and forgets the failures. It returns false where there is no ban.
func (l *List) Remove(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, found := l.bans[name]
	delete(l.bans, name)
	delete(l.scores, name)
	return found && time.Now().Before(b.Until)
}

// All returns the bans, sorted by name.
func (l *List) All() []Ban {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []Ban{}
	for _, b := range l.bans {
		if time.Now().Before(b.Until) {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Ban) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
