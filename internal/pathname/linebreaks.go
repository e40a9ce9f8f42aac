package pathname

import "strings"

// CR and LF would end a line of a listing. RFC 3659 section 2.2 lets a server show them in another form or omit the
// name. The escaper replaces them by the Unicode symbols for them. In a name with line breaks, it marks such symbols
// that were already there.
var (
	lineEscaper = strings.NewReplacer(
		pictureMark, pictureMark+pictureMark, pictureCR, pictureMark+pictureCR, pictureLF, pictureMark+pictureLF,
		"\r", pictureCR, "\n", pictureLF)
	lineUnescaper = strings.NewReplacer(
		pictureMark+pictureMark, pictureMark, pictureMark+pictureCR, pictureCR, pictureMark+pictureLF, pictureLF,
		pictureCR, "\r", pictureLF, "\n")
)

const (
	pictureCR   = "\u240d" // SYMBOL FOR CARRIAGE RETURN
	pictureLF   = "\u240a" // SYMBOL FOR LINE FEED
	pictureMark = "\u201b" // the same mark as in rclone
)

// EscapeLineBreaks returns a name in the form for a line of a listing.
func EscapeLineBreaks(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return lineEscaper.Replace(name)
}

// EscapePathLineBreaks escapes the line breaks in each segment of a pathname.
func EscapePathLineBreaks(pathname string) string {
	segments := strings.Split(pathname, "/")
	for i, segment := range segments {
		segments[i] = EscapeLineBreaks(segment)
	}
	return strings.Join(segments, "/")
}

// unescapeLineBreaks returns the name that EscapeLineBreaks converted to this name, or else the name itself.
func unescapeLineBreaks(name string) string {
	if !strings.ContainsAny(name, pictureCR+pictureLF) {
		return name
	}
	if original := lineUnescaper.Replace(name); EscapeLineBreaks(original) == name {
		return original
	}
	return name
}
