// Package contract names the interfaces by which one package learns a fact from a value of another package that it must
// not import. For example, the session chooses a reply by an error of the driver, and knows nothing of S3.
//
// The package that defines a type says which contracts the type keeps, next to the type:
//
//	var _ contract.PartsError = (*PartsError)(nil)
//
// So an editor leads from the interface to the type and back, and a renamed method does not compile. A package that
// needs the fact gets it with errors.AsType or a type assertion, and must work without it if the value does not have
// the method.
package contract

import (
	"net"
	"time"
)

// A PendingError refuses an upload at an offset because an interrupted upload of the file ends elsewhere.
type PendingError interface {
	error
	ResumeOffset() int64 // where the interrupted upload ends
	FileChanged() bool   // whether the file has changed since
}

// A RestoringError refuses to read an archived object that S3 restores.
type RestoringError interface {
	error
	ReadyAt() time.Time // when the object can probably be read
}

// A QuarantinedError refuses an upload that an inspector has sent to the quarantine.
type QuarantinedError interface {
	error
	QuarantineURI() string // where the file is
}

// A PartsError refuses a file that needs more parts than the storage allows.
type PartsError interface {
	error
	// PartsLimit returns the number of parts, their size, the bytes of the largest file, and whether all parts must
	// have the same size.
	PartsLimit() (parts, partSize, bytes int64, equal bool)
}

// A DeniedError is the error of a request that S3 denies to the credentials of the server.
type DeniedError interface {
	error
	Needed() string // the IAM actions and resources that the policy must allow
}

// Tagged is an [io/fs.FileInfo] of a file whose object has an ETag.
type Tagged interface {
	ETag() string // without its quotes, empty if S3 has not told it
}

// Receipt is an [io/fs.FileInfo] of a file that was just stored or is being read.
type Receipt interface {
	Checksum() string  // that S3 has confirmed, empty if unknown
	RequestID() string // of the request that stored or reads the file, empty if its response was lost
}

// An Object is returned by the method Sys of an [io/fs.FileInfo]. A fact that the storage does not know is zero. For
// example, a listing has only the time and the storage class.
type Object interface {
	Created() time.Time
	MediaType() string    // as Content-Type writes it, perhaps with parameters
	NameLanguage() string // the language tag of the name
	Archive() string      // the storage class, if S3 must restore the object before it can be read
}

// A ReadDeadliner is a reader of a connection, whose Read can be ended while it waits. [net.Conn] is one.
type ReadDeadliner interface {
	SetReadDeadline(t time.Time) error
}

// An Inner is a connection with another one below it, such as the connection to a load balancer.
type Inner interface {
	NetConn() net.Conn
}

// A Secret is a text of the configuration that nothing prints.
type Secret interface {
	Reveal() string
}
