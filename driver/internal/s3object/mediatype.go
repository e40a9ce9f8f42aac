package s3object

import (
	_ "embed"
	"path"
	"strings"
)

// unknownType is the media type of arbitrary data (RFC 2046 section 4.5.1).
const unknownType = "application/octet-stream"

// mediaTypes is a table of the most common file extensions, one per line after the first line, with the media type that
// IANA registered (https://www.iana.org/assignments/media-types) or that is in common use.
//
//go:embed mediatypes.txt
var mediaTypes string

// mediaTypeOf returns the media type for the extension of a name. Entries in own, whose keys are lower-case extensions,
// take precedence over the table. The result does not depend on the operating system, unlike the result of package
// mime. It has no charset, because the name does not contain one.
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
