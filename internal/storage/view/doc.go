// Package view describes the storage of a session: what the FTP commands ask of
// a tenant's bucket, and what a user may do there.
//
// A [View] is what one login sees. [View.For] makes the [Files] of one command, with one operation for each FTP
// command, so that a command costs as few S3 requests as possible. An operation resolves a name to its target, asks
// the policy, calls the store of the mount, and notes the event and the audit line. What it asks on the way are values:
//
//	Mounts       show buckets and prefixes under directories
//	Policy       what the user may do with each name
//	Directories  let the home exist before its first file, and what sessions of the user have seen as a directory
//	Past         shows the files as they were, below a directory
//	Endings      let a client that comes back wait for its interrupted upload
//
// These rules decide what a user gets where several of them apply:
//
//   - Rights are asked first, for the name in NFC as the user sees it. A name that the user may not use is denied,
//     whether it could exist or not.
//   - A new name with a control character is refused next, then what S3 cannot do: to move a mount, or a file to
//     another account. So no event is made for what is refused.
//   - Errors, events and notes have the path that the user sees. Events and notes have the URI of the object too.
//   - There is a note for each transfer and each change, also where it is denied.
//
// Pathnames are absolute and in UTF-8. RFC 959 and RFC 3659 leave their form to
// the server; RFC 3659, section 7.5.5 ("perm") tells clients the [Rights].
package view
