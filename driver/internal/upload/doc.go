// Package upload writes files to S3. A file that fits into one buffer is stored with a single PutObject request. A
// larger file is a multipart upload whose parts are sent in parallel (CreateMultipartUpload, UploadPart,
// UploadPartCopy, CompleteMultipartUpload, AbortMultipartUpload).
//
// [Uploader.Open] returns a [Writer]. The client's bytes go through [Writer.ReadFrom] into a buffer, a full buffer
// becomes a part, and [Writer.Close] publishes the object:
//
//	w, err := uploader.Open(ctx, "/report.csv", "report.csv", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0, nil)
//	...
//	if _, err := w.ReadFrom(conn); err != nil {
//		w.Abort(err)
//	}
//	err = w.Close() // nil: S3 has confirmed the object
//
// With a journal, the owner of an interrupted upload can resume it: [Uploader.Pending] returns its size, and Open with
// this size as the offset continues it (ListParts). [Uploader.CopyByParts] copies objects that are too large for
// CopyObject. A [Limiter], shared by all uploads to an endpoint, limits how many parts are in flight.
//
// # Phases
//
// An upload has one of three kinds. It begins as one request. When its bytes exceed a buffer, it continues in parts, or
// in staged parts if its object has to be inspected before it is visible under the name of the file. Only staged parts
// pass through the phases assembled and copying. [Writer] holds the kind and the phase; no other field records the
// progress of an upload. The column "record" shows the state of its journal record (package journal).
//
//	phase       in S3                             record       after a crash                  the client
//	opened      nothing new; an upload that this  none, or     nothing to remove; the owner   waits
//	            one resumes, as it was            interrupted  can still resume
//	live        one request: nothing;             live or      the owner resumes it, or a     sends bytes,
//	            parts: an open multipart upload   stalled      sweep aborts it                or waits
//	committing  until S3 responds: the old file   live         a sweep removes the rest,      waits
//	            or the new one, never a part;                  but never a file
//	            staged parts: the old file, and
//	            perhaps the staged object
//	assembled   staged parts: an object below     live         a sweep deletes the object     waits
//	            the reserved prefix                            and the record
//	copying     the staged object, and until S3   live         a sweep deletes the object     waits
//	            responds the old file or the new               and the record
//
// Close leaves an upload in one of these phases:
//
//	phase       in S3                             record       later                          the client
//	stored      the file                          none         a sweep deletes a record and   was told
//	                                                           a staged object that are left  "stored"
//	interrupted the old file; the parts, and the  interrupted  the owner resumes it, or a     was told
//	            bytes after them in the record                 sweep removes it               "resume"
//	abandoned   the old file; the parts; perhaps  unchanged:   the owner resumes it when its  was told
//	            the bytes after them, if S3 has   live or      session counts as dead, two    "failed"
//	            stored the record without         stalled      minutes after the last write,
//	            confirming it                                  or a sweep removes it
//	takenOver   the old file; the parts, which    of another   another session decides        was told
//	            belong to another session         session                                     "failed"
//	ending      the old file; whatever S3 failed  none, or     a sweep removes the rest       was told
//	            to remove                         unchanged                                   "failed"
//
// An upload is abandoned if S3 does not store the record that marks it as interrupted. If S3 has never stored a record
// of the upload, neither a session nor a sweep would find it. Its parts are therefore aborted at once, and the phase is
// ending. If S3 refuses the abort too, or without a journal, only the lifecycle rules of the bucket remove the
// parts.
//
// If the response to the last request was lost, an upload stays in committing until Close. S3 may still complete it,
// and S3 servers do not promise to perform only one of two concurrent requests. The session therefore leaves the abort
// to a later sweep.
package upload

import "github.com/babelftp/babelftp/internal/base/s3error"

// A kind is the way in which the bytes of a file get into the bucket.
type kind int

const (
	oneRequest  kind = iota // all bytes fit into a buffer and are sent with one PutObject
	inParts                 // a multipart upload creates the file
	stagedParts             // a multipart upload creates a hidden object, which S3 copies to the file
)

// A phase is the progress of an upload. See the tables in the package documentation.
type phase int

const (
	opened      phase = iota // no byte received yet
	live                     // receiving bytes
	committing               // S3 was asked to create the object, and only its response shows whether it did
	assembled                // S3 has created the staged object; no session can resume the upload
	copying                  // S3 was asked to copy the staged object to the file
	stored                   // the file exists
	interrupted              // the owner can resume the upload
	abandoned                // S3 did not store the record of the interruption, as if the server had crashed
	takenOver                // another session of the owner continues the upload
	ending                   // the upload failed, and its data in S3 is being removed
)

// isOver reports whether Close has ended the upload.
func (p phase) isOver() bool { return p >= stored }

// settled returns the phase that follows p after a request that ended with err: done if the request succeeded, before
// if S3 certainly did not perform it, and p itself if the response was lost.
func (p phase) settled(err error, before, done phase) phase {
	switch {
	case err == nil:
		return done
	case s3error.IsDoubtful(err):
		return p
	}
	return before
}
