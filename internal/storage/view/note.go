package view

// A Note is what a command has asked of the storage, for its outcome: the open of a transfer, a change, or a link.
// There is one also for what the user may not do.
type Note struct {
	// Path and To are absolute, as the user sees them. To is of a rename or a copy.
	Path, To string
	// URI and ToURI are those of the objects, empty for a name that none can have.
	URI, ToURI string
	// Restore reports whether the operation was a rename or a copy from the past.
	Restore bool
	Err     error
}

// noted notes an operation on a file, with its error.
func (f *Files) noted(t *target, err error) error {
	f.note(Note{Path: t.name, URI: t.uri(), Err: err})
	return err
}

// notedMove notes an operation on two names, with its error.
func (f *Files) notedMove(from, to *target, err error) error {
	f.note(Note{Path: from.name, URI: from.uri(), To: to.name, ToURI: to.uri(), Restore: from.past, Err: err})
	return err
}
