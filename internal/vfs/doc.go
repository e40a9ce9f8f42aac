// Package vfs describes the storage of a session: what the FTP commands ask of
// a tenant's bucket, and what a user may do there.
//
// [Storage] is the interface between internal/control and whatever holds the
// files. It is an afero.Fs with one operation for each FTP command, so that a
// command costs as few S3 requests as possible. Names are absolute pathnames in
// UTF-8; RFC 959 and RFC 3659 leave their form to the server.
package vfs
