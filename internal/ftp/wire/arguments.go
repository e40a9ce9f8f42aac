package wire

import (
	"strconv"
	"strings"
	"time"
)

// An Argument is the way in which a command reads what follows the first SP behind its verb.
type Argument int

// What a command takes. SP at the end belongs to a text, such as a pathname (RFC 2640 3.1). It is
// no part of words, such as keywords and addresses, after which some clients send it. What a younger RFC defines
// without SP there is a text too: HOST (RFC 7151), REST (RFC 3659).
const (
	NoArgument Argument = iota
	Words
	OptionalWords
	Text
	OptionalText
	TextAfterSP // which may be empty, but SP may not be missing
	OptionalTag // not empty behind SP, and SP at its end is an error (RFC 2640 4.2)
)

// Read returns the argument of a command without what does not belong to it. It returns false where a command may not
// come with this argument, or not without one if has is false. SP alone is no argument: "LIST " and "PASV " is what
// some clients send.
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

// IsNumber reports whether text is decimal digits only.
func IsNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// ParseALLO reads the argument of ALLO (RFC 959 4.1.3): the size of an upload in
// bytes, 0 where the argument does not tell it. A size of records does not.
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

// ParseMFF reads the argument of MFF: facts, each with a semicolon, one SP and a
// pathname. The last semicolon may be missing, because ncftp sends none. ParseMFF returns
// the time of the fact "modify" and the names of all others, or only those where there are
// some.
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

// ParseMFMT reads the argument of MFMT: a time, one SP and a pathname.
func ParseMFMT(arg string) (modified time.Time, pathname string, ok bool) {
	value, pathname, _ := strings.Cut(arg, " ")
	modified, ok = ParseTimeVal(value)
	return modified, pathname, ok && pathname != ""
}

// ParseUTIME reads the argument of SITE UTIME, which no document defines. It is a pathname
// with the times of access, modification and creation and "UTC", as Serv-U has it, or a
// time of modification and a pathname, as ProFTPD has it. There the seconds may be missing.
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

// WithoutOptions returns the argument of LIST, NLST or STAT without the options of ls before the pathname, such as
// "-aln". Many clients send them, and most servers skip all of them. An option is a word of "-" and letters, or of the
// digit 1. "--" ends the options. A client names a file that looks like an option as "./-a".
//
// Several SP between an option and what follows separate them, because people and clients write columns so. A pathname
// keeps its leading SP without options (RFC 2640 3.1), and behind "--".
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

// FormatDuration writes a duration without the zeros at its end: 24h.
func FormatDuration(d time.Duration) string {
	text := d.String()
	for _, unit := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, unit) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// ParseDuration reads a number of seconds or a duration such as 90m or 1h30m.
func ParseDuration(text string) (time.Duration, bool) {
	if IsNumber(text) {
		n, err := strconv.ParseInt(text, 10, 32)
		return time.Duration(n) * time.Second, err == nil
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}
