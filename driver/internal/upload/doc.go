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
// in staged parts if its object has to be inspected before it gets the name of the file. The phases are the same for
// all kinds, but only staged parts are ever assembled. The states of the record are those of package journal.
//
//	phase       in S3                             record       after a crash                  the client
//	opened      nothing new; an upload that this  none, or     nothing to remove; the owner   waits
//	            one resumes, as it was            interrupted  can still resume
//	live        one request: nothing;             live or      the owner resumes it, or a     sends bytes,
//	            parts: an open multipart upload   stalled      sweep aborts it                or waits
//	assembled   staged parts: an object below     live         a sweep deletes the object     waits
//	            the reserved prefix                            and the record
//	asked       until S3 responds: the old file   live         a sweep removes the rest,      waits
//	            or the new one, never a part                   but never a file
//	stored      the file                          none         a sweep deletes a record and   was told
//	                                                           a staged object that are left  "stored"
//	interrupted the old file; the parts, and the  interrupted  the owner resumes it, or a     was told
//	            bytes after them in the record                 sweep removes it               "resume"
//	ending      the old file; the parts until     ending       a sweep removes the rest       was told
//	            they are removed                                                              "failed"
//
// Without a journal, S3 has no record, and what a crash leaves is left to the bucket's lifecycle rules. An upload that
// S3 may yet complete, because its last response was lost, is not aborted by its session but by a later sweep.
package upload

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
	assembled                // S3 has made the object of staged parts, and no session can resume the upload
	asked                    // S3 was asked to make the file visible, and only its response tells whether it has
	stored                   // the file is there
	interrupted              // the owner can resume the upload
	ending                   // the upload failed, and what S3 has of it is removed
)
