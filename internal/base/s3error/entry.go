package s3error

// An EntryError is an error about one file of a directory that an operation moves, copies or removes.
type EntryError struct {
	Name string // relative to the directory
	Err  error
}

// Error is for the log.
func (e *EntryError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the error.
func (e *EntryError) Unwrap() error { return e.Err }
