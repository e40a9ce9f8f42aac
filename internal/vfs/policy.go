package vfs

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// A Policy says what a user may do with each name: what all of its layers allow, that of the tenant and that of the user.
type Policy []Layer

// A Layer is one layer of a policy: what is allowed where. A rule counts for the names that its pattern means and for all below them,
// and of several the most specific one: that with the most segments, and of two as long the one that has a plain segment where the
// other, from the left, has the first wildcard. Where that does not decide, what all of them allow is allowed.
//
// They are in that order, the most specific first, and the last counts for everything.
type Layer []rule

type rule struct {
	pattern []segment
	shape   string // of the pattern, the same for rules of which none is more specific
	rights  Rights
}

// A segment is one of a pattern, in NFC.
type segment struct {
	text string
	glob bool // text is for path.Match
}

// What shapes are made of. A plain segment sorts before one with wildcards.
const (
	plainShape = "0"
	globShape  = "1"
)

// NewLayer makes a layer: what is allowed everywhere, and what instead where a pattern for [path.Match], absolute, says so.
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
		if plain := strings.NewReplacer(`\\`, "", `\*`, "", `\?`, "", `\[`, ""); !strings.ContainsAny(plain.Replace(text), "*?[") {
			shape = plainShape // although it may hold backslashes
		}
		r.pattern = append(r.pattern, s)
		r.shape += shape
	}
	return r
}

// segments is what stands between the slashes of an absolute, clean pathname: nothing for the root.
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

// follow goes down the pattern with a pathname. It returns what is left of the pattern where the pathname ends, and false if they
// part before.
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
	matched, _ := path.Match(s.text, text) // never malformed
	return matched
}

// covers reports whether the rule is about a pathname.
func (r *rule) covers(name string) bool {
	left, ok := r.follow(name)
	return ok && len(left) == 0
}

// At is what is allowed with what a pathname, absolute, clean and in NFC, names.
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
			may = both(may, other.rights)
		}
	}
	return may
}

// Bounds is the least and the most that is allowed with something at or below a pathname.
func (r Layer) Bounds(name string) (least, most Rights) {
	least = r.At(name)
	most = least
	for _, rule := range r {
		if left, ok := rule.follow(name); ok && len(left) > 0 {
			least, most = both(least, rule.rights), either(most, rule.rights)
		}
	}
	return least, most
}

// Below is the rules for who sees a directory as "/".
func (r Layer) Below(root string) Layer {
	root = Canonical(root)
	var seen Layer
	for _, rule := range r {
		if left, ok := rule.follow(root); ok && len(left) > 0 {
			rule.pattern = left // not its shape: what was more specific stays so
			seen = append(seen, rule)
		}
	}
	return append(seen, rule{rights: r.At(root)})
}

// At is what the user may do with what a pathname names.
//
// A listing asks it of every entry, so the name is not looked at where all names are alike.
func (p Policy) At(name string) Rights {
	may := AllRights()
	if slices.ContainsFunc(p, func(layer Layer) bool { return len(layer) > 1 }) {
		name = Canonical(name)
	}
	for _, layer := range p {
		may = both(may, layer.At(name))
	}
	return may
}

// Bounds is bounds of what the user may do with anything at or below a pathname.
func (p Policy) Bounds(name string) (least, most Rights) {
	name = Canonical(name)
	least, most = AllRights(), AllRights()
	for _, layer := range p {
		l, m := layer.Bounds(name)
		least, most = both(least, l), both(most, m)
	}
	return least, most
}

// Canonical is the form in which pathnames are compared: absolute, clean, and in NFC, so that no rule is evaded by another spelling.
func Canonical(name string) string {
	if !path.IsAbs(name) {
		name = "/" + name
	}
	return norm.NFC.String(path.Clean(name))
}

// AllRights is all of them.
func AllRights() Rights {
	return Rights{List: true, Read: true, Write: true, Delete: true, Rename: true, Mkdir: true}
}

// both is what two sets of rights have in common.
func both(a, b Rights) Rights {
	return Rights{
		List: a.List && b.List, Read: a.Read && b.Read, Write: a.Write && b.Write,
		Delete: a.Delete && b.Delete, Rename: a.Rename && b.Rename, Mkdir: a.Mkdir && b.Mkdir,
	}
}

// either is what two sets of rights have together.
func either(a, b Rights) Rights {
	return Rights{
		List: a.List || b.List, Read: a.Read || b.Read, Write: a.Write || b.Write,
		Delete: a.Delete || b.Delete, Rename: a.Rename || b.Rename, Mkdir: a.Mkdir || b.Mkdir,
	}
}
