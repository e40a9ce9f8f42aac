// Package account holds the tenants and their users: it decides who may log in, what each user sees and may do, and
// which limits and quotas apply.
//
// [Registry.Prepare] builds a [Tenant] for each tenant of a valid configuration and a [User] for each of its users.
// The returned [Change] replaces the tenants of the previous configuration when it is applied, without ending the
// sessions that are in progress.
//
// The registry is the [Backend] of the control connection. A login takes these steps:
//
//   - HOST, the TLS server name, or user@tenant selects the tenant (RFC 7151, section 3). USER names the user (RFC
//     959, section 4.1.1).
//   - PASS calls [Registry.Login]. It checks bans, login rates and the throttle for failed logins, and then verifies
//     the client certificate and the password. Users who are not in the configuration are authenticated by a
//     directory, a web hook or an old FTP server; see package auth.
//   - The returned [Login] has a [view.View] over the file systems of package driver, one for each bucket that the
//     user sees. The session uses it until it calls End.
//
// Refusing an unknown user takes as long as refusing a known one, so response times do not reveal which users exist:
// the password is compared with the most expensive hash of all users (package passwordhash), and the time that a
// remote service needs to refuse is imitated.
package account
