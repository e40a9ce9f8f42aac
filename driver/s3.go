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

// A Profile describes the features of an S3 server and the rules that it enforces. The zero value is the strictest
// server.
type Profile = profile.Profile

// ProfileNamed returns the profile with this name, for example "aws", or false if it does not exist.
func ProfileNamed(name string) (Profile, bool) { return profile.Named(name) }

// ProfileNames returns the names of all profiles.
func ProfileNames() []string { return profile.Names() }

// Objects configures the attributes of new objects. The zero value leaves everything to the bucket.
type Objects = s3object.Objects

// Rule gives attributes to a file; see [Options].
type Rule = s3object.Rule

// Origin is the way in which a file gets its name.
type Origin = s3object.Origin

// The origins.
const (
	Uploaded = s3object.Uploaded // written by a client
	Copied   = s3object.Copied   // copied or renamed within S3
)

// Client is the part of the S3 API that a file system uses. *s3.Client implements it. Tests and tools wrap it to count
// requests, measure them or inject faults.
type Client = s3api.Client

// WithoutChecksums is an option for APIOptions of S3 clients. It keeps the SDK from adding a checksum to a request, and
// from requesting one in the response. A file system uses it by itself if its [Profile] has no checksums.
func WithoutChecksums(stack *middleware.Stack) error { return s3api.WithoutChecksums(stack) }

// WriteMetadata is the user metadata with the random name of the request that stored an object. Because the name is
// unique, it distinguishes an object from an equal object of another client.
const WriteMetadata = s3object.WriteKey

// An Object is the result of [fs.FileInfo]'s Sys method, as a pointer.
type Object = file.Object

// CustomerKey returns an option for APIOptions of S3 clients. It adds a key of 32 bytes to the requests (SSE-C). S3
// encrypts the objects with this key and does not keep it, so all objects that the client reads must have been stored
// with the same key. Presigned links do not work, because they cannot contain the key.
func CustomerKey(key []byte) func(*middleware.Stack) error { return s3api.CustomerKey(key) }

// Restore configures how S3 restores archived objects: for how many days, and how fast.
type Restore = s3api.Restore

// A RestoringError reports that S3 is restoring an archived object, and when that will probably be done. Its kind is
// ENODATA.
type RestoringError = s3api.RestoringError

// Quotas combines the usages of a bucket, which count every change by a file system, with the limits of one user.
type Quotas = quota.Quotas

// Usages is the table of the usages in a bucket. All file systems of the bucket should share one.
type Usages = quota.Usages

// NewUsages returns an empty table.
func NewUsages() *Usages { return quota.NewUsages() }

// A Usage is the number of bytes in the objects whose keys begin with a prefix. Its Count method lists the objects.
type Usage = quota.Usage

// A Limit is the maximum of a usage in bytes.
type Limit = quota.Limit

// A Journal records open multipart uploads in the bucket itself, so that every server finds which uploads an owner can
// resume. Its Sweep method removes uploads on which no session has worked for some time, and returns their number. Its
// RemoveChanged method removes interrupted uploads to names that sessions have stored, moved or removed since; call it
// every few seconds. All file systems of a process in the same bucket and prefix should share one. Only uploads of more
// than one part have a record, which costs two requests.
type Journal = journal.Journal

// NewJournal returns the journal of the uploads to keys with this prefix. It sends no request. The records are objects
// too and get the attributes in objects. log may be nil. Journals with the same bucket and prefix share the memory of
// what sessions have changed.
func (e *Endpoint) NewJournal(
	client Client, bucketName, prefix string, profile Profile, objects Objects, log *slog.Logger,
) *Journal {
	changes, _ := e.changes.LoadOrStore([2]string{bucketName, prefix}, journal.NewChanges())
	return journal.New(
		s3api.WithReasons(client), bucketName, prefix, profile, objects, changes.(*journal.Changes), log)
}

// A ResumeError reports that a file cannot be written because an upload of this owner is pending: the bytes of two
// uploads must not be mixed. It also refuses the rest of an upload that has ended since [Fs.PendingUpload] reported it.
// The owner can continue at Size, or start again with os.O_TRUNC. It matches fs.ErrInvalid.
type ResumeError = upload.ResumeError
