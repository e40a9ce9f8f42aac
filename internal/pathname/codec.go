package pathname

import (
	"path"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/internal/charset"
)

// A Codec translates between the pathnames of a client and those of the storage, which
// are UTF-8.
type Codec struct {
	Rules
	UTF8 bool // whether the client has said that its pathnames are UTF-8
}

// maxPathname is the length in bytes of the longest key of S3.
const maxPathname = 1024

// Resolve makes a command's argument an absolute, clean pathname in UTF-8. Its
// encoding is checked before any ".." in it is looked at; every SP in it,
// leading and trailing ones too, belongs to it (RFC 2640 3.1). No argument means
// the working directory. The error is [syscall.EILSEQ] for a NUL, an [EncodingError], or
// [syscall.ENAMETOOLONG].
func (c Codec) Resolve(workingDirectory, arg string) (string, error) {
	if arg == "" {
		return workingDirectory, nil
	}
	if strings.IndexByte(arg, 0) >= 0 {
		return "", syscall.EILSEQ
	}
	name, err := c.decode(workingDirectory, arg)
	if err != nil {
		return "", err
	}
	if len(name)-len("/") > maxPathname {
		return "", syscall.ENAMETOOLONG
	}
	return name, nil
}

// decode takes a pathname to UTF-8 segment by segment, because directories may
// have encodings of their own. In none of these does the byte of "/" occur
// within a character.
func (c Codec) decode(workingDirectory, arg string) (string, error) {
	name := workingDirectory
	if path.IsAbs(arg) {
		name = "/"
	}
	for segment := range strings.SplitSeq(arg, "/") {
		encoding := c.EncodingOf(name)
		decoded, err := encoding.Decode(segment)
		if err != nil {
			return "", &EncodingError{encoding, err}
		}
		name = path.Join(name, decoded)
	}
	return name, nil
}

// An EncodingError reports a pathname that is not in its encoding. It wraps
// [charset.ErrInvalid].
type EncodingError struct {
	Encoding *charset.Encoding
	Err      error
}

func (e *EncodingError) Error() string { return e.Err.Error() }
func (e *EncodingError) Unwrap() error { return e.Err }

// ShownEncoding is how the names in a directory are shown: in UTF-8 to a client
// that has asked for it, but those of a mirror, which are bytes, as they are.
func (c Codec) ShownEncoding(dir string) *charset.Encoding {
	encoding := c.EncodingOf(dir)
	if c.UTF8 && !encoding.Raw() {
		return nil
	}
	return encoding
}

// EncodePath is an absolute pathname as the client writes it.
func (c Codec) EncodePath(name string) string {
	shown, dir := "", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		shown += "/" + c.EncodeName(dir, segment)
		dir = path.Join(dir, segment)
	}
	return shown
}

// EncodeName is the name of an entry of a directory as the client writes it.
func (c Codec) EncodeName(dir, name string) string {
	if shown, ok := c.ShownEncoding(dir).Encode(name); ok {
		return shown
	}
	return name
}

// EncodeListName is a name as a line of a listing has it, without CR and LF. It
// returns false for a name that the client has no bytes for.
func (c Codec) EncodeListName(dir, name string) (string, bool) {
	return c.ShownEncoding(dir).Encode(EscapeLineBreaks(name))
}
