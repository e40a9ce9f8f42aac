package inspect

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/language"
)

// maxReason is how many characters of a reason are shown.
const maxReason = 200

// ErrRefused is the error of a file that the inspector has refused. It is an [fs.ErrInvalid]: no session may resume the
// upload.
var ErrRefused = fmt.Errorf("the inspector has refused the file: %w", fs.ErrInvalid)

// A Refusal is an [ErrRefused] with its reason.
type Refusal struct {
	// Reason is what the inspector says, by language (BCP 47). What has no language, such as the name of a signature,
	// has the key "". It may be empty.
	Reason map[string]string
}

// Error has the reason in English, or as it is.
func (r *Refusal) Error() string {
	if reason := r.Text(language.English); reason != "" {
		return "the inspector has refused the file: " + reason
	}
	return "the inspector has refused the file"
}

// Unwrap returns ErrRefused.
func (r *Refusal) Unwrap() error { return ErrRefused }

// Text is the reason for who reads a language, else the one without a language, else that in English, else any. It is
// empty where there is none. It is one line of 200 characters at most, and all of them can be printed: the inspector
// may have it from the file.
func (r *Refusal) Text(reader language.Tag) string {
	var tags []language.Tag
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(r.Reason)) {
		if tag, err := language.Parse(name); err == nil && name != "" {
			tags, texts = append(tags, tag), append(texts, r.Reason[name])
		}
	}
	chosen := r.Reason[""]
	for _, wanted := range []language.Tag{reader, language.English} {
		_, i, confidence := language.NewMatcher(tags).Match(wanted)
		if len(tags) > 0 && confidence >= language.Low && (wanted == reader || chosen == "") {
			chosen = texts[i]
			break
		}
	}
	if chosen == "" && len(texts) > 0 {
		chosen = texts[0]
	}
	return printable(chosen)
}

// printable keeps of a text what can be shown in a line.
func printable(text string) string {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d' // which some scripts need
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r) && r != unicode.ReplacementChar, r == zeroWidthNonJoiner, r == zeroWidthJoiner:
			return r
		}
		return -1
	}, text)
	characters := []rune(strings.Join(strings.Fields(text), " "))
	if len(characters) > maxReason {
		characters = append(characters[:maxReason-1], '…')
	}
	return string(characters)
}
