package pathname

import (
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Rules define how the names of a user are written.
type Rules struct {
	// Encoding is the encoding of pathnames of clients that have not requested UTF-8. Nil means UTF-8.
	Encoding *Encoding
	// Mixed means that the charset of Encoding is configured for a whole tenant, so that clients with UTF-8 use it
	// too. DirectoryEncodings are always mixed.
	Mixed bool
	// DirectoryEncodings are the encodings of names in and below certain directories. The keys are absolute and in
	// NFC.
	DirectoryEncodings map[string]*Encoding
	// Normalization is the Unicode form in which names are created. The zero value means NFC.
	Normalization Normalization
	// Backslash determines whether a backslash separates directories in pathnames of clients. It never does in raw
	// pathnames.
	Backslash Backslash
}

// EncodingOf returns the encoding of the names in a directory, which is set by the nearest directory with an encoding.
func (r *Rules) EncodingOf(dir string) *Encoding {
	encoding, nearest := r.Encoding, ""
	for above, e := range r.DirectoryEncodings {
		if len(above) > len(nearest) && isIn(dir, above) {
			encoding, nearest = e, above
		}
	}
	return encoding
}

// isIn reports whether dir is above or below above, which is in NFC. It only compares as many segments as above has,
// because it is called for each segment of a pathname.
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

// NormalForm returns the form in which a name is created in dir. If the charset would encode the Unicode form of the
// tenant with other bytes, or cannot encode it, the name is not changed, because otherwise the client would get other
// bytes back. For example, Korean charsets have some characters twice, and windows-1258 has combining accents.
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

// normalization returns the normalization of the tenant, or None for raw names, which keep their bytes.
func (r *Rules) normalization(dir string) Normalization {
	if r.EncodingOf(dir).Raw() {
		return None
	}
	return r.Normalization
}
