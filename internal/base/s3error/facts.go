package s3error

import "time"

// These errors carry facts for packages that must not import the driver, such as the one that chooses a reply. Find the
// error that implements one by its assertion in the driver.

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
