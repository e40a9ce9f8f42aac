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
	Choice Choice // what the session has decided on
	Listed bool   // whether the session has shown names to the client
}

// maxPathname is the length in bytes of the longest key of S3.
const maxPathname = 1024

// Absolute makes an absolute, clean pathname in UTF-8 of a command's argument. It checks
// the encoding before it resolves any "..". Every SP belongs to the pathname, leading
// and trailing ones too (RFC 2640 3.1). An empty argument means the working directory.
// The error is [syscall.EILSEQ] for a NUL, an [EncodingError], or [syscall.ENAMETOOLONG].
//
// The pathname ends with a slash if the argument can only be the name of a directory: "name/", "." or "..".
func (c Codec) Absolute(workingDirectory, arg string) (Name, error) {
	if arg == "" {
		return Name{Path: workingDirectory}, nil
	}
	name, last, err := c.decode(workingDirectory, arg)
	if err == nil && isDirectory(last) {
		name.Path = withTrailingSlash(name.Path)
	}
	return name, err
}

// AbsoluteFile is Absolute for the pathname of a file to be made. The error is
// [syscall.EISDIR] for "name/", "." and "..", which name directories.
func (c Codec) AbsoluteFile(workingDirectory, arg string) (Name, error) {
	name, last, err := c.decode(workingDirectory, arg)
	if err != nil {
		return Name{}, err
	}
	if isDirectory(last) {
		return Name{}, &fs.PathError{Op: "create", Path: name.Path, Err: syscall.EISDIR}
	}
	return name, nil
}

// isDirectory reports whether a last segment can only be one of the name of a directory.
func isDirectory(last string) bool { return last == "" || last == "." || last == ".." }

// decode translates a pathname to UTF-8 segment by segment, because directories may
// have encodings of their own. In no encoding is the byte of "/" part of another
// character. The last segment is returned as it was given.
func (c Codec) decode(workingDirectory, arg string) (name Name, last string, err error) {
	if strings.IndexByte(arg, 0) >= 0 {
		return Name{}, "", syscall.EILSEQ
	}
	name.Path = workingDirectory
	if path.IsAbs(arg) {
		name.Path = "/"
	}
	for i, bytes := range strings.Split(arg, "/") {
		encoding := c.EncodingOf(name.Path)
		read, err := c.read(encoding, bytes)
		if err != nil {
			return Name{}, "", &EncodingError{encoding, err}
		}
		c.note(&name, encoding, bytes, read)
		for j, s := range c.split(encoding, read) {
			if last = s.name(); last == "" && i == 0 && j == 0 && bytes != "" {
				name.Path = "/" // the argument begins with a backslash that separates
			}
			name.Path = path.Join(name.Path, last)
			if len(s.readings) > 1 {
				name.add(s)
			}
			if len(name.Path)-len("/") > maxPathname {
				return Name{}, "", syscall.ENAMETOOLONG // also where ".." would make it shorter
			}
		}
	}
	return name, last, nil
}

// split divides readings at backslashes, if backslashes separate. The byte of a backslash is part of other characters
// in some charsets, so it separates only when it is decoded. Readings with backslashes at other places than the first
// one are left out.
func (c Codec) split(encoding *Encoding, read *segment) []*segment {
	if c.Backslash != BackslashSeparates || encoding.Raw() || !strings.Contains(read.name(), `\`) {
		return []*segment{read}
	}
	pieces := strings.Split(read.name(), `\`)
	split := make([]*segment, len(pieces))
	for i := range split {
		piece := *read
		piece.readings, piece.created = nil, 0
		split[i] = &piece
	}
	for at, reading := range read.readings {
		names := strings.Split(reading.Name, `\`)
		if len(names) != len(pieces) {
			continue
		}
		for i, s := range split {
			if at == read.created {
				s.created = len(s.readings)
			}
			s.readings = append(s.readings, Reading{names[i], reading.Charset})
		}
	}
	return split
}

// note records the charset of the client if the bytes of a segment are valid in one charset only. After a listing, a
// name in UTF-8 that no charset can write shows nothing, because listings show such a name in UTF-8.
func (c Codec) note(name *Name, encoding *Encoding, bytes string, read *segment) {
	if len(read.readings) != 1 || isASCII(bytes) || encoding.Raw() || encoding.UTF8() || name.Choice != Undecided {
		return
	}
	charset := read.readings[0].Charset
	if charset == nil && c.Listed {
		if _, shownIn := encoding.encode(bytes); shownIn == nil {
			return
		}
	}
	name.Choice = charset.Name()
}

// add keeps the other readings of the last segment of the pathname.
func (n *Name) add(s *segment) {
	if n.ambiguous == nil {
		n.ambiguous = map[string]*segment{}
	}
	n.ambiguous[n.Path] = s
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
// directory: in the charset that the session has decided on. The names of a mirror are bytes and stay
// as they are.
func (c Codec) ClientEncoding(dir string) *Encoding { return c.EncodingOf(dir).For(c.Choice) }

// CharsetOf returns the name of the charset in which the client gets the name of an entry of a directory, and false for
// a name that is bytes without a charset.
func (c Codec) CharsetOf(dir, name string) (string, bool) {
	encoding := c.ClientEncoding(dir)
	if encoding.Raw() {
		return "", false
	}
	charset := encoding.inOrder()[0]
	if !isASCII(name) {
		_, charset = encoding.encode(name)
	}
	return strings.ToUpper(string(charset.Name())), true
}

// HasLetterIAC reports whether the byte 255 is a letter in an encoding of the client, such
// as the last one of the alphabet in windows-1251. Few clients know that this byte is
// Telnet's IAC too and must be doubled (RFC 854).
func (c Codec) HasLetterIAC() bool {
	for _, encoding := range append(slices.Collect(maps.Values(c.DirectoryEncodings)), c.Encoding) {
		if _, err := encoding.For(c.Choice).Readings("\xff"); err == nil {
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
		decoded, err := c.EncodingOf(dir).For(c.orderOf()).Decode(segment)
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
