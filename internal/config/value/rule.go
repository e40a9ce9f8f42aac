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

// BucketProblem returns the naming rule that a bucket name violates, or an empty string. See
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html.
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
		return "remove one of two dots in a row"
	case notAddress == nil:
		return "it must not be an IP address"
	}
	return ""
}

// Reserved is the path segment in which the server keeps its own objects. It equals driver.Reserved, which this
// package does not import.
const Reserved = ".babelftp"

// maxPrefix leaves half of the maximum key length of 1,024 bytes to the path.
const maxPrefix = 512

// PrefixProblem returns the rule that a key prefix violates, or an empty string.
func PrefixProblem(prefix string) string {
	switch {
	case prefix == "":
		return ""
	case strings.HasPrefix(prefix, "/"):
		return "remove the slash at the beginning"
	case strings.Contains(prefix, "//"):
		return "remove one of two slashes in a row"
	case len(prefix) > maxPrefix:
		return "write at most 512 of a key's 1,024 bytes"
	case strings.ContainsFunc(prefix, unicode.IsControl):
		return "it contains control characters"
	case slices.ContainsFunc(strings.Split(prefix, "/"), func(s string) bool { return s == "." || s == ".." }):
		return "it must not contain . or .. as a segment"
	case slices.Contains(strings.Split(prefix, "/"), Reserved):
		return Reserved + " is reserved for objects of babelftp"
	}
	return ""
}

// DirectoryProblem returns the rule that an absolute directory path violates, or an empty string. instead names the
// alternative for "/".
func DirectoryProblem(name, instead string) string {
	switch {
	case !path.IsAbs(name):
		return "is not absolute: begin it with /"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "contains control characters"
	case name == "/":
		return "is the whole tree: use " + instead + " instead"
	case path.Clean(name) != name:
		return "should be written as " + path.Clean(name)
	}
	return ""
}

// PatternProblem returns the rule that a path pattern violates, or an empty string. Each segment is a pattern of
// [path.Match].
func PatternProblem(pattern string) string {
	if broken := DirectoryProblem(pattern, "permissions"); broken != "" {
		return broken
	}
	for segment := range strings.SplitSeq(pattern[len("/"):], "/") {
		if _, err := path.Match(segment, ""); err != nil {
			return segment + ` is not a pattern: close the [, or escape special characters with \`
		}
	}
	return ""
}

// FileNameProblem returns the rule that a file name pattern for [path.Match] violates, or an empty string.
func FileNameProblem(pattern string) string {
	_, err := path.Match(pattern, "")
	switch {
	case pattern == "":
		return "matches no name: write one like *.part"
	case strings.Contains(pattern, "/"):
		return "contains a slash: write the name without directories; it applies to all of them"
	case strings.ContainsFunc(pattern, unicode.IsControl):
		return "contains control characters"
	case err != nil:
		return `is not a pattern: close the [, or escape special characters with \`
	}
	return ""
}

// greetingVariables returns the variables that a greeting may contain.
func greetingVariables() []string { return []string{"{User}", "{Tenant}", "{LastLogin}", "{Quota}"} }

// GreetingProblems returns the problems with a greeting.
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
					"unknown variable %s: write one of %s, or remove the braces", name,
					strings.Join(greetingVariables(), ", ")))
		}
	}
	return problems
}

// textCharacter returns the problem with a character of a greeting, or an empty string. A reply consists of lines
// (RFC 959, section 4.2), and a bidirectional control could reorder the following lines.
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

// ContentTypeProblems returns the problems with a media type for a file name extension.
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

// Maximum lengths of a tag in characters: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-tagging.html
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// TagProblem returns the rule that an object tag violates, or an empty string.
func TagProblem(key, value string) string {
	switch {
	case key == "" || utf8.RuneCountInString(key) > maxTagKey || utf8.RuneCountInString(value) > maxTagValue:
		return fmt.Sprintf(
			"write up to %d characters for the key of a tag and %d for its value", maxTagKey, maxTagValue)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return "the prefix aws: is reserved: choose another name"
	case strings.ContainsFunc(key+value, notInTags):
		return "write letters, digits, spaces and + - = . _ : / @ only"
	}
	return ""
}

// AsTag returns a text as a valid value of a tag: other characters become underscores, and the end is cut.
func AsTag(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxTagValue {
			break
		}
		if notInTags(r) {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// maxMetadata is S3's limit for user metadata, in bytes:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html
const maxMetadata = 2 << 10

// MetadataProblem returns the rule that an entry of user metadata violates, or an empty string.
func MetadataProblem(name, value string) string {
	switch {
	case !metadataName.MatchString(name):
		return "is not a name for metadata: write lower-case letters, digits, - and _"
	case strings.HasPrefix(name, "babelftp-") || name == "mtime":
		return "is reserved for the server: choose another name"
	case len(name)+len(value) > maxMetadata:
		return fmt.Sprintf("is longer than %d bytes, which is the limit of S3", maxMetadata)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "contains control characters"
	}
	return ""
}

var metadataName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

func notInTags(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSpace(r) && !strings.ContainsRune("+-=._:/@", r)
}
