package doctor

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A line is one of the log: its attributes by their keys, and its text.
type line struct {
	attrs map[string]string
	text  string
}

// parseLine reads a line in either format of the log. What journald, kubectl or a collector has put in front is left
// out. It returns nil for a line of another program.
func parseLine(text string) *line {
	text = strings.TrimSpace(text)
	if at := strings.Index(text, `{"`); at >= 0 {
		var values map[string]any
		if json.Unmarshal([]byte(text[at:]), &values) == nil && values["msg"] != nil {
			l := &line{attrs: make(map[string]string, len(values)), text: text[at:]}
			for key, value := range values {
				if number, ok := value.(float64); ok {
					value = strconv.FormatFloat(number, 'f', -1, 64)
				}
				l.attrs[key] = fmt.Sprint(value)
			}
			return l
		}
	}
	for _, first := range []string{"time=", "level="} {
		at := strings.Index(text, first)
		if at < 0 {
			continue
		}
		l := &line{attrs: map[string]string{}, text: text[at:]}
		for rest := l.text; rest != ""; rest = strings.TrimLeft(rest, " ") {
			key, value, found := strings.Cut(rest, "=")
			if !found {
				break
			}
			if quoted, err := strconv.QuotedPrefix(value); err == nil {
				rest = value[len(quoted):]
				value, _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
			} else {
				value, rest, _ = strings.Cut(value, " ")
			}
			l.attrs[key] = value
		}
		if l.attrs["msg"] != "" {
			return l
		}
	}
	return nil
}

// number is an attribute that is a number, else 0.
func (l *line) number(key string) int {
	n, _ := strconv.Atoi(l.attrs[key])
	return n
}
