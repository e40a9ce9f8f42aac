package driver

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// finest is how many numbers a splitter tells apart at least, where keys are long enough, and coarsest how many at most: more
	// than a bucket has keys, and few enough to multiply.
	finest   = 1 << 24
	coarsest = 1 << 52

	// evenness is how many parts of a page are looked at for how evenly its keys lie.
	evenness = 8

	// alphabet is how many characters a script has that writes sounds, with digits and signs.
	alphabet = 128
)

// A splitter guesses which key comes a page after another one, from a page that it has seen. It takes keys for numbers: what all
// keys of the page begin with is left out, and each of the characters that follow is a digit, whose base is the characters that
// were seen in its place. So it counts on from "scan-00999.pdf" to "scan-01998", and knows how far it is from "1a" to "ff".
//
// Nothing depends on a guess but the time that it saves.
type splitter struct {
	stem  string   // what keys begin with
	bases [][]rune // of the digits that follow; the characters in order
	limit uint64   // how many numbers there are
	step  uint64   // from a key to the one a page later
}

// noRune is the end of a key. It comes before all characters.
const noRune = rune(-1)

// newSplitter looks at a page of a listing with a delimiter, or returns nil if its keys tell nothing.
func newSplitter(l s3api.Listing, p *s3api.Page) *splitter {
	keys := p.Names(l.Prefix)
	if len(keys) < 4*evenness { // too few to tell
		return nil
	}
	s := &splitter{stem: commonPrefix(keys[0], keys[len(keys)-1]), limit: 1}
	s.learn(keys)
	s.extend(len(l.Prefix))
	// The page is cut into parts of as many keys. That of middle size tells the step, because a few large gaps between keys are no
	// measure for others. The step is shorter by three times as much as the parts usually differ from it, so that it rarely goes too
	// far, which would cost another request.
	parts, size := make([]uint64, evenness), (len(keys)-1)/evenness
	for i := range parts {
		parts[i] = s.number(keys[(i+1)*size]) - s.number(keys[i*size])
	}
	middle := median(parts)
	for i, part := range parts {
		parts[i] = max(part, middle) - min(part, middle)
	}
	s.step = middle*evenness - min(3*median(parts), middle*evenness/2)
	if parts[evenness-1] == 0 { // as keys that are counted: the last of the page counts too
		s.step += middle / uint64(size) * uint64(len(keys)-1-evenness*size)
	}
	if s.step == 0 {
		return nil
	}
	return s
}

// median sorts numbers, and returns the lower of the two in the middle.
func median(numbers []uint64) uint64 {
	slices.Sort(numbers)
	return numbers[(len(numbers)-1)/2]
}

// learn takes the characters between what all keys begin with and what all end with for digits.
func (s *splitter) learn(keys []string) {
	tail := keys[0][len(s.stem):]
	rests := make([]string, len(keys))
	for i, key := range keys {
		rests[i] = key[len(s.stem):]
		for !strings.HasSuffix(rests[i], tail) {
			tail = tail[1:]
		}
	}
	for i := range rests {
		rests[i] = strings.TrimSuffix(rests[i], tail)
	}
	for s.limit < finest {
		var base []rune
		for i, rest := range rests {
			c, size := firstRune(rest)
			rests[i] = rest[size:]
			if at, found := slices.BinarySearch(base, c); !found {
				base = slices.Insert(base, at, c)
			}
		}
		count := uint64(len(base))
		if base[count-1] == noRune || s.limit*count > coarsest {
			return
		}
		s.bases = append(s.bases, base)
		s.limit *= count
	}
}

// extend allows for what the page has not seen change: for more values of the first digit, and for digits before it, which are the
// last characters of the stem, but not those within so many bytes.
func (s *splitter) extend(least int) {
	var values []rune
	for _, base := range s.bases {
		if len(base) > 1 {
			values = append(values, base...)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	if len(values) > 0 && values[0] == noRune {
		values = values[1:]
	}
	if len(values) == 0 {
		return
	}
	first := append(slices.Clone(s.bases[0]), s.unseen(values)...)
	slices.Sort(first)
	first = filled(slices.Compact(first))
	s.limit = s.limit / uint64(len(s.bases[0])) * uint64(len(first))
	s.bases[0] = first
	for len(s.stem) > least && s.limit*uint64(len(values)) <= coarsest {
		c, size := utf8.DecodeLastRuneInString(s.stem)
		s.stem = s.stem[:len(s.stem)-size]
		base := []rune{c}
		if slices.Contains(values, c) {
			base = values
		}
		s.bases = slices.Insert(s.bases, 0, base)
		s.limit *= uint64(len(base))
	}
}

// unseen are the values that the first digit may have besides those that were seen. Where the others have all values, as those of a
// counter do, it may have them too. Where they have not, as those of a date, it is the next.
func (s *splitter) unseen(values []rune) []rune {
	for _, base := range s.bases[1:] {
		if len(base) > 1 && len(base) < len(values)*3/4 {
			last, _ := slices.BinarySearch(values, s.bases[0][len(s.bases[0])-1])
			return values[last:min(last+2, len(values))]
		}
	}
	return values
}

// filled is a base with all that lies between its characters, if there are more than an alphabet has: of a script with thousands, a
// page has only some, and none of those that follow.
func filled(base []rune) []rune {
	first, last := base[0], base[len(base)-1]
	if len(base) <= alphabet || last-first > utf8.MaxRune/16 {
		return base
	}
	all := make([]rune, 0, last-first+1)
	for c := first; c <= last; c++ {
		all = append(all, c)
	}
	return all
}

// number is the place of a key among all numbers.
func (s *splitter) number(key string) uint64 {
	rest, ok := strings.CutPrefix(key, s.stem)
	if !ok && key < s.stem {
		return 0
	}
	if !ok {
		return s.limit
	}
	weight, n := s.limit, uint64(0)
	for _, base := range s.bases {
		weight /= uint64(len(base))
		c, size := firstRune(rest)
		at, found := slices.BinarySearch(base, c)
		n += weight * uint64(at)
		if !found {
			break
		}
		rest = rest[size:]
	}
	return min(n, s.limit)
}

// key is the least key of a number.
func (s *splitter) key(number uint64) string {
	key := []byte(s.stem)
	weight := s.limit
	for _, base := range s.bases {
		if number == 0 {
			break
		}
		weight /= uint64(len(base))
		c := base[number/weight]
		if c == noRune {
			break
		}
		key = utf8.AppendRune(key, c)
		number %= weight
	}
	return string(key)
}

// after guesses the key that comes a page after another, or returns false when it knows of none.
func (s *splitter) after(key string) (string, bool) {
	n := s.number(key)
	if n >= s.limit || s.step >= s.limit-n {
		return "", false
	}
	guess := s.key(n + s.step)
	return guess, guess > key
}

// firstRune is noRune for an empty string.
func firstRune(text string) (c rune, size int) {
	if text == "" {
		return noRune, 0
	}
	return utf8.DecodeRuneInString(text)
}

// commonPrefix is what both begin with, in whole characters.
func commonPrefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(a) && !utf8.RuneStart(a[n]) {
		n--
	}
	return a[:n]
}
