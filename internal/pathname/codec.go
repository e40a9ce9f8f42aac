package pathname

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// A Codec translates between the pathnames of a client and those of the storage, which
// are UTF-8.
type Codec struct {
	Rules
	UTF8 bool // whether the client has said that its pathnames are UTF-8
}

// maxPathname is the length in bytes of the longest key of S3.
const maxPathname = 1024

// Absolute makes an absolute, clean pathname in UTF-8 of a command's argument. It checks
// the encoding before it resolves any "..". Every SP belongs to the pathname, leading
// and trailing ones too (RFC 2640 3.1). An empty argument means the working directory.
// The error is [syscall.EILSEQ] for a NUL, an [EncodingError], or [syscall.ENAMETOOLONG].
func (c Codec) Absolute(workingDirectory, arg string) (string, error) {
	if arg == "" {
		return workingDirectory, nil
	}
	name, _, err := c.decode(workingDirectory, arg)
	return name, err
}

// AbsoluteFile is Absolute for the pathname of a file to be made. The error is
// [syscall.EISDIR] for "name/", "." and "..", which name directories.
func (c Codec) AbsoluteFile(workingDirectory, arg string) (string, error) {
	name, last, err := c.decode(workingDirectory, arg)
	if err != nil {
		return "", err
	}
	switch last {
	case "", ".", "..":
		return "", &fs.PathError{Op: "create", Path: name, Err: syscall.EISDIR}
	}
	return name, nil
}

// decode translates a pathname to UTF-8 segment by segment, because directories may
// have encodings of their own. In no encoding is the byte of "/" part of another
// character. That of a backslash is in some, so it separates only when it is decoded. The
// last segment is returned as it was given.
func (c Codec) decode(workingDirectory, arg string) (name, last string, err error) {
	if strings.IndexByte(arg, 0) >= 0 {
		return "", "", syscall.EILSEQ
	}
	name = workingDirectory
	if path.IsAbs(arg) {
		name = "/"
	}
	for i, segment := range strings.Split(arg, "/") {
		encoding := c.EncodingOf(name)
		decoded, err := encoding.Decode(segment)
		if err != nil {
			return "", "", &EncodingError{encoding, err}
		}
		if c.Backslash == BackslashSeparates && !encoding.Raw() {
			if decoded = strings.ReplaceAll(decoded, `\`, "/"); i == 0 && path.IsAbs(decoded) {
				name = "/"
			}
		}
		last = decoded[strings.LastIndexByte(decoded, '/')+1:]
		if name = path.Join(name, decoded); len(name)-len("/") > maxPathname {
			return "", "", syscall.ENAMETOOLONG // also where ".." would make it shorter
		}
	}
	return name, last, nil
}

// An EncodingError reports a pathname that is not in its encoding. It wraps
// [ErrNotInEncoding].
type EncodingError struct {
	Encoding *Encoding
	Err      error
}

func (e *EncodingError) Error() string { return e.Err.Error() }
func (e *EncodingError) Unwrap() error { return e.Err }

// ClientEncoding returns the encoding in which the client gets the names in a
// directory: UTF-8 if it has asked for that. The names of a mirror are bytes and stay
// as they are.
func (c Codec) ClientEncoding(dir string) *Encoding {
	encoding := c.EncodingOf(dir)
	if c.UTF8 && !encoding.Raw() {
		return nil
	}
	return encoding
}

// HasLetterIAC reports whether the byte 255 is a letter in an encoding of the client, such
// as the last one of the alphabet in windows-1251. Few clients know that this byte is
// Telnet's IAC too and must be doubled (RFC 854).
func (c Codec) HasLetterIAC() bool {
	for _, encoding := range append(slices.Collect(maps.Values(c.DirectoryEncodings)), c.Encoding) {
		if c.UTF8 && !encoding.Raw() {
			continue
		}
		if _, err := encoding.Decode("\xff"); err == nil {
			return true
		}
	}
	return false
}

// EncodePath returns an absolute pathname as a reply or a listing has it.
func (c Codec) EncodePath(name string) string {
	encoded, dir := "", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		encoded += "/" + c.EncodeName(dir, segment)
		dir = path.Join(dir, segment)
	}
	return encoded
}

// EncodeName returns the name of an entry of a directory as a reply has it: without CR and LF, and in
// UTF-8 where the client has no bytes for it.
func (c Codec) EncodeName(dir, name string) string {
	if encoded, ok := c.EncodeListName(dir, name); ok {
		return encoded
	}
	return EscapeLineBreaks(name)
}

// EncodeListName returns a name as a line of a listing has it, without CR and LF. It
// returns false for a name that the client has no bytes for.
func (c Codec) EncodeListName(dir, name string) (string, bool) {
	return c.ClientEncoding(dir).Encode(EscapeLineBreaks(name))
}

// Echo returns a command's argument as a reply repeats it: as it came, but without CR,
// LF and NUL. At a NUL many clients would end the reply.
func (c Codec) Echo(workingDirectory, arg string) string {
	arg = strings.ReplaceAll(arg, "\x00", "\u2400")
	if !strings.ContainsAny(arg, "\r\n") {
		return arg
	}
	dir := workingDirectory
	if path.IsAbs(arg) {
		dir = "/"
	}
	segments := strings.Split(arg, "/")
	for i, segment := range segments {
		decoded, err := c.EncodingOf(dir).Decode(segment)
		if err != nil {
			return EscapeLineBreaks(arg)
		}
		segments[i] = c.EncodeName(dir, decoded)
		// no name that exists, and each segment would cost more than the one before
		if dir = path.Join(dir, decoded); len(dir)-len("/") > maxPathname {
			return EscapeLineBreaks(arg)
		}
	}
	return strings.Join(segments, "/")
}
