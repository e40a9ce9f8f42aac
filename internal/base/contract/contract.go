// Package contract has the interfaces through which a package gets information from a value whose type is defined in a
// package that it must not import. For example, the session chooses a reply for an error of the driver without
// depending on S3.
//
// The package that defines a type asserts next to it which contracts it implements:
//
//	var _ contract.PartsError = (*PartsError)(nil)
//
// The assertion lets an editor find the interface from the type and the reverse, and renaming a method does not
// compile. A package that needs the information uses errors.AsType or a type assertion, and must also work if the value
// does not implement the contract.
package contract

import (
	"net"
	"time"
)

// A PendingError is the error for an upload at a wrong offset: an interrupted upload of the file ends elsewhere.
type PendingError interface {
	error
	ResumeOffset() int64 // where the interrupted upload ends
	FileChanged() bool   // whether the file has changed since
}

// A RestoringError is the error for reading an archived object that S3 is restoring.
type RestoringError interface {
	error
	ReadyAt() time.Time // when the object can probably be read
}

// A QuarantinedError is the error for an upload that was refused by an inspector and stored in the quarantine.
type QuarantinedError interface {
	error
	QuarantineURI() string // URI of the file in the quarantine
}

// A PartsError is the error for a file that needs more parts than the storage allows.
type PartsError interface {
	error
	// PartsLimit returns the maximum number of parts, their size in bytes, the maximum size of a file in bytes, and
	// whether all parts must have the same size.
	PartsLimit() (parts, partSize, bytes int64, equal bool)
}

// A DeniedError is the error for a request that S3 denied because the credentials of the server lack a permission.
type DeniedError interface {
	error
	Needed() string // the IAM actions and resources that the policy must allow
}

// Tagged is an [io/fs.FileInfo] of a file whose object has an ETag.
type Tagged interface {
	ETag() string // without quotes; empty if S3 has returned none
}

// Receipt is an [io/fs.FileInfo] of a file that was just stored or is being read.
type Receipt interface {
	Checksum() string  // that S3 has confirmed, empty if unknown
	RequestID() string // ID of the request that stored or reads the file, empty if its response was lost
	Verified() string  // how the promised hash was confirmed (see docs/copies-and-hashes.md), empty without one
}

// An Object is returned by the method Sys of an [io/fs.FileInfo]. A fact that the storage does not know is zero. For
// example, a listing has only the time and the storage class.
type Object interface {
	Created() time.Time
	MediaType() string    // Content-Type, possibly with parameters
	NameLanguage() string // language tag (BCP 47) of the name
	Archive() string      // storage class, if S3 must restore the object before it can be read
}

// A ReadDeadliner is a connection reader whose blocked Read can be interrupted by a deadline. [net.Conn] implements it.
type ReadDeadliner interface {
	SetReadDeadline(t time.Time) error
}

// An Inner is a connection that wraps another one, such as the connection to a load balancer.
type Inner interface {
	NetConn() net.Conn
}

// A Secret is a configuration value that must never be printed.
type Secret interface {
	Reveal() string
}
