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
var ErrNameDenied = fmt.Errorf("%w: files.deny in the configuration has the name", fs.ErrPermission)

// A SizeError reports a file that is larger than the configuration allows. It is an EFBIG, so that no store keeps the
// upload for its user to resume.
type SizeError struct{ Most int64 }

// Error is for the log.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the file is larger than files.max_size in the configuration, %d bytes", e.Most)
}

// Unwrap returns EFBIG.
func (*SizeError) Unwrap() error { return syscall.EFBIG }

// CheckSize refuses a file of so many bytes, which the client has announced.
func (v *View) CheckSize(bytes int64) error {
	if v.MaxSize > 0 && bytes > v.MaxSize {
		return &SizeError{v.MaxSize}
	}
	return nil
}

// mayStore refuses a name that no file may get, whatever has it now.
func (v *View) mayStore(op string, t *target) error {
	if v.Deny.match(t.canonical) {
		return t.fail(op, ErrNameDenied)
	}
	return nil
}

// A bound counts the bytes of an upload. The zero value has no limit.
type bound struct {
	most int64 // of the whole file, 0 for no limit
	size int64 // up to the last byte that has come
}

// take counts bytes, and returns an error where they are too many.
func (b *bound) take(n int) error {
	b.size += int64(n)
	if b.most > 0 && b.size > b.most {
		return &SizeError{b.most}
	}
	return nil
}

// reader is r for as many bytes as the file may have. The byte after those is an error.
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
	if room := r.bound.most - r.bound.size + 1; int64(len(p)) > room { // one byte tells that there are more
		p = p[:room]
	}
	n, err := r.Reader.Read(p)
	if tooLarge := r.bound.take(n); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}

var _ contract.ReadDeadliner = (*boundReader)(nil)

// SetReadDeadline lets the store end a Read that waits.
func (r *boundReader) SetReadDeadline(t time.Time) error {
	if conn, ok := r.Reader.(contract.ReadDeadliner); ok {
		return conn.SetReadDeadline(t)
	}
	return nil
}
