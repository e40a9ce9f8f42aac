package i18n

import "strings"

// syntaxWord begins the messages that are words in the syntax of commands.
const syntaxWord = "syntax-"

// SyntaxWord returns the message of a word in the syntax of commands, such as pathname.
// There is no constant for it.
func SyntaxWord(word string) ID { return syntaxWord + ID(word) }

// InSyntax reports whether the message is such a word.
func (id ID) InSyntax() bool { return strings.HasPrefix(string(id), syntaxWord) }
