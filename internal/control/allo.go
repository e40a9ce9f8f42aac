package control

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// What an upload may turn out to be when ALLO has announced its size. The second is an fs.ErrInvalid: the bytes are not those of the
// file, so that nothing of them is worth keeping.
var (
	errTooShort = errors.New("fewer bytes than ALLO has announced")
	errTooLong  = fmt.Errorf("more bytes than ALLO has announced: %w", fs.ErrInvalid)
)

// allo is ALLO (RFC 959 4.1.3). Objects need no room made for them, but a client
// that says how large its file is, as lftp does, lets a connection that broke be
// told from one that has ended. 200, because some cameras ask again and again
// after 202. No size is known of a client that says 0, or that has records.
func (s *session) allo(arg string) {
	number, record, records := strings.Cut(strings.ToUpper(arg), " R ")
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !isNumber(number) || records && !isNumber(record) {
		s.syntaxError()
		return
	}
	s.parameters.announced = nil
	if size > 0 && !records {
		s.parameters.announced = &size
	}
	s.say(200, i18n.AllocationNotNeeded)
}

// newUpload is a transfer to the server.
func (s *session) newUpload() *transfer {
	return &transfer{upload: true, size: s.parameters.announced}
}

// checkSize compares an upload that would now become visible with what ALLO has
// announced. Behind REST and with APPE that may be the size of the file or of the
// rest of it: RFC 959 does not say, and lftp means the file.
//
// What is too short is a data connection that was lost (426): its end is no end of
// the file. What is too long has exceeded its allocation (552).
func (t *transfer) checkSize() error {
	if t.size == nil || t.file == nil || t.bytes.Load() == *t.size {
		return nil
	}
	info, err := t.file.Stat()
	if err != nil {
		return fmt.Errorf("size of an upload: %w", err)
	}
	switch {
	case info.Size() == *t.size:
		return nil
	case t.bytes.Load() < *t.size:
		err = errTooShort
	default:
		err = errTooLong
	}
	t.fail(err)
	return err
}
