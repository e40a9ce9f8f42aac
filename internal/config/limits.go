package config

import (
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits bounds what clients may take of the server: the server as a whole, and each address. Each tenant and each
// user can have limits too.
type Limits struct {
	// What all clients together may use. With `0` a limit is off. A rate allows as many at once after a second of rest.
	Server ServerLimits `yaml:"server"`
	// What each address may use: an IPv4 address, or a /64 of IPv6 addresses. By default it has 50 sessions. With
	// `sessions: 0`, for load balancers that hide addresses, wrong passwords of one client delay no other.
	Address AddressLimits `yaml:"address"`
	// How long a session may take to log in.
	LoginTimeout time.Duration `yaml:"login_timeout"`
	// FailedLoginDelay is the longest wait of a login after wrong passwords from its address. It is no key: half of
	// LoginTimeout at most, and none where addresses have any number of sessions.
	FailedLoginDelay time.Duration
	// Bans after many failures.
	Bans Bans `yaml:"bans"`
}

// ServerLimits limits what all clients together may use. With `0` there is no limit.
type ServerLimits struct {
	limits.Bounds
	Networks
}

// AddressLimits limits what each address may use: an IPv4 address, or a /64 of IPv6 addresses. With `0` there is no
// limit.
type AddressLimits struct{ limits.Bounds }

// TenantLimits bounds what a tenant and each of its users may use.
type TenantLimits struct {
	// What all users of the tenant together may use.
	Tenant Scope `yaml:"tenant"`
	// What each user of the tenant may use, unless the user has other limits.
	User Scope `yaml:"user"`
}

// Scope limits what a tenant or a user may use. With `0` there is no limit.
type Scope struct {
	limits.Usage
	Networks
}

// Or fills the limits that x leaves unset from other. The networks of x replace all networks of other.
func (x Scope) Or(other Scope) Scope {
	x.Usage = or(x.Usage, other.Usage)
	if x.Allow == nil && x.Deny == nil {
		x.Networks = other.Networks
	}
	return x
}

// or fills the zero fields of x from other.
func or[T any](x, other T) T {
	fields, rest := reflect.ValueOf(&x).Elem(), reflect.ValueOf(other)
	for i := range fields.NumField() {
		if field := fields.Field(i); field.IsZero() {
			field.Set(rest.Field(i))
		}
	}
	return x
}

// What DefaultLimits sets.
const (
	// A session takes some 20 KiB and one descriptor.
	defaultSessions           = 10000
	defaultSessionsPerAddress = 50 // a dozen clients behind one router, with four parallel sessions each
	defaultLoginTimeout       = 30 * time.Second
	// Clients with a time limit on replies give up after 15 to 20 seconds.
	defaultFailedLoginDelay = 15 * time.Second
	defaultBanTime          = 15 * time.Minute
	defaultBanHalfLife      = 10 * time.Minute
	defaultOperations       = 100 // each makes up to 32 requests to S3 at the same time
)

// DefaultLimits returns the limits of a configuration that sets none.
func DefaultLimits() Limits {
	l := Limits{
		LoginTimeout:     defaultLoginTimeout,
		FailedLoginDelay: defaultFailedLoginDelay,
		Bans:             Bans{Time: defaultBanTime, HalfLife: defaultBanHalfLife},
	}
	l.Server.Sessions, l.Server.Operations = defaultSessions, defaultOperations
	l.Address.Sessions = defaultSessionsPerAddress
	return l
}

// Networks say from where clients come.
type Networks struct {
	// Networks that no ban and no `deny` refuses, such as those of load balancers.
	Allow []value.Network `yaml:"allow" default:"none"`
	// Networks whose clients get 421. To let in those of `allow` only, write `["0.0.0.0/0", "::/0"]`.
	Deny []value.Network `yaml:"deny" default:"none"`
}

// Bans refuse addresses and users for a time after many failures. A failed login counts 1. An unknown command and a
// connection that a limit refuses count 0.1 for the address.
type Bans struct {
	// Failures of an address after which the server refuses its connections.
	AddressScore int `yaml:"address_score" default:"no bans"`
	// Failures of a user after which even the right password is refused.
	UserScore int `yaml:"user_score" default:"no bans"`
	// How long a ban lasts.
	Time time.Duration `yaml:"time"`
	// HalfLife is the time in which the server forgets half of the failures. It is no key: who needs bans to come
	// later raises the scores.
	HalfLife time.Duration
}

// Refuses tells whether an address is denied and not allowed.
func (n Networks) Refuses(addr netip.Addr) bool { return containsAddr(n.Deny, addr) && !n.Allows(addr) }

// Allows tells whether an address is in `allow`.
func (n Networks) Allows(addr netip.Addr) bool { return containsAddr(n.Allow, addr) }

func containsAddr(networks []value.Network, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n value.Network) bool { return n.Contains(addr) })
}

// check reports what is wrong with the values in the section that p leads to.
func (l Limits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("server"), l.Server)
	notNegative(v, p.Child("address"), l.Address)
	notNegative(v, p.Child("bans"), l.Bans)
	if l.Bans.Time <= 0 {
		v.report(p.Child("bans").Child("time"), "must be longer than 0")
	}
	if l.LoginTimeout <= 0 {
		v.report(p.Child("login_timeout"), "must be longer than 0")
	}
}

// check reports what is wrong with the values in the section that p leads to.
func (l TenantLimits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("tenant"), l.Tenant)
	notNegative(v, p.Child("user"), l.User)
}
