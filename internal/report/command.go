package report

import (
	"strings"
	"time"
)

// A Command is a command line from a client. The zero value means that no command was sent: the server greets the
// client or ends the session.
type Command struct {
	// Name is the verb, or one constant word for all unknown verbs, so that clients cannot create metric labels.
	Name string
	// Verb and Argument are what the client sent. The argument may be a password.
	Verb, Argument string
	// Known means that the server supports the verb, and in case of SITE also the service.
	Known bool
	Kind  Kind
	Began time.Time
}

// masked replaces text that must not be logged.
const masked = "***"

// String returns the command line for logs and traces. It masks the arguments of PASS, ACCT and SITE PSWD, which are
// secrets. It also masks the argument of USER and lines that are not commands, because people and clients sometimes
// send a password there.
func (c Command) String() string {
	verb, argument := c.Verb, c.Argument
	switch {
	case verb == "SITE" && (!c.Known || c.Kind == SetPassword):
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

// longestVerb is the maximum length of a command (RFC 959 section 5.3).
const longestVerb = 4

// isVerb reports whether a word looks like a command rather than a password.
func isVerb(word string) bool {
	return len(word) <= longestVerb && !strings.ContainsFunc(word, func(r rune) bool { return r < 'A' || r > 'Z' })
}

// ReplyText returns the reply to the command for logs. The replies to USER and SITE PRESIGN are masked, because they
// repeat a name that may be a password, or contain a link.
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
