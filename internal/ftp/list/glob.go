package list

import (
	"slices"
	"unicode/utf8"
)

// A glob matches names with a pattern of [path.Match], in a time that grows with the length of the name times that of
// the pattern, divided by 64. The backtracking of path.Match costs milliseconds for each long name and a pattern of
// many stars, and a client may list millions of names.
//
// It is the Shift-And algorithm (Baeza-Yates and Gonnet): bit i of the state says that the first i elements of the
// pattern match the name so far.
type glob struct {
	elements []element
	stars    []uint64 // bit i: a star stands before element i, or at the end
	state    []uint64
	next     []uint64

	// matching has, for a rune of a name, the elements that match it.
	matching map[rune][]uint64
}

// wordBits is how many bits a word of the state has.
const wordBits = 64

// maxRunes is for how many different runes a glob remembers which elements match them.
const maxRunes = 512

// An element of a pattern matches one rune.
type element struct {
	ranges  [][2]rune
	negated bool
}

func (e *element) matches(r rune) bool {
	return e.negated != slices.ContainsFunc(e.ranges, func(b [2]rune) bool { return b[0] <= r && r <= b[1] })
}

// newGlob returns the glob of a pattern that path.Match takes.
func newGlob(pattern string) *glob {
	g := &glob{matching: map[rune][]uint64{}}
	var stars []int
	for len(pattern) > 0 {
		switch r, rest := nextRune(pattern); r {
		case '*':
			stars = append(stars, len(g.elements))
			pattern = rest
		case '?':
			g.elements = append(g.elements, element{negated: true})
			pattern = rest
		case '[':
			var e element
			e, pattern = parseClass(rest)
			g.elements = append(g.elements, e)
		default:
			r, pattern = unescaped(pattern)
			g.elements = append(g.elements, element{ranges: [][2]rune{{r, r}}})
		}
	}
	words := len(g.elements)/wordBits + 1
	g.stars, g.state, g.next = make([]uint64, words), make([]uint64, words), make([]uint64, words)
	for _, i := range stars {
		set(g.stars, i)
	}
	return g
}

// parseClass parses what comes after the bracket that begins a class.
func parseClass(pattern string) (e element, rest string) {
	if pattern[0] == '^' {
		e.negated = true
		pattern = pattern[1:]
	}
	for first := true; first || pattern[0] != ']'; first = false {
		var low, high rune
		low, pattern = unescaped(pattern)
		if high = low; pattern[0] == '-' {
			high, pattern = unescaped(pattern[1:])
		}
		e.ranges = append(e.ranges, [2]rune{low, high})
	}
	return e, pattern[1:]
}

// unescaped returns the first rune of a pattern, or the one after a backslash.
func unescaped(pattern string) (r rune, rest string) {
	if pattern[0] == '\\' {
		pattern = pattern[1:]
	}
	return nextRune(pattern)
}

// nextRune returns the first rune. A byte that is not UTF-8 is a rune of its own, beyond those of Unicode.
func nextRune(s string) (r rune, rest string) {
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 {
		r = utf8.MaxRune + 1 + rune(s[0])
	}
	return r, s[size:]
}

// match reports whether the whole name matches.
func (g *glob) match(name string) bool {
	clear(g.state)
	set(g.state, 0)
	for len(name) > 0 {
		var r rune
		r, name = nextRune(name)
		matching := g.elementsMatching(r)
		carry, alive := uint64(0), uint64(0)
		for i, state := range g.state {
			forward := state & matching[i]
			g.next[i] = forward<<1 | carry | state&g.stars[i]
			carry = forward >> (wordBits - 1)
			alive |= g.next[i]
		}
		if g.state, g.next = g.next, g.state; alive == 0 {
			return false
		}
	}
	return isSet(g.state, len(g.elements))
}

// elementsMatching returns the elements that match a rune, as bits.
func (g *glob) elementsMatching(r rune) []uint64 {
	matching := g.matching[r]
	if matching != nil {
		return matching
	}
	if len(g.matching) >= maxRunes {
		clear(g.matching)
	}
	matching = make([]uint64, len(g.state))
	for i := range g.elements {
		if g.elements[i].matches(r) {
			set(matching, i)
		}
	}
	g.matching[r] = matching
	return matching
}

func set(b []uint64, i int)        { b[i/wordBits] |= 1 << (i % wordBits) }
func isSet(b []uint64, i int) bool { return b[i/wordBits]&(1<<(i%wordBits)) != 0 }
