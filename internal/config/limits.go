package config

import (
	"net/netip"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Limits bounds what clients may take of the server. Who is above a maximum of sessions gets 421.
type Limits struct {
	// Most sessions at the same time. With `0` there is no limit.
	Sessions int `yaml:"sessions" since:"0.2.0"`
	// Most sessions of one IPv4 address, or of one /64 of IPv6 addresses, at the same time. With `0` there is no limit.
	SessionsPerAddress int `yaml:"sessions_per_address" since:"0.2.0"`
	// Most sessions that are not logged in, at the same time. With `0` there is no limit.
	SessionsBeforeLogin int `yaml:"sessions_before_login" since:"0.2.0"`
	// Most sessions of one address that are not logged in, at the same time. With `0` there is no limit.
	SessionsBeforeLoginPerAddress int `yaml:"sessions_before_login_per_address" default:"no limit" since:"0.2.0"`
	// How long a session may take to log in, whatever the client sends. After REIN the time begins again.
	LoginTimeout time.Duration `yaml:"login_timeout" since:"0.2.0"`
	// Longest time that a login waits if the client's address has sent wrong passwords. With `0` none waits.
	FailedLoginDelay time.Duration `yaml:"failed_login_delay" since:"0.2.0"`
	// Fewest bytes of an upload in a minute, while others wait for memory that its user or tenant holds. Where it
	// holds more than 15 times as much, a fifteenth of that. A slower one gets 426. With `0` there is no limit.
	MinUploadRate value.Size `yaml:"min_upload_rate" since:"0.2.0"`
	// Longest time that a command takes, a transfer too. The server ends it then. Waiting for a turn at a busy S3
	// server counts.
	CommandTimeout time.Duration `yaml:"command_timeout" default:"no limit" since:"0.2.0"`
	Usage
	// What each address uses: an IPv4 address, or a /64 of IPv6 addresses.
	PerAddress Usage `yaml:"per_address" since:"0.2.0"`
	Networks
	Bans Bans `yaml:"bans" since:"0.2.0"`
}

// What DefaultLimits sets.
const (
	// A session takes some 20 KiB and one descriptor.
	defaultSessions           = 10000
	defaultSessionsPerAddress = 50 // a dozen clients behind one router, with four parallel sessions each
	// What strangers cannot take stays for those who are logged in.
	defaultSessionsBeforeLogin = defaultSessions / 2
	defaultLoginTimeout        = 30 * time.Second
	// Clients with a time limit on replies give up after 15 to 20 seconds.
	defaultFailedLoginDelay = 15 * time.Second
	defaultBanTime          = 15 * time.Minute
	defaultBanHalfLife      = 10 * time.Minute
	defaultOperations       = 100           // each makes up to 32 requests to S3 at the same time
	defaultMinUploadRate    = 4 * value.KiB // a quarter of what a satellite telephone sends, 2,400 bits a second
)

// DefaultLimits is what holds where a configuration says nothing.
func DefaultLimits() Limits {
	return Limits{
		Sessions:            defaultSessions,
		SessionsBeforeLogin: defaultSessionsBeforeLogin,
		SessionsPerAddress:  defaultSessionsPerAddress,
		LoginTimeout:        defaultLoginTimeout,
		FailedLoginDelay:    defaultFailedLoginDelay,
		Usage:               Usage{Operations: defaultOperations},
		Bans:                Bans{Time: defaultBanTime, HalfLife: defaultBanHalfLife},
		MinUploadRate:       defaultMinUploadRate,
	}
}

// TenantLimits bounds what the users of a tenant may take of the server. Who is above a maximum gets 421 after the
// password.
type TenantLimits struct {
	// Most sessions that are logged in at the same time, of all users of the tenant.
	Sessions int `yaml:"sessions" default:"no limit" since:"0.2.0"`
	// Most sessions that each user may have logged in at the same time.
	SessionsPerUser int `yaml:"sessions_per_user" default:"no limit" since:"0.2.0"`
	TimeLimits
	Usage
	// What each user uses.
	PerUser Usage `yaml:"per_user" since:"0.2.0"`
	Networks
}

// UserLimits bounds what one user may take of the server, in place of what the tenant says of each user.
type UserLimits struct {
	// Most sessions that the user may have logged in at the same time.
	Sessions int `yaml:"sessions" default:"sessions_per_user of the tenant" since:"0.2.0"`
	TimeLimits
	Usage
	Networks
}

// TimeLimits are times of the sessions of a tenant or of a user, where they are shorter than those around them.
type TimeLimits struct {
	// How long a session may be idle between two commands, if that is shorter than elsewhere.
	IdleTimeout time.Duration `yaml:"idle_timeout" default:"that of the server" since:"0.2.0"`
	// Longest time that a command takes, if that is shorter than elsewhere.
	CommandTimeout time.Duration `yaml:"command_timeout" default:"that of the server" since:"0.2.0"`
}

// Usage bounds what is used in a second, or at the same time. With `0` there is no limit. After a second of rest, a
// rate allows as many at once.
type Usage struct {
	// Logins a second, else 421. The server and an address count before the password, a tenant and a user after the
	// right one.
	LoginRate int `yaml:"login_rate" default:"no limit" since:"0.2.0"`
	// Commands a second. More wait, and get 421 if they would wait for more than ten seconds.
	CommandRate int `yaml:"command_rate" default:"no limit" since:"0.2.0"`
	// Most transfers and listings at the same time. More get 450.
	Transfers int `yaml:"transfers" default:"no limit" since:"0.2.0"`
	// Most renames, copies and removals of directories at the same time. More get 450.
	Operations int `yaml:"operations" default:"no limit" since:"0.2.0"`
	// Most passive ports that wait for their clients at the same time. More get 425.
	PassivePorts int `yaml:"passive_ports" default:"no limit" since:"0.2.0"`
	// Bytes a second of all uploads together.
	UploadRate value.Size `yaml:"upload_rate" default:"no limit" since:"0.2.0"`
	// Bytes a second of all downloads and listings together.
	DownloadRate value.Size `yaml:"download_rate" default:"no limit" since:"0.2.0"`
}

// Limits is the usage as package limits takes it.
func (u Usage) Limits() limits.Usage {
	return limits.Usage{
		Logins: u.LoginRate, Commands: u.CommandRate, Transfers: u.Transfers, Operations: u.Operations,
		PassivePorts: u.PassivePorts,
		UploadRate:   int(u.UploadRate), DownloadRate: int(u.DownloadRate),
	}
}

// Networks say from where clients come.
type Networks struct {
	// Networks that no ban and no `deny` refuses, such as those of load balancers.
	Allow []value.Network `yaml:"allow" default:"none" since:"0.2.0"`
	// Networks whose clients get 421. To let in those of `allow` only, write `["0.0.0.0/0", "::/0"]`.
	Deny []value.Network `yaml:"deny" default:"none" since:"0.2.0"`
}

// Bans refuse addresses and users for a time after many failures. A failed login counts 1. An unknown command and a
// connection that a limit refuses count 0.1 for the address.
type Bans struct {
	// Failures of an address after which the server refuses its connections.
	AddressScore int `yaml:"address_score" default:"no bans" since:"0.2.0"`
	// Failures of a user after which the server refuses the user's logins, also with the right password.
	UserScore int `yaml:"user_score" default:"no bans" since:"0.2.0"`
	// How long a ban lasts.
	Time time.Duration `yaml:"time" since:"0.2.0"`
	// Time in which the server forgets half of the failures.
	HalfLife time.Duration `yaml:"half_life" since:"0.2.0"`
}

// Refuses tells whether an address is denied and not allowed.
func (n Networks) Refuses(addr netip.Addr) bool { return containsAddr(n.Deny, addr) && !n.Allows(addr) }

// Allows tells whether an address is in `allow`.
func (n Networks) Allows(addr netip.Addr) bool { return containsAddr(n.Allow, addr) }

func containsAddr(networks []value.Network, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n value.Network) bool { return n.Contains(addr) })
}

// Server makes the scopes of the server and of each address.
func (l Limits) Server() *limits.Server {
	return limits.NewServer(
		limits.Sessions{Most: l.Sessions, BeforeLogin: l.SessionsBeforeLogin},
		limits.Sessions{Most: l.SessionsPerAddress, BeforeLogin: l.SessionsBeforeLoginPerAddress},
		l.Limits(), l.PerAddress.Limits())
}

// check reports what is wrong with the values in the section that p leads to.
func (l Limits) check(v *validator, p yamlconf.Path) {
	l.Usage.check(v, p)
	l.PerAddress.check(v, p.Child("per_address"))
	notNegative(v, p.Child("sessions"), l.Sessions)
	notNegative(v, p.Child("sessions_per_address"), l.SessionsPerAddress)
	notNegative(v, p.Child("sessions_before_login"), l.SessionsBeforeLogin)
	notNegative(v, p.Child("sessions_before_login_per_address"), l.SessionsBeforeLoginPerAddress)
	notNegative(v, p.Child("command_timeout"), l.CommandTimeout)
	notNegative(v, p.Child("bans").Child("address_score"), l.Bans.AddressScore)
	notNegative(v, p.Child("bans").Child("user_score"), l.Bans.UserScore)
	for key, d := range map[string]time.Duration{"time": l.Bans.Time, "half_life": l.Bans.HalfLife} {
		if d <= 0 {
			v.report(p.Child("bans").Child(key), "must be longer than 0")
		}
	}
	if l.LoginTimeout <= 0 {
		v.report(p.Child("login_timeout"), "must be longer than 0")
	}
	if l.FailedLoginDelay < 0 || l.FailedLoginDelay >= l.LoginTimeout && l.FailedLoginDelay > 0 {
		v.report(p.Child("failed_login_delay"),
			"%s is not between 0s and limits.login_timeout (%s): a login that waits must still be in time",
			l.FailedLoginDelay, l.LoginTimeout)
	}
}

// check reports what is wrong with the values in the section that p leads to.
func (l TenantLimits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("sessions"), l.Sessions)
	notNegative(v, p.Child("sessions_per_user"), l.SessionsPerUser)
	l.TimeLimits.check(v, p)
	l.Usage.check(v, p)
	l.PerUser.check(v, p.Child("per_user"))
}

// check reports what is wrong with the values in the section that p leads to.
func (l UserLimits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("sessions"), l.Sessions)
	l.TimeLimits.check(v, p)
	l.Usage.check(v, p)
}

// check reports numbers; a size is never negative.
func (u Usage) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("login_rate"), u.LoginRate)
	notNegative(v, p.Child("command_rate"), u.CommandRate)
	notNegative(v, p.Child("transfers"), u.Transfers)
	notNegative(v, p.Child("operations"), u.Operations)
	notNegative(v, p.Child("passive_ports"), u.PassivePorts)
}

func (t TimeLimits) check(v *validator, p yamlconf.Path) {
	notNegative(v, p.Child("idle_timeout"), t.IdleTimeout)
	notNegative(v, p.Child("command_timeout"), t.CommandTimeout)
}
