package s3error

// An EntryError is an error that concerns one file of a directory that is being moved, copied or removed.
type EntryError struct {
	Name string // relative to the directory
	Err  error
}

// Error implements error.
func (e *EntryError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *EntryError) Unwrap() error { return e.Err }
