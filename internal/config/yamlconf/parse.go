package yamlconf

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxDepth is how many values may be within each other. A configuration has less than half of that.
const maxDepth = 50

// otherLineEnds are characters that end a line in YAML 1.1. In YAML 1.2 and in editors they stand for themselves.
const otherLineEnds = "\u0085\u2028\u2029"

var errTooDeep = errors.New("too deep")

// parse returns the mapping that text is, nil for an empty text. It reports whether text is one YAML document at all.
func (d *decoder) parse(text []byte) (body *yaml.Node, ok bool) {
	if !utf8.Valid(text) {
		d.report(nil, d.offset(text, invalidUTF8(text)), "this is not UTF-8: save the file in that encoding")
		return nil, false
	}
	if at := bytes.IndexAny(text, otherLineEnds); at >= 0 {
		r, _ := utf8.DecodeRune(text[at:])
		d.report(
			nil, d.offset(text, at), `%U would end the line: write a line feed, or "\u%04[1]x" in double quotes`, r)
		return nil, false
	}
	deep := false
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithPlugin(loaderlimits.New(
		loaderlimits.DepthFunc(func(depth int, _ *loaderlimits.DepthContext) error {
			if deep = depth > maxDepth; deep {
				return errTooDeep
			}
			return nil
		}))))
	if err != nil {
		panic(err) // the options are valid
	}
	for first := true; ; first = false {
		var document yaml.Node
		if err := loader.Load(&document); errors.Is(err, io.EOF) {
			return body, true
		} else if err != nil {
			d.syntax(text, err, deep)
			return nil, false
		}
		content := document.Content[0]
		switch isNull := d.resolve(content) == nil; {
		case isNull:
		case !first:
			d.report(
				nil, d.at(content), "a second document begins here: write everything in one document, without ---")
			return nil, false
		case d.resolve(content).Kind != yaml.MappingNode:
			d.report(nil, d.at(content), "must be a mapping (key: value), not %s", describe(content))
			return nil, false
		default:
			body = content
		}
	}
}

// syntax reports what the parser found in a text. deep says that it has stopped at maxDepth.
func (d *decoder) syntax(text []byte, err error, deep bool) {
	at := position{source: d.file, line: 1, column: 1}
	found, ok := errors.AsType[*yaml.LoadError](err)
	switch {
	case ok && found.Stage == yaml.ReaderStage:
		at = d.offset(text, found.Mark.Index)
	case ok && found.Mark.Line > 0:
		at.line, at.column = found.Mark.Line, found.Mark.Column
	}
	switch {
	case deep:
		d.report(nil, at, "has values in more than %d others: write it in fewer levels", maxDepth)
	case ok && found.Stage == yaml.ComposerStage: // it looks for anchors
		d.report(
			nil, at, "no anchor before this alias has its name: define it with & before, or put a text that begins with "+
				"* into quotes")
	case ok && found.Stage == yaml.ScannerStage && charAt(text, found.Mark) == '\t':
		d.report(nil, at, "this is not YAML: a tab cannot indent: write spaces")
	case ok && found.Stage == yaml.ScannerStage && indicator(text, found) != 0:
		d.report(
			nil, at, "this is not YAML: no text begins with %c outside of quotes: put it into quotes",
			indicator(text, found))
	case ok && found.ContextMark.Line > 0 && found.ContextMark.Line < at.line:
		d.report(
			nil, at, "this is not YAML: %s, %s from line %d", found.Message, found.ContextMsg, found.ContextMark.Line)
	case ok:
		d.report(nil, at, "this is not YAML: %s", found.Message)
	default:
		d.report(nil, at, "this is not YAML: %v", err)
	}
}

// indicators are characters that have a meaning in YAML at the start of a text.
const indicators = "@`%*&!"

// indicator is the one at which the parser stopped, or which began what the parser was reading. It is 0 without one.
func indicator(text []byte, found *yaml.LoadError) rune {
	for _, mark := range []yaml.Mark{found.Mark, found.ContextMark} {
		if r := charAt(text, mark); r != 0 && strings.ContainsRune(indicators, r) {
			return r
		}
	}
	return 0
}

// charAt is the character at a place, 0 where there is none.
func charAt(text []byte, at yaml.Mark) rune {
	line := 1
	for of := range bytes.Lines(text) {
		if line == at.Line {
			for i, r := range []rune(string(of)) {
				if i+1 == at.Column {
					return r
				}
			}
		}
		line++
	}
	return 0
}

// offset is the position of a byte of a text.
func (d *decoder) offset(text []byte, offset int) position {
	before := text[:min(offset, len(text))]
	return position{
		source: d.file, line: 1 + bytes.Count(before, []byte("\n")),
		column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]),
	}
}

// invalidUTF8 is the offset of the first byte that is not UTF-8.
func invalidUTF8(text []byte) (offset int) {
	for {
		r, size := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && size <= 1 {
			return offset
		}
		offset += size
	}
}

// at is where a node begins.
func (d *decoder) at(n *yaml.Node) position {
	return position{source: d.file, line: n.Line, column: n.Column, defaults: d.filling}
}

// resolve is the node behind an alias, and nil for null.
func (d *decoder) resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		if !d.expand(n) {
			return nil
		}
		n = n.Alias
	}
	if n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil
	}
	return n
}

// maxExpanded is how many nodes all aliases of a configuration may stand for, keys and values. Ten thousand users may
// share a list of twenty. A small document in which long values are repeated by aliases, or aliases are within
// aliases, would take all memory.
const maxExpanded = 250_000

// expand counts what an alias stands for, and reports whether that is still allowed.
func (d *decoder) expand(alias *yaml.Node) bool {
	if d.expanded > maxExpanded {
		return false // which was reported
	}
	size, known := d.sizes[alias.Alias]
	if !known {
		size = count(alias.Alias)
		d.sizes[alias.Alias] = size
	}
	if d.expanded += size; d.expanded > maxExpanded {
		d.report(
			nil, d.at(alias),
			"aliases stand for more than %d values up to here: write fewer aliases, or of shorter values", maxExpanded)
		return false
	}
	return true
}

// count is how many nodes a node is, in which an alias is one.
func count(n *yaml.Node) int {
	sum := 1
	for _, inner := range n.Content {
		sum += count(inner)
	}
	return sum
}

// describe says what a node is.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode: // of a key: resolve gives what others stand for
		return "an alias"
	}
	return "this"
}
