package report

import (
	"net/netip"
	"time"

	"golang.org/x/text/language"
)

// An Outcome is the result of a command. The session creates it in one place, after the function of the command has
// returned and before the client gets the reply.
type Outcome struct {
	Command
	Code     int      // reply code
	Lines    []string // reply lines
	Language language.Tag

	// Err is the error that stopped the command, or else the error of its data connection, or else the error of the
	// storage. It is nil on success, if the reply explains the failure completely, and for logins, which are reported
	// to [Observer.LoggedIn].
	Err error
	// Pending means that a later command will have the result, for example RNTO after RNFR.
	Pending bool

	// Path and To are the pathnames of a change or transfer, as the user sees them. To is only set for a rename or a
	// copy. Both are empty if the storage was not called.
	Path, To string
	// URI and ToURI identify the objects.
	URI, ToURI string
	// Charset is the charset of a pathname that is valid in several charsets, otherwise empty.
	Charset  string
	Stored   *StoredFile // file of a completed transfer; nil if unknown
	Transfer *Transfer   // nil if there was none
}

// firstFailure is the first reply code that reports a failure (RFC 959 section 4.2.1).
const firstFailure = 400

// Failed reports whether the reply is a failure.
func (o *Outcome) Failed() bool { return o.Code >= firstFailure }

// StoredFile holds what S3 returned about a stored file. Unknown fields are empty.
type StoredFile struct {
	Size                      int64
	ETag, Checksum, RequestID string
	Verified                  string // how the hash that the client has promised was confirmed: s3 or parts
}

// Progress is the progress of a transfer. Its methods are safe for concurrent use.
type Progress interface {
	Direction() string               // upload, download, listing
	Bytes() int64                    // transferred on the data connection so far
	Size() (bytes int64, known bool) // size of the whole file
	Elapsed() time.Duration          // since the command arrived
	FirstByte() time.Duration        // until the first byte was transferred, 0 before
}

// A Transfer is one use of a data connection.
type Transfer struct {
	Progress
	Tenant string
	Verb   string // operation of the storage: STOR for STOU too, and for APPE after REST
	Path   string // absolute pathname, as the user sees it
	URI    string // URI of the object, empty for a listing
	Offset int64  // argument of REST or RANG
	// Announced is the number of bytes announced with ALLO, or 0.
	Announced int64
	TLS       bool
	// DataAddress is the address in the reply to PASV or EPSV, empty for an active transfer.
	DataAddress string
	// ReachedAddress is the server address that the client's control connection uses. If DataAddress differs, the data
	// connection of the client may have gone to another machine.
	ReachedAddress netip.Addr

	// The result of the transfer, for [Observer.CommandEnded]. The log contains both errors, because one often causes
	// the other.
	Complete            bool
	Connection, Storage error
}
