package driver

import (
	"log/slog"

	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/quota"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/driver/profile"
)

// A Profile says what an S3 server can do beyond what all of them can, and which rules it enforces. The zero value is
// the strictest server.
type Profile = profile.Profile

// ProfileNamed returns the profile of a name, "aws" for example, and false where there is none.
func ProfileNamed(name string) (Profile, bool) { return profile.Named(name) }

// ProfileNames are the names of all profiles.
func ProfileNames() []string { return profile.Names() }

// Objects says what a file system stores objects with, besides their bytes. The zero value leaves everything to the
// bucket.
type Objects = s3object.Objects

// Client is the part of S3 that a file system uses. *s3.Client is one; others wrap it to count, to measure or to break.
type Client = s3api.Client

// WithoutChecksums is an option for APIOptions of S3 clients. It keeps the SDK from adding a checksum to a request, and
// from asking for one in the response. A file system does so itself if its [Profile] has no checksums.
func WithoutChecksums(stack *middleware.Stack) error { return s3api.WithoutChecksums(stack) }

// WriteMetadata is the user metadata that names the request which has stored an object. No two requests have the same
// name. So it tells an object from an equal one that another client has stored.
const WriteMetadata = s3object.WriteKey

// An Object is what [fs.FileInfo]'s Sys returns, as a pointer.
type Object = file.Object

// CustomerKey returns an option for APIOptions of S3 clients. S3 then encrypts the objects with a key of 32 bytes that
// it forgets (SSE-C). It must be the key of all objects that the client meets. Links to them do not work, because a
// link cannot hold the key.
func CustomerKey(key []byte) func(*middleware.Stack) error { return s3api.CustomerKey(key) }

// Restore says how S3 restores archived objects: for how many days, and how fast.
type Restore = s3api.Restore

// A RestoringError reports an archived object that S3 is restoring, and when that is probably done. It is an ENODATA.
type RestoringError = s3api.RestoringError

// Quotas are the usages of a bucket, in which every change of a file system counts, and the limits that it obeys.
type Quotas = quota.Quotas

// Usages is the table of the usages in a bucket. Share one among all file systems of the bucket.
type Usages = quota.Usages

// NewUsages returns an empty table.
func NewUsages() *Usages { return quota.NewUsages() }

// A Usage is how many bytes the objects have whose keys start with a prefix. Its Count lists the objects.
type Usage = quota.Usage

// A Limit is the maximum of a usage, in bytes.
type Limit = quota.Limit

// A Journal is the journal of the multipart uploads that are open, in the bucket itself. Any server finds there what
// an owner can resume. Its Sweep removes the uploads on which no session has worked for an age, and returns how many.
// Its RemoveChanged removes the interrupted uploads to names that sessions have stored, moved or removed since; call it
// every few seconds. Share one among all file systems of a process in a bucket below a prefix. Only uploads of more
// than one part have a record. It costs two requests.
type Journal = journal.Journal

// NewJournal returns the journal of the uploads to keys that start with prefix, without a request. Its records are
// objects too. The logger may be nil. The journals of one place remember together what sessions have changed.
func (e *Endpoint) NewJournal(
	client Client, bucketName, prefix string, profile Profile, objects Objects, log *slog.Logger,
) *Journal {
	changes, _ := e.changes.LoadOrStore([2]string{bucketName, prefix}, journal.NewChanges())
	return journal.New(
		s3api.WithReasons(client), bucketName, prefix, profile, objects, changes.(*journal.Changes), log)
}

// A ResumeError refuses to write to a file while an upload of this owner is pending, because the bytes of two uploads
// must not mix. It also refuses the rest of an upload that has ended since [Fs.PendingUpload] reported it. The owner
// can go on at Size, or start again with os.O_TRUNC. It is an fs.ErrInvalid.
type ResumeError = upload.ResumeError
