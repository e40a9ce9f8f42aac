package pathname

import "strings"

// CR and LF would end a line of a listing. RFC 3659 2.2 lets a server show them in
// another form or leave the name out. The escaper replaces them by the pictures that
// Unicode has of them. In a name with line breaks, it marks characters that are such
// pictures themselves.
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
	pictureMark = "\u201b" // the mark that rclone uses for the purpose
)

// EscapeLineBreaks returns a name as it stands on a line of a listing.
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

// unescapeLineBreaks returns the name that EscapeLineBreaks wrote so, or else the name.
func unescapeLineBreaks(name string) string {
	if !strings.ContainsAny(name, pictureCR+pictureLF) {
		return name
	}
	if original := lineUnescaper.Replace(name); EscapeLineBreaks(original) == name {
		return original
	}
	return name
}
