package pathname

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Rules say how the names of a user are written.
type Rules struct {
	// Encoding is that of the pathnames of clients that have not asked for UTF-8; nil
	// means UTF-8.
	Encoding *Encoding
	// Mixed reports that the charset of Encoding is configured for a whole tenant, so that clients which write UTF-8
	// use it as well. DirectoryEncodings are mixed always.
	Mixed bool
	// DirectoryEncodings has the directories, absolute and in NFC, in which and below
	// which names have another encoding.
	DirectoryEncodings map[string]*Encoding
	// Normalization is the Unicode form in which names are created; the zero value
	// means NFC.
	Normalization Normalization
	// Backslash says whether a backslash separates directories in pathnames of clients. In
	// raw pathnames it never does.
	Backslash Backslash
}

// EncodingOf returns the encoding of the names in a directory: that of the nearest directory
// which has one.
func (r *Rules) EncodingOf(dir string) *Encoding {
	encoding, nearest := r.Encoding, ""
	for above, e := range r.DirectoryEncodings {
		if len(above) > len(nearest) && isIn(dir, above) {
			encoding, nearest = e, above
		}
	}
	return encoding
}

// isIn reports whether a directory is another one, whose name is in NFC, or is below that. It looks at no more
// segments than the other one has: for each segment of a pathname the session asks about all before it.
func isIn(dir, above string) bool {
	above = withTrailingSlash(above)
	dir = withTrailingSlash(dir)
	end := 0
	for range strings.Count(above, "/") {
		next := strings.IndexByte(dir[end:], '/')
		if next < 0 {
			return false
		}
		end += next + 1
	}
	return norm.NFC.String(dir[:end]) == above
}

func withTrailingSlash(dir string) string { return strings.TrimSuffix(dir, "/") + "/" }

// NormalForm returns the form in which a name is created in dir. If the charset would write the Unicode form of the
// tenant with other bytes, or cannot write it, the name stays as it is, because the client would get other bytes back.
// For example, Korean charsets have some characters twice, and windows-1258 has combining accents.
func (r *Rules) NormalForm(dir, name string) string {
	normal := r.normalization(dir).Normalize(name)
	if normal == name {
		return name
	}
	for _, c := range r.EncodingOf(dir).inOrder() {
		if c == nil {
			continue
		}
		bytes, ok := c.Encode(name)
		if back, same := c.Encode(normal); ok && (!same || back != bytes) {
			return name
		}
	}
	return normal
}

// normalization is that of the tenant, but a mirror gives back the bytes that it was
// given.
func (r *Rules) normalization(dir string) Normalization {
	if r.EncodingOf(dir).Raw() {
		return None
	}
	return r.Normalization
}
