// Package linearizability judges the replies that FTP clients get, by nothing but these and their times.
//
// [Team.Play] lets several clients work on few names through several replicas, and records a [History]. [Rules.Check]
// asks github.com/anishathalye/porcupine whether one register for each name explains it. It looks for one order of
// all commands that agrees with every reply, and in which each command takes effect between its beginning and its
// reply. A [Link] between a replica and its S3 server delays requests, refuses them, and loses their responses.
//
// The times come from the monotonic clock of the one process that all clients run in.
//
// The package knows the promises of docs/guarantees.md, FTP and S3. Of this module it uses the FTP client and the S3
// proxy of the tests, but nothing of the code that it judges, so that it shares no assumption with it.
//
// # The model
//
// A name is a register that holds a file or none. Commands read and write it like this:
//
//   - STOR stores at one moment, and under overwrite: deny only where there is no file. APPE adds at one moment. REST
//     and STOR replace the bytes from the offset on at one moment.
//   - KEEP resumes an upload that was interrupted. It stores the whole file at one moment. What was not resumed never
//     shows, but to its user, and not as whole.
//   - DELE with a positive reply has seen a file at one moment, and has deleted what was there at a later one, if
//     anything was. So two clients may both delete a file. The two moments are apart because S3 does not say whether
//     a DELETE found anything.
//   - RNTO has four moments: it reads the source, writes the target, looks at the source, and deletes it. It must have
//     seen the same version by the look, and not just the same bytes. S3 compares ETags, so what the fourth moment
//     deletes may be another version of the same bytes. Others may see both names in between, as docs/guarantees.md
//     says, and may delete the source themselves. The target may be in another bucket.
//   - RETR, SIZE, MLST and the lines of MLSD read each name at one moment. A listing is no snapshot: it reads each
//     name at a moment of its own.
//   - A directory is there while it has a marker, or a file in it. Its name ends in a slash, and its register holds
//     the marker.
//   - MKD makes the marker at one moment, where there is none. So of two clients that make a directory, one succeeds.
//   - RMD has seen the marker at one moment and no file at others, and deletes the marker that is there later, as
//     DELE deletes a file. A directory that the replica may have shown since another RMD may have vanished meanwhile.
//   - A reply 5xx says that the command has no effect, and that there was a reason at one moment. For RETR, SIZE,
//     MLST, DELE and RNFR, and for APPE to a file that was deleted meanwhile, the reason is that there is no file.
//     For REST and STOR it is a file that is shorter than the offset. For MKD it is a directory that is there, and
//     for RMD one that is not, or that has files. Under overwrite: deny, it is a file that stays, for STOR and RNTO.
//     Where only another client was in the way, the reply must be 4xx.
//   - A reply 4xx or none leaves doubt: the command may take effect at any later time, or never. It may take effect
//     once only. Where S3 has answered all requests, a reply 4xx says that the command has no effect, but for a
//     rename: it may have made its copy. [Plan.Settle] finds these.
//
// # What a server without a conditional delete may do
//
// There a rename looks at the source, and then deletes what is there. docs/guarantees.md admits that this may remove
// what another client has stored between the two. [Plan.Excuse] finds the renames to which this may have happened: a
// DELETE that comes after a look, which comes after the target was stored. Such a rename has seen what it has read
// once more, and what was stored before that look stays. A DELETE that is repeated without another look is not
// excused.
//
// # What MinIO may do
//
// While it deletes a file, MinIO may list a directory of that name. So MLSD may show it next to a DELE or RNTO of the
// file.
//
// # What MinIO may do in a bucket that keeps versions
//
// MinIO orders the versions of a name by a time that it takes before it waits for its turn to store them. A
// conditional write has its turn before it takes the time. So what STOR or RNTO stores may be an older version from
// the beginning, where the conditional write of APPE or REST took effect between the beginning and the reply.
//
// If the delete marker of a rename has come in between, what STOR has stored is below it, and nothing is there.
package linearizability
