// Package view describes the storage of a session: what the FTP commands ask of
// a tenant's bucket, and what a user may do there.
//
// [Storage] is the interface between internal/ftp/control and the driver. It is an
// afero.Fs with one operation for each FTP command, so that a command costs as few
// S3 requests as possible. The storage of a user is made of layers over the driver:
//
//	NewPolicyFS     refuses what the policy of the user does not allow
//	NewEndingFS     lets a client that comes back wait for its interrupted upload
//	NewDirectoryFS  lets the home exist before its first file, and what sessions of the user have seen as a directory
//	NewMountFS      shows buckets and prefixes under directories
//
// Pathnames are absolute and in UTF-8. RFC 959 and RFC 3659 leave their form to
// the server; RFC 3659, section 7.5.5 ("perm") tells clients the [Rights].
package view
