package passwordhash

import (
	"crypto/rand"
	"maps"
	"slices"
)

// A Set is the hashes of all users of a server. All passwords that it refuses cost the same, so that the time of a
// refusal tells neither whether a user exists nor what kind of hash the user has.
//
// A refusal costs one comparison of each kind. So hashes of several kinds make it expensive, and a server should have
// few kinds.
type Set struct{ dummies []hash } // of each kind one with the most rounds

// NewSet takes the hashes of all users, and skips what is no hash. Without any, a refusal costs what the hashes of
// [New] do.
func NewSet(texts []string) (*Set, error) {
	kinds := map[string]hash{}
	for _, text := range texts {
		h, err := read(text)
		if err != nil {
			continue
		}
		if most := kinds[h.kind()]; most == nil || h.rounds() > most.rounds() {
			kinds[h.kind()] = h
		}
	}
	if len(kinds) == 0 {
		text, err := New(rand.Text())
		if err != nil {
			return nil, err
		}
		return NewSet([]string{text})
	}
	s := &Set{}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		s.dummies = append(s.dummies, kinds[kind])
	}
	return s, nil
}

// Matches reports whether a hash is that of a password. An empty text is that of an unknown user, and is of no
// password. The error is for a text that is no hash.
func (s *Set) Matches(text, password string) (bool, error) {
	var own hash
	if text != "" {
		var err error
		if own, err = read(text); err != nil {
			return false, err
		}
	}
	prepared := prepare(password)
	if own != nil && own.matches(prepared) {
		return true, nil
	}
	for _, part := range s.rest(own) {
		part.hash.spend(prepared, part.rounds)
	}
	return false, nil
}

// A part is a part of what a refusal costs.
type part struct {
	hash   hash
	rounds int
}

// rest is what a refusal costs beyond the comparison with a hash, nil for none. There are two parts of each kind,
// because a part with few rounds costs something too.
func (s *Set) rest(own hash) (parts []part) {
	for _, dummy := range s.dummies {
		if own != nil && own.kind() == dummy.kind() {
			parts = append(parts, part{dummy, max(0, dummy.rounds()-own.rounds())})
			continue
		}
		parts = append(parts, part{dummy, dummy.rounds()}, part{dummy, 0})
	}
	return parts
}
