// Package linearizability checks whether the replies that FTP clients receive are linearizable, using only the
// replies and their times.
//
// [Team.Play] lets several clients work on a few names through several replicas and records a [History].
// [Rules.Check] passes the history to github.com/anishathalye/porcupine, which searches for one order of all
// commands that agrees with every reply and in which each command takes effect between its call and its reply.
// Every name is modeled as one register. A [Link] between a replica and its S3 server delays requests, refuses
// them, and drops their responses.
//
// All clients run in one process, so the times come from a single monotonic clock.
//
// The package is based on the promises in docs/guarantees.md, on FTP and on S3. From this module it imports only
// the FTP client and the S3 proxy of the tests, so it shares no assumptions with the code under test.
//
// # The model
//
// A name is a register that either holds a file or is empty. Commands read and write it as follows:
//
//   - STOR stores the file atomically. Under overwrite: deny it stores only if no file exists. APPE appends atomically.
//     REST with STOR atomically replaces the bytes from the offset on.
//   - KEEP resumes an interrupted upload and stores the whole file atomically. An upload that was not resumed is
//     visible only to its own user, and only as an incomplete file.
//   - DELE with a positive reply saw a file at one point and deleted whatever the name held at a later point, possibly
//     nothing. Two clients may therefore both delete the same file. The points differ because S3 does not report
//     whether a DELETE found an object.
//   - RNTO takes four steps: it reads the source, writes the target, checks the source again, and deletes it. The check
//     must find the version that was read, not only the same bytes. S3 compares ETags, so the last step may delete
//     another version with the same bytes. Other clients may see both names in between, as docs/guarantees.md says, and
//     may delete the source themselves. The target may be in another bucket.
//   - RETR, SIZE, MLST and each line of MLSD read a name atomically. A listing is not a snapshot: it reads every name
//     at a different point.
//   - A directory exists while it has a marker or contains a file. Its name ends in a slash, and its register holds the
//     marker.
//   - MKD creates the marker atomically if it does not exist. If two clients make the same directory, only one
//     succeeds.
//   - RMD saw the marker at one point and no files at others, and then deletes the marker like DELE deletes a file. If
//     the replica may have shown the directory since another RMD, the directory may have vanished before RMD ran.
//   - A 5xx reply means that the command has no effect, and that the reason for it existed at some point. For RETR,
//     SIZE, MLST, DELE and RNFR, and for APPE to a file that was deleted concurrently, the reason is a missing file.
//     For REST with STOR, the file is shorter than the offset. For MKD, the directory exists; for RMD, it does not
//     exist or contains files. Under overwrite: deny, STOR and RNTO find an existing file. If only another client was
//     in the way, the reply must be 4xx.
//   - A 4xx reply, or no reply, leaves doubt: the command may take effect once at any later time, or never. If S3
//     responded to all requests, a 4xx reply means that the command has no effect, except for a rename, which may have
//     copied the file. [Plan.Settle] finds these commands.
//
// # Servers without a conditional delete
//
// On these servers a rename checks the source and then deletes the name unconditionally. docs/guarantees.md admits
// that this may remove a file that another client stored between the two requests. [Plan.Excuse] finds the renames
// that this may have happened to: they sent a DELETE after a check that came after the target was stored. Such a
// rename saw the version it had read once more, and a file stored before that check must survive. A DELETE that is
// repeated without another check is not excused.
//
// # MinIO: listings during a delete
//
// While MinIO deletes a file, it may list a directory with the same name. MLSD may therefore show this directory
// while a DELE or RNTO of the file runs.
//
// # MinIO: buckets that keep versions
//
// MinIO orders the versions of an object by a time that it takes before it waits for the lock on the object. A
// conditional write takes the lock first and then the time. The version that STOR or RNTO stores may therefore be
// older than the current one from the start, if a conditional write by APPE or REST took effect between the call
// and the reply.
//
// If the delete marker of a rename was written in between, the version that STOR stored is below the marker, and
// the name has no file.
package linearizability
