package i18n

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// A parseProblem is a part of a catalog that parseFile cannot decode.
type parseProblem struct {
	Line, Column int    // starting at 1, the column in characters; 0 for the whole file
	ID           string // ID of the message, or empty
	Text         string // with advice
}

// parseFile decodes a catalog. It leaves out messages that cannot be decoded and returns a problem for each.
func parseFile(data []byte) (File, []parseProblem) {
	// Editors on Windows write a byte order mark.
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		// encoding/json would replace invalid bytes by U+FFFD.
		return File{}, []parseProblem{{Text: "is not UTF-8; save it in this encoding"}}
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); errors.As(err, &syntax) {
		line, column := position(data, int(syntax.Offset))
		return File{}, []parseProblem{{
			Line: line, Column: column,
			Text: fmt.Sprintf("is not JSON: %v; correct it there or just before", err),
		}}
	}
	var raw struct {
		Language string                     `json:"language"`
		Messages []json.RawMessage          `json:"messages"`
		Macros   map[string]json.RawMessage `json:"macros"`
	}
	if err := unmarshalStrict(data, &raw); err != nil {
		return File{}, []parseProblem{{Text: fmt.Sprintf("%v; see the English catalog for the form", err)}}
	}
	var problems []parseProblem
	if len(raw.Macros) > 0 {
		problems = append(problems, parseProblem{Text: `"macros" are not supported; write their texts into the messages`})
	}
	f := File{Language: raw.Language}
	offset := 0
	for i, r := range raw.Messages {
		offset += bytes.Index(data[offset:], r)
		var m Message
		err := unmarshalStrict(r, &m)
		m.Line, m.Column = position(data, offset)
		offset += len(r)
		if err == nil {
			f.Messages = append(f.Messages, m)
			continue
		}
		text := fmt.Sprintf("%v; see the English catalog for the form", err)
		if m.ID == "" {
			text = fmt.Sprintf("message number %d: %s", i+1, text)
		}
		problems = append(problems, parseProblem{m.Line, m.Column, m.ID, text})
	}
	return f, problems
}

// position returns the line and the column, in characters, of an offset.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
}
