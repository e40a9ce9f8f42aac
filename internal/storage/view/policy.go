package view

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A Policy determines what a user may do with each name: what all of its layers allow. There are layers for the
// tenant, and one for the user.
type Policy []Layer

// A Layer is a list of rules. A rule applies to the names that match its pattern, and to everything below them. If
// several rules match, the most specific one applies: the rule with the most segments or, if they have the same
// number, the one that, from the left, has a plain segment where the other one has a wildcard. If rules are equally
// specific, the user may do what all of them allow.
//
// The rules are sorted, most specific first. The last rule applies to everything.
type Layer []rule

type rule struct {
	pattern []segment
	shape   string // specificity of the pattern; equal for equally specific rules
	rights  Rights
}

// A segment is a segment of a pattern, in NFC.
type segment struct {
	text string
	glob bool // text is a pattern for path.Match
}

// A shape has one character per segment. A plain segment sorts before a segment with wildcards.
const (
	plainShape = "0"
	globShape  = "1"
)

// NewLayer returns a layer with the rights that apply everywhere, and with exceptions by pattern. Patterns are
// absolute; see [path.Match].
func NewLayer(everywhere Rights, byPattern map[string]Rights) Layer {
	r := Layer{{rights: everywhere}}
	for pattern, rights := range byPattern {
		r = append(r, newRule(pattern, rights))
	}
	slices.SortFunc(r, func(a, b rule) int {
		return cmp.Or(cmp.Compare(len(b.shape), len(a.shape)), cmp.Compare(a.shape, b.shape))
	})
	return r
}

func newRule(pattern string, rights Rights) rule {
	r := rule{rights: rights}
	for text := range segments(norm.NFC.String(pattern)) {
		s := segment{text: text, glob: strings.ContainsAny(text, `*?[\`)}
		shape := globShape
		unescaped := strings.NewReplacer(`\\`, "", `\*`, "", `\?`, "", `\[`, "").Replace(text)
		if !strings.ContainsAny(unescaped, "*?[") {
			shape = plainShape // it may still contain backslashes
		}
		r.pattern = append(r.pattern, s)
		r.shape += shape
	}
	return r
}

// A Pattern matches pathnames like the pattern of a rule in a [Layer]: it also matches everything below.
type Pattern struct{ rule rule }

// NewPattern returns a pattern. An empty one matches everything.
func NewPattern(pattern string) Pattern { return Pattern{newRule(cmp.Or(pattern, "/"), Rights{})} }

// Covers reports whether the pattern matches a canonical pathname.
func (p *Pattern) Covers(name string) bool { return p.rule.covers(name) }

// Below returns the pattern for a user who sees the directory root as "/". It returns false if nothing in root matches.
func (p *Pattern) Below(root string) (pattern string, ok bool) {
	left, ok := p.rule.follow(Canonical(root))
	for _, s := range left {
		pattern += "/" + s.text
	}
	return cmp.Or(pattern, "/"), ok
}

// segments yields the segments of an absolute, clean pathname. The root has no segments.
func segments(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for rest := name[len("/"):]; rest != ""; {
			var first string
			first, rest, _ = strings.Cut(rest, "/")
			if !yield(first) {
				return
			}
		}
	}
}

// follow matches a pathname against the start of the pattern. It returns the remaining segments of the pattern, and
// false if they differ.
func (r *rule) follow(name string) (left []segment, ok bool) {
	left = r.pattern
	for text := range segments(name) {
		if len(left) == 0 {
			break
		}
		if !left[0].matches(text) {
			return nil, false
		}
		left = left[1:]
	}
	return left, true
}

func (s segment) matches(text string) bool {
	if !s.glob {
		return s.text == text
	}
	matched, _ := path.Match(s.text, text) // patterns are valid
	return matched
}

// covers reports whether the rule applies to a pathname.
func (r *rule) covers(name string) bool {
	left, ok := r.follow(name)
	return ok && len(left) == 0
}

// At returns the rights for a canonical pathname.
func (r Layer) At(name string) Rights {
	if len(r) == 1 {
		return r[0].rights
	}
	i := slices.IndexFunc(r, func(rule rule) bool { return rule.covers(name) })
	may := r[i].rights
	for _, other := range r[i+1:] {
		if other.shape != r[i].shape {
			break
		}
		if other.covers(name) {
			may = intersect(may, other.rights)
		}
	}
	return may
}

// Bounds returns the least and the most rights at or below a canonical pathname.
func (r Layer) Bounds(name string) (least, most Rights) {
	least = r.At(name)
	most = least
	for _, rule := range r {
		if left, ok := rule.follow(name); ok && len(left) > 0 {
			least, most = intersect(least, rule.rights), union(most, rule.rights)
		}
	}
	return least, most
}

// Below returns the layer for a user who sees the directory root as "/".
func (r Layer) Below(root string) Layer {
	root = Canonical(root)
	var seen Layer
	for _, rule := range r {
		if left, ok := rule.follow(root); ok && len(left) > 0 {
			rule.pattern = left // the shape stays the same, so that the order of the rules does not change
			seen = append(seen, rule)
		}
	}
	return append(seen, rule{rights: r.At(root)})
}

// Naming returns the rules whose pattern begins with the name of a directory directly below "/". Without such rules,
// the policy allows everything.
func (p Policy) Naming(dir string) Policy {
	var naming Policy
	for _, layer := range p {
		var rules Layer
		for _, rule := range layer {
			if len(rule.pattern) > 0 && !rule.pattern[0].glob && "/"+rule.pattern[0].text == Canonical(dir) {
				rules = append(rules, rule)
			}
		}
		if len(rules) > 0 {
			naming = append(naming, append(rules, Layer{{rights: AllRights()}}...))
		}
	}
	return naming
}

// At returns the rights of the user for a pathname.
//
// Listings call it for every entry, so it makes the name canonical only if the rights depend on the name.
func (p Policy) At(name string) Rights {
	may := AllRights()
	if slices.ContainsFunc(p, func(layer Layer) bool { return len(layer) > 1 }) {
		name = Canonical(name)
	}
	for _, layer := range p {
		may = intersect(may, layer.At(name))
	}
	return may
}

// Bounds returns the least and the most rights of the user at or below a pathname.
func (p Policy) Bounds(name string) (least, most Rights) {
	name = Canonical(name)
	least, most = AllRights(), AllRights()
	for _, layer := range p {
		l, m := layer.Bounds(name)
		least, most = intersect(least, l), intersect(most, m)
	}
	return least, most
}

// Canonical returns the form in which rules compare pathnames: absolute, clean, and in NFC. Therefore no variant of a
// name can evade a rule.
func Canonical(name string) string {
	if !path.IsAbs(name) {
		name = "/" + name
	}
	return norm.NFC.String(path.Clean(name))
}

// AllRights returns all rights.
func AllRights() Rights {
	return Rights{List: true, Read: true, Write: true, Delete: true, Rename: true, Mkdir: true}
}

// intersect returns the rights in both a and b.
func intersect(a, b Rights) Rights {
	return Rights{
		List: a.List && b.List, Read: a.Read && b.Read, Write: a.Write && b.Write,
		Delete: a.Delete && b.Delete, Rename: a.Rename && b.Rename, Mkdir: a.Mkdir && b.Mkdir,
	}
}

// union returns the rights in a or b.
func union(a, b Rights) Rights {
	return Rights{
		List: a.List || b.List, Read: a.Read || b.Read, Write: a.Write || b.Write,
		Delete: a.Delete || b.Delete, Rename: a.Rename || b.Rename, Mkdir: a.Mkdir || b.Mkdir,
	}
}
