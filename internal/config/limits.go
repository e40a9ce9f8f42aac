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

// Limits restricts the resources that clients may use. Tenants and users can have further limits.
type Limits struct {
	// Limits for all clients together. `0` disables a limit. Rates allow bursts of one second.
	Server ServerLimits `yaml:"server"`
	// Limits for each address: an IPv4 address or an IPv6 /64 network. By default it may have 50 sessions. Set
	// `sessions: 0` if load balancers hide the addresses of clients, so that wrong passwords of one client do not
	// delay the others.
	Address AddressLimits `yaml:"address"`
	// How long a client may take to log in.
	LoginTimeout time.Duration `yaml:"login_timeout"`
	// FailedLoginDelay is the maximum delay of logins from an address after wrong passwords. It is not a key: it is
	// at most half of LoginTimeout, and 0 if the number of sessions per address is not limited.
	FailedLoginDelay time.Duration
	// Temporary bans after failures.
	Bans Bans `yaml:"bans"`
}

// ServerLimits are the limits for all clients together. `0` disables a limit.
type ServerLimits struct {
	limits.Bounds
	Networks
}

// AddressLimits are the limits for each address: an IPv4 address or an IPv6 /64 network. `0` disables a limit.
type AddressLimits struct{ limits.Bounds }

// TenantLimits are the limits for a tenant and for each of its users.
type TenantLimits struct {
	// Limits for all users of the tenant together.
	Tenant Scope `yaml:"tenant"`
	// Limits for each user of the tenant, unless the user has its own.
	User Scope `yaml:"user"`
}

// Scope has the limits for a tenant or a user. `0` disables a limit.
type Scope struct {
	limits.Usage
	Networks
}

// Or returns x with unset limits filled from other. Networks are inherited only if x has none at all.
func (x Scope) Or(other Scope) Scope {
	x.Usage = fillUnset(x.Usage, other.Usage)
	if x.Allow == nil && x.Deny == nil {
		x.Networks = other.Networks
	}
	return x
}

// fillUnset returns x with zero fields filled from other.
func fillUnset[T any](x, other T) T {
	fields, rest := reflect.ValueOf(&x).Elem(), reflect.ValueOf(other)
	for i := range fields.NumField() {
		if field := fields.Field(i); field.IsZero() {
			field.Set(rest.Field(i))
		}
	}
	return x
}

// Values set by DefaultLimits.
const (
	// A session takes about 20 KiB and a file descriptor.
	defaultSessions           = 10000
	defaultSessionsPerAddress = 50 // a dozen clients behind a NAT with four sessions each
	defaultLoginTimeout       = 30 * time.Second
	// Many clients give up after 15 to 20 seconds without a reply.
	defaultFailedLoginDelay = 15 * time.Second
	defaultBanTime          = 15 * time.Minute
	defaultBanHalfLife      = 10 * time.Minute
	defaultOperations       = 100 // each sends up to 32 parallel requests to S3
)

// DefaultLimits returns the default limits.
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

// Networks restrict the addresses of clients.
type Networks struct {
	// Networks that are never refused by bans or `deny`, for example of load balancers.
	Allow []value.Network `yaml:"allow" default:"none"`
	// Networks whose clients are refused with 421. To accept only the networks in `allow`, use `["0.0.0.0/0",
	// "::/0"]`.
	Deny []value.Network `yaml:"deny" default:"none"`
}

// Bans refuse addresses and users temporarily after failures. A failed login counts as 1 failure. An unknown command
// or a connection that a limit refuses counts as 0.1 failures of the address.
type Bans struct {
	// Number of failures after which an address is banned.
	AddressScore int `yaml:"address_score" default:"no bans"`
	// Number of failures after which a user is banned. During a ban even the right password is refused.
	UserScore int `yaml:"user_score" default:"no bans"`
	// Duration of a ban.
	Time time.Duration `yaml:"time"`
	// HalfLife is the time after which half of the failures are forgotten. It is not a key; raise the scores to ban
	// later.
	HalfLife time.Duration
}

// Refuses reports whether an address is in `deny` and not in `allow`.
func (n Networks) Refuses(addr netip.Addr) bool { return containsAddr(n.Deny, addr) && !n.Allows(addr) }

// Allows reports whether an address is in `allow`.
func (n Networks) Allows(addr netip.Addr) bool { return containsAddr(n.Allow, addr) }

func containsAddr(networks []value.Network, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n value.Network) bool { return n.Contains(addr) })
}

// check validates the section at p.
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

// check validates the section at p.
func (l TenantLimits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("tenant"), l.Tenant)
	notNegative(v, p.Child("user"), l.User)
}
