package pathname

import (
	"path"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/charset"
)

// Rules say how the names of a user are written.
type Rules struct {
	// Encoding is that of the pathnames of clients which have not said that theirs are
	// UTF-8; nil means UTF-8.
	Encoding *charset.Encoding
	// DirectoryEncodings are the directories, absolute and in NFC, whose names have
	// another encoding, and those below them.
	DirectoryEncodings map[string]*charset.Encoding
	// Normalization is the Unicode form in which names are created.
	Normalization Normalization
}

// EncodingOf is that of the names in a directory.
func (r *Rules) EncodingOf(dir string) *charset.Encoding {
	if len(r.DirectoryEncodings) > 0 {
		for dir = norm.NFC.String(dir); ; dir = path.Dir(dir) {
			if encoding, ok := r.DirectoryEncodings[dir]; ok {
				return encoding
			}
			if dir == "/" {
				break
			}
		}
	}
	return r.Encoding
}

// NormalForm is a name as it is made in dir.
func (r *Rules) NormalForm(dir, name string) string {
	return r.normalization(dir).Normalize(name)
}

// normalization is the tenant's, but for a mirror, which gives back the bytes
// that it was given.
func (r *Rules) normalization(dir string) Normalization {
	if r.EncodingOf(dir).Raw() {
		return None
	}
	return r.Normalization
}
