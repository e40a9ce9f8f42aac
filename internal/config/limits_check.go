package config

import (
	"time"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Check reports what is wrong with the values in the section that p leads to.
func (l Limits) Check(p yamlconf.Path, report yamlconf.Report) {
	l.check(p, report)
	l.PerAddress.check(p.Child("per_address"), report)
	notNegative(p.Child("sessions"), l.Sessions, report)
	notNegative(p.Child("sessions_per_address"), l.SessionsPerAddress, report)
	notNegative(p.Child("sessions_before_login"), l.SessionsBeforeLogin, report)
	notNegative(p.Child("sessions_before_login_per_address"), l.SessionsBeforeLoginPerAddress, report)
	notNegative(p.Child("command_timeout"), l.CommandTimeout, report)
	notNegative(p.Child("bans").Child("address_score"), l.Bans.AddressScore, report)
	notNegative(p.Child("bans").Child("user_score"), l.Bans.UserScore, report)
	for key, d := range map[string]time.Duration{"time": l.Bans.Time, "half_life": l.Bans.HalfLife} {
		if d <= 0 {
			report(p.Child("bans").Child(key), "must be longer than 0")
		}
	}
	if l.LoginTimeout <= 0 {
		report(p.Child("login_timeout"), "must be longer than 0")
	}
	if l.FailedLoginDelay < 0 || l.FailedLoginDelay >= l.LoginTimeout && l.FailedLoginDelay > 0 {
		report(
			p.Child("failed_login_delay"),
			"%s is not between 0s and limits.login_timeout (%s): a login that waits must still be in time",
			l.FailedLoginDelay, l.LoginTimeout)
	}
}

// Check reports what is wrong with the values in the section that p leads to.
func (l TenantLimits) Check(p yamlconf.Path, report yamlconf.Report) {
	notNegative(p.Child("sessions"), l.Sessions, report)
	notNegative(p.Child("sessions_per_user"), l.SessionsPerUser, report)
	l.TimeLimits.check(p, report)
	l.Usage.check(p, report)
	l.PerUser.check(p.Child("per_user"), report)
}

// Check reports what is wrong with the values in the section that p leads to.
func (l UserLimits) Check(p yamlconf.Path, report yamlconf.Report) {
	notNegative(p.Child("sessions"), l.Sessions, report)
	l.TimeLimits.check(p, report)
	l.Usage.check(p, report)
}

// check reports numbers; a size is never negative.
func (u Usage) check(p yamlconf.Path, report yamlconf.Report) {
	notNegative(p.Child("login_rate"), u.LoginRate, report)
	notNegative(p.Child("command_rate"), u.CommandRate, report)
	notNegative(p.Child("transfers"), u.Transfers, report)
	notNegative(p.Child("operations"), u.Operations, report)
	notNegative(p.Child("passive_ports"), u.PassivePorts, report)
}

func (t TimeLimits) check(p yamlconf.Path, report yamlconf.Report) {
	notNegative(p.Child("idle_timeout"), t.IdleTimeout, report)
	notNegative(p.Child("command_timeout"), t.CommandTimeout, report)
}

func notNegative[N int | time.Duration](p yamlconf.Path, n N, report yamlconf.Report) {
	if n < 0 {
		report(p, "must be at least 0, which means no limit")
	}
}
