package pathname

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// A Codec translates between the pathnames of a client and the UTF-8 pathnames of the storage.
type Codec struct {
	Rules
	Choice Choice // charset that the session has decided on
	Listed bool   // the session has shown names to the client
}

// maxPathname is the maximum length of an S3 key in bytes.
const maxPathname = 1024

// Absolute returns the absolute, clean pathname in UTF-8 for the argument of a command. It checks the encoding before
// it resolves "..". All spaces belong to the pathname, even leading and trailing ones (RFC 2640 section 3.1). An empty
// argument means the working directory. The error is [ErrInvisible] for a NUL, an [EncodingError], or
// [syscall.ENAMETOOLONG].
//
// The pathname ends with a slash if the argument can only name a directory: "name/", "." or "..".
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

// AbsoluteFile is Absolute for a file that will be created. It returns [syscall.EISDIR] for "name/", "." and "..",
// which name directories.
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

// isDirectory reports whether a pathname with this last segment can only name a directory.
func isDirectory(last string) bool { return last == "" || last == "." || last == ".." }

// decode translates a pathname to UTF-8 segment by segment, because directories may have their own encodings. No
// encoding uses the byte of "/" in other characters. last is the decoded last segment.
func (c Codec) decode(workingDirectory, arg string) (name Name, last string, err error) {
	if strings.IndexByte(arg, 0) >= 0 {
		return Name{}, "", ErrInvisible
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
				name.Path = "/" // the argument begins with a backslash as a separator
			}
			name.Path = path.Join(name.Path, last)
			if len(s.readings) > 1 {
				name.add(s)
			}
			if len(name.Path)-len("/") > maxPathname {
				return Name{}, "", syscall.ENAMETOOLONG // even if ".." would shorten it
			}
		}
	}
	return name, last, nil
}

// split divides readings at backslashes, if backslashes are separators. It works on decoded text, because the byte of
// a backslash is part of other characters in some charsets. It drops readings whose backslashes are not where the
// first reading has them.
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

// note records the charset of the client if the bytes of a segment are valid in only one charset. After a listing, a
// UTF-8 name that the charset cannot encode proves nothing, because listings show such names in UTF-8.
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

// add stores the other readings of the last segment of the pathname.
func (n *Name) add(s *segment) {
	if n.ambiguous == nil {
		n.ambiguous = map[string]*segment{}
	}
	n.ambiguous[n.Path] = s
}

// An EncodingError reports a pathname that is invalid in its encoding. It wraps [ErrNotInEncoding].
type EncodingError struct {
	Encoding *Encoding
	Err      error
}

func (e *EncodingError) Error() string { return e.Err.Error() }
func (e *EncodingError) Unwrap() error { return e.Err }

// ClientEncoding returns the encoding in which the client gets the names in a directory, with the charset that the
// session has decided on. Raw names are returned unchanged.
func (c Codec) ClientEncoding(dir string) *Encoding { return c.EncodingOf(dir).For(c.Choice) }

// CharsetOf returns the name of the charset in which the client gets the name of a directory entry, and false for a
// raw name.
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

// HasLetterIAC reports whether byte 255 is a letter in an encoding of the client, such as the last letter of the
// alphabet in windows-1251. Few clients know that this byte is also Telnet's IAC and must be doubled (RFC 854).
func (c Codec) HasLetterIAC() bool {
	for _, encoding := range append(slices.Collect(maps.Values(c.DirectoryEncodings)), c.Encoding) {
		if _, err := encoding.For(c.Choice).Readings("\xff"); err == nil {
			return true
		}
	}
	return false
}

// EncodePath encodes an absolute pathname for a reply or a listing.
func (c Codec) EncodePath(name string) string {
	encoded, dir := "", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		encoded += "/" + c.EncodeName(dir, segment)
		dir = path.Join(dir, segment)
	}
	return encoded
}

// EncodeName encodes the name of a directory entry for a reply, without CR and LF. If the client's charset cannot
// encode it, EncodeName returns UTF-8.
func (c Codec) EncodeName(dir, name string) string {
	if encoded, ok := c.EncodeListName(dir, name); ok {
		return encoded
	}
	return EscapeLineBreaks(name)
}

// EncodeListName encodes a name for a line of a listing, without CR and LF. It returns false if the encoding of the
// client cannot represent the name.
func (c Codec) EncodeListName(dir, name string) (string, bool) {
	return c.ClientEncoding(dir).Encode(EscapeLineBreaks(name))
}

// Echo returns the argument of a command for a reply: unchanged except for CR, LF and NUL. Many clients would end the
// reply at a NUL.
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
		// Such a name cannot exist, and each further segment would cost more than the previous one.
		if dir = path.Join(dir, decoded); len(dir)-len("/") > maxPathname {
			return EscapeLineBreaks(arg)
		}
	}
	return strings.Join(segments, "/")
}
