package value

import (
	"fmt"
	"mime"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// BucketProblem is what the name of a bucket breaks of the rules at
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, empty for a good name.
func BucketProblem(name string) string {
	edge := func(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }
	_, notAddress := netip.ParseAddr(name)
	switch {
	case len(name) < 3 || len(name) > 63:
		return "write 3 to 63 characters"
	case strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !edge(byte(r)) && r != '-' && r != '.'
	}):
		return "write lower-case letters, digits, - and . only"
	case !edge(name[0]) || !edge(name[len(name)-1]):
		return "begin and end it with a letter or a digit"
	case strings.Contains(name, ".."):
		return "write no two dots in a row"
	case notAddress == nil:
		return "an IP address cannot be one"
	}
	return ""
}

// Reserved is the segment of keys in which the server keeps its own objects: that of the driver, which a configuration
// does not know.
const Reserved = ".babelftp"

// maxPrefix leaves half of the 1,024 bytes of a key to the pathname.
const maxPrefix = 512

// PrefixProblem is what a prefix of keys breaks, empty for a good one.
func PrefixProblem(prefix string) string {
	switch {
	case prefix == "":
		return ""
	case strings.HasPrefix(prefix, "/"):
		return "keys begin without a slash, remove it"
	case strings.Contains(prefix, "//"):
		return "write no two slashes in a row"
	case len(prefix) > maxPrefix:
		return "it leaves too little of a key's 1,024 bytes, write a shorter one"
	case strings.ContainsFunc(prefix, unicode.IsControl):
		return "it contains control characters"
	case slices.ContainsFunc(strings.Split(prefix, "/"), func(s string) bool { return s == "." || s == ".." }):
		return "write no . and no .. in it"
	case slices.Contains(strings.Split(prefix, "/"), Reserved):
		return Reserved + " is where babelftp keeps its own objects"
	}
	return ""
}

// DirectoryProblem is what the absolute pathname of a directory breaks. instead is what to write for "/".
func DirectoryProblem(name, instead string) string {
	switch {
	case !path.IsAbs(name):
		return "is not absolute: begin it with /"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "contains control characters"
	case name == "/":
		return "is everything: write " + instead + " instead"
	case path.Clean(name) != name:
		return "is " + path.Clean(name) + ": write that"
	}
	return ""
}

// PatternProblem is what a pattern of pathnames breaks, whose segments are for [path.Match].
func PatternProblem(pattern string) string {
	if broken := DirectoryProblem(pattern, "permissions"); broken != "" {
		return broken
	}
	for segment := range strings.SplitSeq(pattern[len("/"):], "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return segment + ` is no pattern: close its [, or write \ before a character that means itself`
		}
	}
	return ""
}

// FileNameProblem is what a pattern of the names of files, for [path.Match], breaks.
func FileNameProblem(pattern string) string {
	_, err := path.Match(pattern, "")
	switch {
	case pattern == "":
		return "matches no name: write one like *.part"
	case strings.Contains(pattern, "/"):
		return "holds a slash: write the name without directories, it counts in all of them"
	case strings.ContainsFunc(pattern, unicode.IsControl):
		return "contains control characters"
	case err != nil:
		return `is no pattern: close its [, or write \ before a character that means itself`
	}
	return ""
}

// greetingVariables are what a greeting may hold in braces.
func greetingVariables() []string { return []string{"{User}", "{Tenant}", "{LastLogin}", "{Quota}"} }

// GreetingProblems is what a greeting breaks.
func GreetingProblems(text string) (problems []string) {
	if strings.TrimSpace(text) == "" {
		problems = append(problems, "is empty: write a text or remove the language")
	}
	for _, r := range text {
		if problem := textCharacter(r); problem != "" {
			problems = append(problems, fmt.Sprintf("%U %s: remove it", r, problem))
			break
		}
	}
	if !strings.Contains(text, "{") {
		return problems
	}
	for _, name := range regexp.MustCompile(`\{[^{}\n]*\}`).FindAllString(text, -1) {
		if !slices.Contains(greetingVariables(), name) {
			problems = append(problems,
				fmt.Sprintf(
					"%s stands for nothing: write one of %s, or leave out the braces", name,
					strings.Join(greetingVariables(), ", ")))
		}
	}
	return problems
}

// textCharacter is what is wrong with a character of a greeting, empty for a good one. A reply is made of lines (RFC
// 959, section 4.2), and an embedding that one of them opens would turn those after it around.
func textCharacter(r rune) string {
	switch {
	case r == '\n':
		return ""
	case unicode.IsControl(r), unicode.In(r, unicode.Zl, unicode.Zp):
		return "is a control character; a line ends with a line feed alone"
	case unicode.Is(unicode.Bidi_Control, r):
		return "is a bidirectional control; a terminal orders the text by itself"
	}
	return ""
}

// ContentTypeProblems is what a media type by the end of a name breaks.
func ContentTypeProblems(ending, contentType string) (problems []string) {
	if len(ending) < 2 || ending[0] != '.' || strings.ContainsAny(ending[1:], "./") ||
		ending != strings.ToLower(ending) {
		problems = append(problems, fmt.Sprintf("%q is not a file name extension: write it like .dwg, in lower case", ending))
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err != nil || !strings.Contains(mediaType, "/") {
		problems = append(problems, fmt.Sprintf("%q is not a media type: write it like image/vnd.dwg", contentType))
	}
	return problems
}

// Limits of S3 for a tag, in characters: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// TagProblem is what a tag of an object breaks.
func TagProblem(key, value string) string {
	switch {
	case key == "" || utf8.RuneCountInString(key) > maxTagKey || utf8.RuneCountInString(value) > maxTagValue:
		return fmt.Sprintf(
			"write up to %d characters for the key of a tag and %d for its value", maxTagKey, maxTagValue)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return "tags that begin with aws: are those of AWS itself: choose another name"
	case strings.ContainsFunc(key+value, notInTags):
		return "write letters, digits, spaces and + - = . _ : / @ only"
	}
	return ""
}

func notInTags(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r) && !strings.ContainsRune("+-=._:/@", r)
}
