package wire

import (
	"strconv"
	"strings"
	"time"
)

// An Argument is the kind of argument that a command takes after the first space.
type Argument int

// Kinds of arguments. Trailing spaces belong to a text, such as a pathname (RFC 2640, 3.1), but not to words, such
// as keywords and addresses, after which some clients send them. Arguments that newer RFCs define without trailing
// spaces are texts too: HOST (RFC 7151), REST (RFC 3659).
const (
	NoArgument Argument = iota
	Words
	OptionalWords
	Text
	OptionalText
	TextAfterSP // may be empty, but the space is required
	OptionalTag // not empty after a space, and a trailing space is an error (RFC 2640, 4.2)
)

// Read returns the argument of a command without spaces that do not belong to it. It returns false if the argument
// is not allowed, or if it is required but missing. has reports whether a space follows the verb. A space alone is
// not an argument: some clients send "LIST " and "PASV ".
func (a Argument) Read(arg string, has bool) (read string, ok bool) {
	switch a {
	case Text:
		return arg, arg != ""
	case OptionalText:
		return arg, true
	case TextAfterSP:
		return arg, has
	case OptionalTag:
		return arg, !has || arg != ""
	}
	words := strings.TrimRight(arg, " ")
	switch a {
	case Words:
		return words, words != ""
	case OptionalWords:
		return words, true
	}
	return "", words == ""
}

// IsNumber reports whether s consists of decimal digits.
func IsNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// ParseALLO parses the argument of ALLO (RFC 959, 4.1.3) and returns the size of an upload in bytes, or 0 if the
// argument has no total size, for example because it gives the size of records.
func ParseALLO(arg string) (size int64, ok bool) {
	number, record, records := strings.Cut(Upper(arg), " R ")
	if !IsNumber(number) || records && !IsNumber(record) {
		return 0, false
	}
	size, err := strconv.ParseInt(number, 10, 64)
	if err != nil || records {
		return 0, true
	}
	return size, true
}

// ParseMFF parses the argument of MFF: facts, each with a semicolon, one space and a pathname. The last semicolon
// is optional, because ncftp omits it. ParseMFF returns the time of the fact "modify". If there are other facts,
// it only returns their names.
func ParseMFF(arg string) (modified time.Time, others []string, pathname string, ok bool) {
	modify := ""
	facts, pathname, _ := strings.Cut(arg, " ")
	if pathname == "" {
		return modified, nil, "", false
	}
	facts = strings.TrimSuffix(facts, ";")
	for fact := range strings.SplitSeq(facts, ";") {
		name, value, ok := strings.Cut(fact, "=")
		switch {
		case !ok || !IsToken(name):
			return modified, nil, "", false
		case !Equal(name, "modify"):
			others = append(others, name)
		case modify != "":
			return modified, nil, "", false
		default:
			modify = value
		}
	}
	if others != nil {
		return modified, others, pathname, true
	}
	modified, ok = ParseTimeVal(modify)
	return modified, nil, pathname, ok
}

// ParseMFMT parses the argument of MFMT: a time, one space and a pathname.
func ParseMFMT(arg string) (modified time.Time, pathname string, ok bool) {
	value, pathname, _ := strings.Cut(arg, " ")
	modified, ok = ParseTimeVal(value)
	return modified, pathname, ok && pathname != ""
}

// ParseUTIME parses the argument of SITE UTIME, which no document defines. It accepts the form of Serv-U, a
// pathname with the times of access, modification and creation and "UTC", and the form of ProFTPD, a modification
// time and a pathname, in which the seconds are optional.
func ParseUTIME(arg string) (modified time.Time, pathname string, ok bool) {
	words := strings.Split(arg, " ")
	if name := len(words) - 4; name > 0 && Equal(words[name+3], "UTC") {
		times, valid := [3]time.Time{}, true
		for i := range times {
			times[i], ok = ParseTimeVal(words[name+i])
			valid = valid && ok
		}
		if valid {
			pathname = strings.Join(words[:name], " ")
			return times[1], pathname, pathname != ""
		}
	}
	value, pathname, _ := strings.Cut(arg, " ")
	if len(value) == len("YYYYMMDDhhmm") {
		value += "00"
	}
	modified, ok = ParseTimeVal(value)
	return modified, pathname, ok && pathname != ""
}

// ParsePasswords parses the argument of SITE PSWD, which no document defines: the current and the new password, with
// one space between them. A password with a space, or that begins with a quotation mark, must be in quotation marks,
// and a quotation mark in it is doubled, as in a reply to PWD (RFC 959, appendix II).
func ParsePasswords(arg string) (current, next string, ok bool) {
	current, rest, ok := cutPassword(arg)
	if rest == "" || !ok || rest[0] != ' ' {
		return "", "", false
	}
	next, rest, ok = cutPassword(rest[1:])
	return current, next, ok && rest == ""
}

// cutPassword returns the password at the beginning of a text, and the text after it.
func cutPassword(text string) (password, rest string, ok bool) {
	quoted, ok := strings.CutPrefix(text, `"`)
	if !ok {
		password, _, _ = strings.Cut(text, " ")
		return password, text[len(password):], password != ""
	}
	for {
		part, after, closed := strings.Cut(quoted, `"`)
		if !closed {
			return "", "", false
		}
		password += part
		if quoted, ok = strings.CutPrefix(after, `"`); !ok {
			return password, after, password != ""
		}
		password += `"`
	}
}

// WithoutOptions removes options of ls from the argument of LIST, NLST or STAT, such as "-aln". Many clients send
// them, and most servers ignore all of them. An option is "-" followed by letters or the digit 1, and "--" ends
// the options. For a file that looks like an option, clients can send "./-a".
//
// Any number of spaces may follow an option, because people and clients align columns with them. Leading spaces
// belong to the pathname if there are no options (RFC 2640, 3.1), or after "--".
func WithoutOptions(arg string) string {
	for {
		word, rest, _ := strings.Cut(arg, " ")
		switch {
		case word == "--":
			return rest
		case !isOption(word):
			return arg
		}
		arg = strings.TrimLeft(rest, " ")
	}
}

func isOption(word string) bool {
	letters, ok := strings.CutPrefix(Upper(word), "-")
	return ok && letters != "" && strings.Trim(letters, "ABCDEFGHIJKLMNOPQRSTUVWXYZ1") == ""
}

// FormatDuration formats a duration without trailing zero units, for example 24h.
func FormatDuration(d time.Duration) string {
	text := d.String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// ParseDuration parses a number of seconds or a duration such as 90m or 1h30m.
func ParseDuration(text string) (time.Duration, bool) {
	if IsNumber(text) {
		n, err := strconv.ParseInt(text, 10, 32)
		return time.Duration(n) * time.Second, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}
