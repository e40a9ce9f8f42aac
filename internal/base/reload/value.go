package reload

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// A Value is loaded from files and reloaded when they change. It is safe for concurrent use.
type Value[T any] struct {
	names   []string
	load    func() (T, error)
	changed func(err error)

	mu     sync.Mutex
	loaded bool
	value  T
	err    error         // error of the last attempt
	files  []os.FileInfo // as of the last attempt; an element is nil if the file was not found
}

// Open loads the value for the first time and returns the error of load. After each later change of the files, the
// Value calls load again and then changed with the error of load.
func Open[T any](load func() (T, error), changed func(err error), names ...string) (*Value[T], error) {
	v := &Value[T]{names: names, load: load, changed: changed}
	_, err := v.Current()
	return v, err
}

// Current returns the current value. If the files have changed but load fails, for example because a change is not
// complete, it returns the previous value. It returns an error only if load has never succeeded. Each call checks the
// files with stat, which is cheap compared to a TLS handshake. A file that could not be read is read again by each
// call.
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
		v.files = nil // the file may become readable without a change that unchanged detects, such as another mode
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

// Check reloads the value if the files have changed. It returns the error of the last attempt, even while Current
// returns the previous value.
func (v *Value[T]) Check() error {
	if _, err := v.Current(); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// unchanged reports whether a and b describe the same unmodified file, or are both nil.
func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
