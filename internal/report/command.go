package report

import (
	"strings"
	"time"
)

// A Command is a command line that a client has sent. The zero value stands for no command: the server greets, or ends
// the session.
type Command struct {
	// Name is the verb, and the same word for all verbs that the server does not know: no client chooses the labels of
	// a metric.
	Name string
	// Verb and Argument are as received. The argument may be a password.
	Verb, Argument string
	// Known says that the server knows the verb, and for SITE the service.
	Known bool
	Kind  Kind
	Began time.Time
}

// masked stands for what no log may have.
const masked = "***"

// String is what logs and traces have of a command line. PASS and ACCT have a secret. USER may have one by mistake, and
// so may a line that is no command: clients wait for no prompt, and people do not look.
func (c Command) String() string {
	verb, argument := c.Verb, c.Argument
	switch {
	case verb == "SITE" && !c.Known:
		service, _, more := strings.Cut(argument, " ")
		if argument = service; more {
			argument += " " + masked
		}
	case !c.Known && !isVerb(verb):
		return masked
	case !c.Known || verb == "PASS" || verb == "ACCT" || verb == "USER":
		if argument != "" {
			argument = masked
		}
	}
	if argument == "" {
		return verb
	}
	return verb + " " + argument
}

// longestVerb is how many letters a command has at most (RFC 959 5.3).
const longestVerb = 4

// isVerb says whether a word looks like a command, and not like a password.
func isVerb(word string) bool {
	return len(word) <= longestVerb && !strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// ReplyText is what logs have of the reply to the command. The replies to USER and SITE PRESIGN repeat what no log may
// have: a name that may be a password, or a link.
func (c Command) ReplyText(lines []string) string {
	if c.Verb == "USER" || c.Kind == Presign {
		return masked
	}
	clipped := make([]string, len(lines))
	for i, line := range lines {
		clipped[i] = Clip(line)
	}
	return strings.Join(clipped, "\n")
}
