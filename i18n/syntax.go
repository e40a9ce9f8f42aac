package i18n

import "strings"

// syntaxWord is the prefix of messages for words in the syntax of commands.
const syntaxWord = "syntax-"

// SyntaxWord returns the message for a word in the syntax of commands, such as pathname. These messages have
// no constants.
func SyntaxWord(word string) ID { return syntaxWord + ID(word) }

// InSyntax reports whether the message is a word in the syntax of commands.
func (id ID) InSyntax() bool { return strings.HasPrefix(string(id), syntaxWord) }
