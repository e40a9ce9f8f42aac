package view

import "path"

// A Note describes an operation of a command, for its outcome: opening a transfer, a change, or a link. Operations
// that the user is not permitted to do have a note too.
type Note struct {
	// Path and To are absolute, as the user sees them. To is set for a rename or a copy.
	Path, To string
	// URI and ToURI identify the objects. They are empty for names that no object can have.
	URI, ToURI string
	// Object is the pathname of the object of an upload if it differs from Path.
	Object string
	// Restore is set for a rename or copy of an older version.
	Restore bool
	Err     error
}

// report passes a note about an operation on a file, and returns err.
func (f *Files) report(t *target, err error) error {
	n := Note{Path: t.name, URI: t.uri(), Err: err}
	if t.sent != "" {
		n.Object = path.Join(t.mount.Dir, t.inner)
	}
	f.note(n)
	return err
}

// reportMove passes a note about an operation on two names, and returns err.
func (f *Files) reportMove(from, to *target, err error) error {
	f.note(Note{Path: from.name, URI: from.uri(), To: to.name, ToURI: to.uri(), Restore: from.past, Err: err})
	return err
}
