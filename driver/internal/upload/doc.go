// Package upload writes files: a small one by one request (S3 operation PutObject), others by parts in parallel
// (CreateMultipartUpload, UploadPart, UploadPartCopy, CompleteMultipartUpload, AbortMultipartUpload).
//
// [Uploader.Open] opens a [Writer], whose Close makes the object visible. With a journal, the owner can resume an
// interrupted upload: [Uploader.Pending] describes it, and Open with its size as the offset resumes it (ListParts).
// [Uploader.CopyByParts] copies an object that is too large for CopyObject. A [Limiter] says how many parts are under
// way.
//
// # Phases
//
// An upload has one of three kinds. It begins as one request. When its bytes exceed a buffer, it continues in parts, or
// in staged parts if its object has to be inspected before it gets the name of the file. [Writer] holds the kind and
// the phase, and nothing else tells how far an upload has come. Only staged parts are ever assembled and copied. The
// states of the record are those of package journal, which uses the same words.
//
//	phase       in S3                             record       after a crash                  the client
//	opened      nothing new; an upload that this  none, or     nothing to remove; the owner   waits
//	            one resumes, as it was            interrupted  can still resume
//	live        one request: nothing;             live or      the owner resumes it, or a     sends bytes,
//	            parts: an open multipart upload   stalled      sweep aborts it                or waits
//	asked       until S3 responds: the old file   live         a sweep removes the rest,      waits
//	            or the new one, never a part;                  but never a file
//	            staged parts: the old file, and
//	            perhaps the staged object
//	assembled   staged parts: an object below     live         a sweep deletes the object     waits
//	            the reserved prefix                            and the record
//	copying     the staged object, and until S3   live         a sweep deletes the object     waits
//	            responds the old file or the new               and the record
//
// Close ends an upload in one of these phases. "After a crash" then reads "later".
//
//	phase       in S3                             record       later                          the client
//	stored      the file                          none         a sweep deletes a record and   was told
//	                                                           a staged object that are left  "stored"
//	interrupted the old file; the parts, and the  interrupted  the owner resumes it, or a     was told
//	            bytes after them in the record                 sweep removes it               "resume"
//	abandoned   the old file; the parts; perhaps  as it was:   the owner resumes it when its  was told
//	            the bytes after them, if S3 has   live or      session counts as dead, two    "failed"
//	            taken the record without saying   stalled      minutes after the last write,
//	            so                                             or a sweep removes it
//	takenOver   the old file; the parts, which    of another   another session decides        was told
//	            belong to another session         session                                     "failed"
//	ending      the old file; what S3 did not     none, or as  a sweep removes the rest       was told
//	            remove                            it was                                      "failed"
//
// An upload is abandoned if S3 does not take the record that gives it up. If S3 has never taken a record of it, no
// session and no sweep would find it, so its parts are aborted at once, and it is ending. If S3 refuses that too, or
// without a journal, what is left is removed by the lifecycle rules of the bucket.
//
// If the last response of S3 was lost, an upload stays asked until Close. S3 may yet complete it, and no S3 server
// promises that it performs only one of two requests. So its session does not abort it, but a later sweep.
package upload

import "github.com/babelftp/babelftp/internal/base/s3error"

// A kind says how the bytes of a file get into the bucket.
type kind int

const (
	oneRequest  kind = iota // all bytes fit into a buffer, and are one PutObject
	inParts                 // a multipart upload makes the file
	stagedParts             // a multipart upload makes an object that no user sees, which S3 copies to the file
)

// A phase is how far an upload has come. The package documentation has the table.
type phase int

const (
	opened      phase = iota // no byte has come
	live                     // bytes come, or wait for the last request
	asked                    // S3 was asked to make an object of the bytes, and only its response tells whether it has
	assembled                // S3 has made the object of staged parts, and no session can resume the upload
	copying                  // S3 was asked to copy that object to the file
	stored                   // the file is there
	interrupted              // the owner can resume the upload
	abandoned                // as if the server had died: S3 did not take the record that gives the upload up
	takenOver                // another session of the owner has the upload
	ending                   // the upload failed, and what S3 has of it is removed
)

// isOver reports whether Close has ended the upload.
func (p phase) isOver() bool { return p >= stored }

// settled returns the phase after an upload has asked S3 for something: done if S3 has done it, before if S3 has
// certainly refused it, and the same phase if the response was lost.
func (p phase) settled(err error, before, done phase) phase {
	switch {
	case err == nil:
		return done
	case s3error.IsDoubtful(err):
		return p
	}
	return before
}
