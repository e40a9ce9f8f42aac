package report

import (
	"net/netip"
	"time"

	"golang.org/x/text/language"
)

// An Outcome is how a command has ended. The session makes it in one place, when the function of the command has
// returned, and before the client gets the reply.
type Outcome struct {
	Command
	Code     int      // of the reply
	Lines    []string // of the reply
	Language language.Tag

	// Err is what stopped the command, else why its data connection failed, else why the storage did. It is nil where
	// nothing failed, where the reply says it all, and for a login, of which [Observer.LoggedIn] tells.
	Err error
	// Pending says that another command will tell what came of this one: RNTO of RNFR.
	Pending bool

	// Path and To are what a change or a transfer has named, as the user sees it, and To is of a rename or a copy. They
	// are empty where the storage was not asked for any.
	Path, To string
	// URI and ToURI are those of the objects.
	URI, ToURI string
	// Charset is the charset in which the server has read a pathname that can be in several, empty for any other.
	Charset  string
	Stored   *Stored   // the file of a transfer that is complete; nil where nothing is known of it
	Transfer *Transfer // nil for none
}

// firstFailure is the first code of a reply that tells a failure (RFC 959 4.2.1).
const firstFailure = 400

// Failed says whether the reply tells a failure.
func (o *Outcome) Failed() bool { return o.Code >= firstFailure }

// Stored is what S3 has told of a file. What S3 has not told is empty.
type Stored struct {
	Size                      int64
	ETag, Checksum, RequestID string
}

// Progress is how far a transfer is. Any goroutine may ask it.
type Progress interface {
	Direction() string               // upload, download, listing
	Bytes() int64                    // on the data connection so far
	Size() (bytes int64, known bool) // of the whole
	Elapsed() time.Duration          // since the command came
	FirstByte() time.Duration        // until the first byte moved, 0 while none has
}

// A Transfer is one use of a data connection.
type Transfer struct {
	Progress
	Tenant string
	Verb   string // what the storage is asked for: STOR also for STOU, and for APPE after REST
	Path   string // as the user means it
	URI    string // of the object, empty for a listing
	Offset int64  // of REST or RANG
	// Announced is how many bytes ALLO has told, 0 for none.
	Announced int64
	TLS       bool
	// DataAddress is what the reply to PASV or EPSV has told the client, empty for an active transfer.
	DataAddress string
	// ReachedAddress is the address of the server that the control connection of the client has reached. With another
	// address in DataAddress, the data connection of the client may have gone elsewhere.
	ReachedAddress netip.Addr

	// These tell how it has ended, and are for [Observer.CommandEnded]. The log has both errors, because the one often
	// follows from the other.
	Complete            bool
	Connection, Storage error
}
