package mojibake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// header explains the file to the people who review it.
const header = "# Names that a device may have written in another charset. Only lines that begin with \"rename\"\n" +
	"# are applied: change the state of other lines to rename, or remove lines. A directory ends in a slash.\n" +
	"# state\tcharset\tobjects\tpath\tnew name\tnote\n"

// Write writes lines in the format of [Read]: fields separated by tabs, and quoted if they contain invisible
// characters.
func Write(out io.Writer, lines []Line) error {
	var b bytes.Buffer
	b.WriteString(header)
	for _, l := range lines {
		fields := []string{
			string(l.State), l.Charset, strconv.FormatInt(l.Objects, 10),
			quoted(l.Path), quoted(l.Name), quoted(l.Note),
		}
		if l.Note == "" {
			fields = fields[:len(fields)-1]
		}
		b.WriteString(strings.Join(fields, "\t") + "\n")
	}
	_, err := out.Write(b.Bytes())
	return err
}

// quoted returns a field in the format of the file.
func quoted(text string) string {
	isHidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if text == "" || strings.HasPrefix(text, `"`) || strings.TrimSpace(text) != text || strings.ContainsFunc(text, isHidden) {
		return strconv.Quote(text)
	}
	return text
}

// Read parses a file from Write, which people may have edited. Errors name the line.
func Read(text []byte) ([]Line, error) {
	var lines []Line
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		l, err := readLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if first, twice := seen[l.Path]; twice && l.State == Rename {
			return nil, fmt.Errorf("line %d: line %d already renames %s: keep one of them", number, first, quoted(l.Path))
		}
		if l.State == Rename {
			seen[l.Path] = number
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func readLine(line string) (l Line, err error) {
	const fewest, most = 5, 6
	fields := strings.Split(line, "\t")
	if len(fields) < fewest || len(fields) > most {
		return l, fmt.Errorf("has %d fields, want %d: state, charset, objects, path and new name, separated by tabs",
			len(fields), fewest)
	}
	for i, field := range fields {
		if strings.HasPrefix(field, `"`) {
			if fields[i], err = strconv.Unquote(field); err != nil {
				return l, fmt.Errorf("%s is not a quoted string", field)
			}
		}
	}
	l = Line{State: State(fields[0]), Charset: fields[1], Path: fields[3], Name: fields[4]}
	if len(fields) == most {
		l.Note = fields[5]
	}
	if l.Objects, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return l, fmt.Errorf("%q is not a number of objects", fields[2])
	}
	switch l.State {
	case Rename, Unsure, Exists, Long, Gone:
	default:
		return l, fmt.Errorf("unknown state %q: write rename, or unsure to leave the name as it is", l.State)
	}
	clean := strings.TrimSuffix(l.Path, "/")
	if !path.IsAbs(clean) || path.Clean(clean) != clean || clean == "/" {
		return l, fmt.Errorf("%s is not a path of the tenant: begin it with a slash", quoted(l.Path))
	}
	if err := checkName(l.Name); err != nil {
		return l, fmt.Errorf("new name %s: %w", quoted(l.Name), err)
	}
	return l, nil
}

// checkName returns an error if a name cannot be the last segment of a pathname.
func checkName(name string) error {
	switch {
	case name == "", name == ".", name == "..":
		return errors.New("write the name of a file or directory")
	case strings.Contains(name, "/"):
		return errors.New("write the last segment only, without a slash")
	case !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0:
		return errors.New("write a name in UTF-8, without NUL")
	}
	return nil
}
