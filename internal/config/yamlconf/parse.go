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

// maxDepth is the maximum nesting of values. A configuration needs less than half of it.
const maxDepth = 50

// otherLineEnds are line breaks in YAML 1.1, but ordinary characters in YAML 1.2 and in editors.
const otherLineEnds = "\u0085\u2028\u2029"

var errTooDeep = errors.New("too deep")

// parse returns the mapping in text, or nil if text is empty. ok is false if text is not a single YAML document.
func (d *decoder) parse(text []byte) (body *yaml.Node, ok bool) {
	if !utf8.Valid(text) {
		d.report(nil, d.offset(text, invalidUTF8(text)), "the file is not UTF-8: save it in that encoding")
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

// syntax reports an error of the parser. deep means that it stopped at maxDepth.
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
		d.report(nil, at, "is nested more than %d levels deep: use fewer levels", maxDepth)
	case ok && found.Stage == yaml.ComposerStage: // undefined alias
		d.report(
			nil, at, "unknown alias: define its anchor with & before it, or quote a string that begins with "+
				"*")
	case ok && found.Stage == yaml.ScannerStage && charAt(text, found.Mark) == '\t':
		d.report(nil, at, "invalid YAML: tabs must not be used for indentation: use spaces")
	case ok && found.Stage == yaml.ScannerStage && indicator(text, found) != 0:
		d.report(
			nil, at, "invalid YAML: a string that begins with %c must be in quotes",
			indicator(text, found))
	case ok && found.ContextMark.Line > 0 && found.ContextMark.Line < at.line:
		d.report(
			nil, at, "invalid YAML: %s, %s from line %d", found.Message, found.ContextMsg, found.ContextMark.Line)
	case ok:
		d.report(nil, at, "invalid YAML: %s", found.Message)
	default:
		d.report(nil, at, "invalid YAML: %v", err)
	}
}

// indicators are characters that cannot begin an unquoted string.
const indicators = "@`%*&!"

// indicator returns the indicator at which the parser stopped, or at which the current token begins, or 0.
func indicator(text []byte, found *yaml.LoadError) rune {
	for _, mark := range []yaml.Mark{found.Mark, found.ContextMark} {
		if r := charAt(text, mark); r != 0 && strings.ContainsRune(indicators, r) {
			return r
		}
	}
	return 0
}

// charAt returns the character at a position, or 0.
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

// offset returns the position of the byte at offset.
func (d *decoder) offset(text []byte, offset int) position {
	before := text[:min(offset, len(text))]
	return position{
		source: d.file, line: 1 + bytes.Count(before, []byte("\n")),
		column: 1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]),
	}
}

// invalidUTF8 returns the offset of the first byte that is not valid UTF-8.
func invalidUTF8(text []byte) (offset int) {
	for {
		r, size := utf8.DecodeRune(text[offset:])
		if r == utf8.RuneError && size <= 1 {
			return offset
		}
		offset += size
	}
}

// at returns the position of a node.
func (d *decoder) at(n *yaml.Node) position {
	return position{source: d.file, line: n.Line, column: n.Column, defaults: d.filling}
}

// resolve follows an alias, and returns nil for null.
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

// maxExpanded limits the number of nodes that all aliases of a configuration expand to. It allows ten thousand users
// to share a list of twenty items. Without a limit, a small document with nested aliases could exhaust the memory.
const maxExpanded = 250_000

// expand counts the nodes of an alias. It returns false if the limit is exceeded.
func (d *decoder) expand(alias *yaml.Node) bool {
	if d.expanded > maxExpanded {
		return false // already reported
	}
	size, known := d.sizes[alias.Alias]
	if !known {
		size = count(alias.Alias)
		d.sizes[alias.Alias] = size
	}
	if d.expanded += size; d.expanded > maxExpanded {
		d.report(
			nil, d.at(alias),
			"aliases expand to more than %d values up to here: use fewer aliases, or shorter values", maxExpanded)
		return false
	}
	return true
}

// count returns the number of nodes in n. An alias counts as one node.
func count(n *yaml.Node) int {
	sum := 1
	for _, inner := range n.Content {
		sum += count(inner)
	}
	return sum
}

// describe returns the kind of a node for messages.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	case yaml.MappingNode:
		return "a mapping"
	case yaml.AliasNode: // as a key; resolve replaces aliases in values
		return "an alias"
	}
	return "this"
}
