package passwordhash

import (
	"crypto/rand"
	"maps"
	"runtime"
	"slices"
)

// A Set verifies the passwords of all users of a server. Each rejected password takes the same time, so that the time
// reveals neither whether a user exists nor which kind of hash the user has.
//
// A rejection therefore costs one comparison with each kind of hash, and a server should use only few kinds.
type Set struct{ dummies []hash } // for each kind, a hash with the most rounds

// NewSet returns a Set for the hashes of all users. It skips invalid hashes. If no hash is valid, a rejection takes as
// long as with a hash of [New].
func NewSet(texts []string) (*Set, error) {
	kinds := map[string]hash{}
	for _, text := range texts {
		h, err := read(text)
		if err != nil {
			continue
		}
		if slowest := kinds[h.kind()]; slowest == nil || h.rounds() > slowest.rounds() {
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

// Parallel returns how many calls of Matches or [New] may run at the same time: not more than most, and not more than
// fit into [MaxMemory]. Each call counts as if it needed as much as the most expensive hash, because a wrong password
// costs that for each user.
func (s *Set) Parallel(most int) int {
	memory := int64(newMemory) << 10
	for _, dummy := range s.dummies {
		memory = max(memory, dummy.memory())
	}
	return max(1, min(most, int(MaxMemory/memory)))
}

// Matches reports whether a password matches a hash. For an unknown user, text must be empty; no password matches then.
// It returns an error if text is not a valid hash.
func (s *Set) Matches(text, password string) (bool, error) {
	var own hash
	if text != "" {
		var err error
		if own, err = read(text); err != nil {
			return false, err
		}
	}
	prepared := prepare(password)
	if own != nil {
		matches := own.matches(prepared)
		collect(own)
		if matches {
			return true, nil
		}
	}
	for _, part := range s.rest(own) {
		part.hash.spend(prepared, part.rounds)
		collect(part.hash)
	}
	return false, nil
}

// largeMemory is the number of bytes of a comparison that takes so long that a garbage collection is cheap beside it.
const largeMemory = 64 << 20

// collect frees the memory of an expensive comparison, so that the next one does not allocate as much beside it.
func collect(h hash) {
	if h.memory() >= largeMemory {
		runtime.GC()
	}
}

// A part is a part of the cost of a rejection.
type part struct {
	hash   hash
	rounds int
}

// rest returns the cost of a rejection that remains after the comparison with own, which is nil for an unknown user.
// Each kind has two parts in total, because a part has a fixed cost even with few rounds.
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
