package view

import (
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// ErrNameDenied reports a file that is not stored because of its name.
var ErrNameDenied = fmt.Errorf("%w: files.deny in the configuration matches the name", fs.ErrPermission)

// A SizeError reports a file that is larger than the configuration allows. It is an EFBIG, so that no store keeps the
// upload for its user to resume.
type SizeError struct{ Limit int64 }

// Error returns a text for the log.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the file is larger than files.max_size in the configuration, %d bytes", e.Limit)
}

// Unwrap returns EFBIG.
func (*SizeError) Unwrap() error { return syscall.EFBIG }

// CheckSize returns an error if a file of the announced number of bytes is too large.
func (v *View) CheckSize(bytes int64) error {
	if v.MaxSize > 0 && bytes > v.MaxSize {
		return &SizeError{v.MaxSize}
	}
	return nil
}

// mayStore refuses names that no file may have, even if a file with this name exists.
func (v *View) mayStore(op string, t *target) error {
	if v.Deny.match(t.canonical) {
		return t.fail(op, ErrNameDenied)
	}
	return nil
}

// A bound counts the bytes of an upload. The zero value has no limit.
type bound struct {
	most int64 // maximum size of the whole file; 0 for no limit
	size int64 // offset of the last byte received
}

// take counts n bytes, and returns an error if the file becomes too large.
func (b *bound) take(n int) error {
	b.size += int64(n)
	if b.most > 0 && b.size > b.most {
		return &SizeError{b.most}
	}
	return nil
}

// reader returns a reader that fails when the file becomes larger than the limit.
func (b *bound) reader(r io.Reader) io.Reader {
	if b.most == 0 {
		return r
	}
	return &boundReader{r, b}
}

type boundReader struct {
	io.Reader
	bound *bound
}

func (r *boundReader) Read(p []byte) (int, error) {
	if err := r.bound.take(0); err != nil {
		return 0, err
	}
	if room := r.bound.most - r.bound.size + 1; int64(len(p)) > room { // one byte shows that the file is too large
		p = p[:room]
	}
	n, err := r.Reader.Read(p)
	if tooLarge := r.bound.take(n); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}

var _ contract.ReadDeadliner = (*boundReader)(nil)

// SetReadDeadline lets the store interrupt a blocked Read.
func (r *boundReader) SetReadDeadline(t time.Time) error {
	if conn, ok := r.Reader.(contract.ReadDeadliner); ok {
		return conn.SetReadDeadline(t)
	}
	return nil
}
