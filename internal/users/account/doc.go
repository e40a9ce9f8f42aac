// Package account knows the tenants and their users: who may log in with which password, what each user sees and may
// do, and which quotas hold.
//
// A [Registry] takes them from a valid configuration and the buckets of package s3client, by a [Change]. It is the
// [Backend] of the control connection. HOST and the server name of TLS choose a [Tenant] (RFC 7151, section 3). USER
// and PASS choose a [User] of it (RFC 959, section 4.1.1). A [Login] gets a [view.View] over file systems of the
// driver, one for each bucket that the user sees.
//
// Package passwordhash compares passwords. An unknown user takes as long as the user with the costliest hash.
package account
