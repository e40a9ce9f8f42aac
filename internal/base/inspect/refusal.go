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

// maxReason is the maximum length of a reason in characters. Longer reasons are truncated.
const maxReason = 200

// ErrRefused is wrapped by the error for a file that the inspector has refused. It wraps [fs.ErrInvalid], so the upload
// cannot be resumed.
var ErrRefused = fmt.Errorf("the inspector rejected the file: %w", fs.ErrInvalid)

// A Refusal is an [ErrRefused] with a reason.
type Refusal struct {
	// Reason contains the reason by language (BCP 47). A text without a language, such as the name of a signature, has
	// the key "". The map may be empty.
	Reason map[string]string
}

// Error returns the reason in English, if there is one.
func (r *Refusal) Error() string {
	if reason := r.Text(language.English); reason != "" {
		return "the inspector rejected the file: " + reason
	}
	return "the inspector rejected the file"
}

// Unwrap returns ErrRefused.
func (r *Refusal) Unwrap() error { return ErrRefused }

// Text returns the reason in the reader's language if possible, otherwise the reason without a language, in English or
// in any language, in this order. It returns "" without a reason. The text may come from the uploaded file, so Text
// returns only one line of at most 200 printable characters.
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

// printable returns the printable characters of a text as one line.
func printable(text string) string {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d' // needed by some scripts
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
