package reply

import (
	"regexp"

	"github.com/babelftp/babelftp/i18n"
)

// argumentWord matches the placeholders for arguments in the syntax of a command (RFC 959, 5.3), such as pathname.
// Names of commands are in capitals.
var argumentWord = regexp.MustCompile(`\b[a-z]{2,}(-[a-z]+)*\b`)

// Syntax returns the syntax of a command with translated placeholders.
func (l *Locale) Syntax(syntax string) string {
	return l.Encode(l.isolate(l.translateArguments(syntax)))
}

// translateArguments isolates each word, because two adjacent right-to-left words, as in |1|address|port|, would
// switch places.
func (l *Locale) translateArguments(syntax string) string {
	return argumentWord.ReplaceAllStringFunc(syntax, func(word string) string {
		return l.isolate(l.lang.Text(i18n.SyntaxWord(word)))
	})
}
