package reload

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// A Value is what some files say. It is safe for concurrent use.
type Value[T any] struct {
	names   []string
	load    func() (T, error)
	changed func(err error)

	mu     sync.Mutex
	loaded bool
	value  T
	err    error         // of the last attempt
	files  []os.FileInfo // that were read last, nil for one that cannot be found
}

// Open reads the files by load for the first time, and returns its error. After each later change that was read it
// calls changed with the error of load.
func Open[T any](load func() (T, error), changed func(err error), names ...string) (*Value[T], error) {
	v := &Value[T]{names: names, load: load, changed: changed}
	_, err := v.Current()
	return v, err
}

// Current returns what the files say. While they cannot be used, because a change is half done, that is what they
// said before. The error is that of load, where they could never be used. To look at a few files costs little
// compared to a TLS handshake. A file that could not be read is read again each time.
func (v *Value[T]) Current() (T, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	files := make([]os.FileInfo, len(v.names))
	for i, name := range v.names {
		files[i], _ = os.Stat(name) // load returns the error
	}
	if v.loaded && slices.EqualFunc(files, v.files, unchanged) {
		return v.value, nil
	}
	value, err := v.load()
	before := v.err
	v.err, v.files = err, files
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		v.files = nil // what makes a file readable, such as another mode, is no change of it
	}
	if !v.loaded && err != nil {
		return value, err
	}
	if v.loaded && (v.files != nil || before == nil || before.Error() != err.Error()) {
		v.changed(err)
	}
	if err == nil {
		v.value, v.loaded = value, true
	}
	return v.value, nil
}

// Check reads files that have changed, and returns the error of the last attempt, also while Current returns what the
// files said before.
func (v *Value[T]) Check() error {
	if _, err := v.Current(); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// unchanged tells whether two looks at a name have found the same file, or none.
func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
