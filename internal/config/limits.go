package config

import (
	"cmp"
	"net/netip"
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

// ServerLimits bounds what all clients together may use. With `0` there is no limit.
type ServerLimits struct {
	Usage
	Work
	Networks
}

// AddressLimits bounds what each address may use: an IPv4 address, or a /64 of IPv6 addresses. With `0` there is no
// limit.
type AddressLimits struct {
	Usage
	Work
}

// TenantLimits bounds what a tenant and each of its users may use.
type TenantLimits struct {
	// What all users of the tenant together may use.
	Tenant Scope `yaml:"tenant"`
	// What each user of the tenant may use, unless the user has other limits.
	User Scope `yaml:"user"`
}

// Scope bounds what a tenant or a user may use. With `0` there is no limit.
type Scope struct {
	Usage
	Networks
}

// Or is what x says, and where it says nothing what another says. Its networks replace all of the other's.
func (x Scope) Or(other Scope) Scope {
	x.Sessions = cmp.Or(x.Sessions, other.Sessions)
	x.Transfers = cmp.Or(x.Transfers, other.Transfers)
	x.UploadRate = cmp.Or(x.UploadRate, other.UploadRate)
	x.DownloadRate = cmp.Or(x.DownloadRate, other.DownloadRate)
	if x.Allow == nil && x.Deny == nil {
		x.Networks = other.Networks
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

// DefaultLimits is what holds where a configuration says nothing.
func DefaultLimits() Limits {
	return Limits{
		Server: ServerLimits{
			Usage: Usage{Sessions: defaultSessions}, Work: Work{Operations: defaultOperations},
		},
		Address:          AddressLimits{Usage: Usage{Sessions: defaultSessionsPerAddress}},
		LoginTimeout:     defaultLoginTimeout,
		FailedLoginDelay: defaultFailedLoginDelay,
		Bans:             Bans{Time: defaultBanTime, HalfLife: defaultBanHalfLife},
	}
}

// Usage bounds what is used at the same time, or in a second. After a second of rest, a rate allows as many at once.
type Usage struct {
	// Most sessions at the same time. More get 421; those of a tenant or user after the right password.
	Sessions int `yaml:"sessions" default:"no limit"`
	// Most transfers and listings at the same time. More get 450.
	Transfers int `yaml:"transfers" default:"no limit"`
	// Bytes a second of all uploads together.
	UploadRate value.Size `yaml:"upload_rate" default:"no limit"`
	// Bytes a second of all downloads and listings together.
	DownloadRate value.Size `yaml:"download_rate" default:"no limit"`
}

// Work bounds what keeps the server busy, by the server and by an address only.
type Work struct {
	// Logins a second, counted before the password. More get 421.
	LoginRate int `yaml:"login_rate" default:"no limit"`
	// Commands a second. More wait, and get 421 after ten seconds.
	CommandRate int `yaml:"command_rate" default:"no limit"`
	// Most renames, copies and removals of directories at the same time. More get 450.
	Operations int `yaml:"operations" default:"no limit"`
}

// Limits is the usage as package limits takes it.
func (u Usage) Limits() limits.Usage { return usageOf(u, Work{}) }

func usageOf(u Usage, w Work) limits.Usage {
	return limits.Usage{
		Sessions: u.Sessions, Transfers: u.Transfers,
		UploadRate: int(u.UploadRate), DownloadRate: int(u.DownloadRate),
		Logins: w.LoginRate, Commands: w.CommandRate, Operations: w.Operations,
	}
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

// Scopes makes the scopes of the server and of each address.
func (l Limits) Scopes() *limits.Server {
	return limits.NewServer(usageOf(l.Server.Usage, l.Server.Work), usageOf(l.Address.Usage, l.Address.Work))
}

// check reports what is wrong with the values in the section that p leads to.
func (l Limits) check(v *validator, p yamlconf.Path) {
	server, address := p.Child("server"), p.Child("address")
	l.Server.Usage.check(v, server)
	l.Server.Work.check(v, server)
	l.Address.Usage.check(v, address)
	l.Address.Work.check(v, address)
	notNegative(v, p.Child("bans").Child("address_score"), l.Bans.AddressScore)
	notNegative(v, p.Child("bans").Child("user_score"), l.Bans.UserScore)
	if l.Bans.Time <= 0 {
		v.report(p.Child("bans").Child("time"), "must be longer than 0")
	}
	if l.LoginTimeout <= 0 {
		v.report(p.Child("login_timeout"), "must be longer than 0")
	}
}

// check reports what is wrong with the values in the section that p leads to.
func (l TenantLimits) check(v *validator, p yamlconf.Path) {
	l.Tenant.check(v, p.Child("tenant"))
	l.User.check(v, p.Child("user"))
}

// check reports numbers; a size is never negative.
func (u Usage) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("sessions"), u.Sessions)
	notNegative(v, p.Child("transfers"), u.Transfers)
}

func (w Work) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("login_rate"), w.LoginRate)
	notNegative(v, p.Child("command_rate"), w.CommandRate)
	notNegative(v, p.Child("operations"), w.Operations)
}
