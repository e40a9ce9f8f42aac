// Package tenant knows the tenants and their users: who may log in with which password, what each user sees and may do, and which quotas hold.
//
// [NewRegistry] makes a [Registry] from a valid configuration and the buckets of package s3client. The Registry is the backend of the control
// connection: HOST and the server name of TLS choose a tenant (RFC 7151), USER and PASS a user of it. A login gets a storage of its own, made
// of layers of package vfs over file systems of the driver, one for each bucket that the user sees.
//
// Passwords are kept as argon2id hashes (RFC 9106), see [HashPassword]. They are compared in the form of RFC 8265, section 4.2.
package tenant
