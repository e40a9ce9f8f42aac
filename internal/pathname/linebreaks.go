package pathname

import "strings"

// CR and LF would end a line of a listing on a data connection, where RFC 3659
// 2.2 asks for another form or for silence. They are shown as the pictures that
// Unicode has of them. In such a name, characters that stand for themselves are
// marked where they could be taken for pictures.
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

// EscapeLineBreaks is a name as it stands on a line of a listing.
func EscapeLineBreaks(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return lineEscaper.Replace(name)
}

// EscapePathLineBreaks is EscapeLineBreaks for each segment of a pathname.
func EscapePathLineBreaks(pathname string) string {
	segments := strings.Split(pathname, "/")
	for i, segment := range segments {
		segments[i] = EscapeLineBreaks(segment)
	}
	return strings.Join(segments, "/")
}

// unescapeLineBreaks is the name that EscapeLineBreaks wrote so, or else the name itself.
func unescapeLineBreaks(name string) string {
	if !strings.ContainsAny(name, pictureCR+pictureLF) {
		return name
	}
	if original := lineUnescaper.Replace(name); EscapeLineBreaks(original) == name {
		return original
	}
	return name
}
