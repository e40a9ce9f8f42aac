package passwordhash

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestRejectionCost checks that each rejection costs the same number of rounds of each kind in the same number of
// parts, regardless of the user's hash.
func TestRejectionCost(t *testing.T) {
	const salted = "c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWAAAAAAAAAAAAAAAAAAAAAA"
	argon2id := func(parameters string) string { return "$argon2id$v=19$" + parameters + "$" + salted }
	bcrypt := func(cost int) string {
		return fmt.Sprintf("$2b$%02d$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", cost)
	}
	sha512 := func(salt string) string { return "$6$" + salt + "$" + strings.Repeat("a", 86) }
	yescrypt := func(parameters string) string { return "$y$" + parameters + "$saltsalt$" + strings.Repeat("a", 43) }
	sha256 := "$5$saltsalt$" + strings.Repeat("a", 43)
	for name, texts := range map[string][]string{
		"none": nil,
		"same": {argon2id("m=8,t=1,p=1"), argon2id("m=8,t=1,p=1")},
		"argon2id": {argon2id("m=8,t=1,p=1"), argon2id("m=64,t=1,p=1"), argon2id("m=8,t=3,p=1"),
			argon2id("m=64,t=1,p=2")},
		"bcrypt":           {bcrypt(4), bcrypt(6), bcrypt(5)},
		"rounds":           {sha512("rounds=1000$saltsalt"), sha512("saltsalt"), sha512("rounds=5017$saltsalt")},
		"lengths-of-salts": {sha512("rounds=1000$"), sha512("salt"), sha512("rounds=1500$saltsalt")},
		"several-kinds": {argon2id("m=8,t=1,p=1"), bcrypt(4), sha512("saltsalt"), sha512("rounds=1000$saltsalt"),
			sha256, yescrypt("j75")},
		"yescrypt":     {yescrypt("j75"), yescrypt("j75"), yescrypt("j7T")},
		"only-invalid": {"broken"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSet(texts)
			must.OK(t, err)
			want, wantParts := costOf(s, nil)
			if len(want) == 0 {
				t.Error("rejecting an unknown user takes no rounds")
			}
			for _, text := range texts {
				h, err := read(text)
				if err != nil {
					continue
				}
				if got, parts := costOf(s, h); !maps.Equal(got, want) || !maps.Equal(parts, wantParts) {
					t.Errorf(
						"rejection with %s takes %v in %v parts, want %v in %v as for an unknown user", text, got, parts,
						want, wantParts)
				}
				if match, err := s.Matches(text, "wrong"); match || err != nil {
					t.Errorf("wrong password for %s: got %v, %v", text, match, err)
				}
			}
		})
	}
}

// costOf returns the number of rounds and the number of parts of each kind that a rejection costs.
func costOf(s *Set, own hash) (rounds, parts map[string]int) {
	rounds, parts = map[string]int{}, map[string]int{}
	all := s.rest(own)
	if own != nil {
		all = append(all, part{own, own.rounds()})
	}
	for _, p := range all {
		rounds[p.hash.kind()] += p.rounds
		parts[p.hash.kind()]++
	}
	return rounds, parts
}

// The most expensive hash limits how many checks run at the same time.
func TestSetParallel(t *testing.T) {
	key := strings.Repeat("a", 43)
	for _, tc := range []struct {
		hashes     []string
		most, want int
	}{
		{nil, 0, 1},
		{nil, 3, 3},
		{nil, 1000, MaxMemory / (19 << 20)},
		{[]string{"$6$saltsalt$" + strings.Repeat("a", 86), "$y$j9T$saltsalt$" + key}, 1000, MaxMemory / (19 << 20)},
		{[]string{"$argon2id$v=19$m=65536,t=1,p=1$c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWAAAAAAAAAAAAAAAAAAAAAA"}, 1000, 16},
		{[]string{"$y$jDT$saltsalt$" + key, "$y$j9T$saltsalt$" + key}, 1000, 4},
		{[]string{"$y$jDT$saltsalt$" + key, "$y$j9T$saltsalt$" + key}, 3, 3},
		{[]string{"$y$jFT$saltsalt$" + key}, 1000, 1},
	} {
		s, err := NewSet(tc.hashes)
		must.OK(t, err)
		if got := s.Parallel(tc.most); got != tc.want {
			t.Errorf("%q: %d of %d, want %d", tc.hashes, got, tc.most, tc.want)
		}
	}
}

func TestSetMatches(t *testing.T) {
	s, err := NewSet([]string{hashes[0].hash, hashes[4].hash})
	must.OK(t, err)
	for _, tc := range hashes[:5] {
		if match, err := s.Matches(tc.hash, tc.password); !match || err != nil {
			t.Errorf("%s: %v, %v", tc.name, match, err)
		}
	}
	if match, err := s.Matches("", ""); match || err != nil {
		t.Errorf("unknown user: got %v, %v", match, err)
	}
	if _, err := s.Matches("$1$abc", "x"); err == nil {
		t.Error("missing error for an unknown kind of hash")
	}
}
