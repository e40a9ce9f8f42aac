package s3object

import (
	_ "embed"
	"path"
	"strings"
)

// unknownType is the media type of what could be anything (RFC 2046 section 4.5.1).
const unknownType = "application/octet-stream"

// mediaTypes has the extensions that people send most, one a line behind the first, each with its type: that of IANA,
// https://www.iana.org/assignments/media-types, or the one in use.
//
//go:embed mediatypes.txt
var mediaTypes string

// mediaTypeOf returns the media type for the extension of a name. The caller's own types, by extensions in lower case,
// go before those of the table. It is the same wherever the server runs: package mime would read files of the operating
// system. It has no charset, because the name does not tell it.
func mediaTypeOf(name string, own map[string]string) string {
	extension := strings.ToLower(path.Ext(name))
	if mediaType, ok := own[extension]; ok {
		return mediaType
	}
	if _, rest, ok := strings.Cut(mediaTypes, "\n"+extension+" "); ok {
		mediaType, _, _ := strings.Cut(rest, "\n")
		return mediaType
	}
	return unknownType
}
