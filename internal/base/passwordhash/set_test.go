package passwordhash

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Each refusal costs the same number of rounds of each kind, in the same number of parts, whatever hash the user has.
func TestRefusalsCostTheSame(t *testing.T) {
	const salted = "c29tZXNhbHQ$RdescudvJCsgt3ub+b/dWAAAAAAAAAAAAAAAAAAAAAA"
	argon2id := func(parameters string) string { return "$argon2id$v=19$" + parameters + "$" + salted }
	bcrypt := func(cost int) string {
		return fmt.Sprintf("$2b$%02d$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e", cost)
	}
	sha512 := func(salt string) string { return "$6$" + salt + "$" + strings.Repeat("a", 86) }
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
			sha256},
		"only-what-is-none": {"broken"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSet(texts)
			must.OK(t, err)
			want, wantParts := costOf(s, nil)
			if len(want) == 0 {
				t.Error("the refusal of an unknown user costs nothing")
			}
			for _, text := range texts {
				h, err := read(text)
				if err != nil {
					continue
				}
				if got, parts := costOf(s, h); !maps.Equal(got, want) || !maps.Equal(parts, wantParts) {
					t.Errorf(
						"a refusal by %s costs %v in %v parts, that of an unknown user %v in %v", text, got, parts,
						want, wantParts)
				}
				if match, err := s.Matches(text, "wrong"); match || err != nil {
					t.Errorf("a wrong password for %s: %v, %v", text, match, err)
				}
			}
		})
	}
}

// costOf is how many rounds of each kind a refusal costs, and in how many parts of those kinds whose rounds may be
// divided.
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

func TestSetMatches(t *testing.T) {
	s, err := NewSet([]string{hashes[0].hash, hashes[4].hash})
	must.OK(t, err)
	for _, tc := range hashes[:5] {
		if match, err := s.Matches(tc.hash, tc.password); !match || err != nil {
			t.Errorf("%s: %v, %v", tc.name, match, err)
		}
	}
	if match, err := s.Matches("", ""); match || err != nil {
		t.Errorf("an unknown user: %v, %v", match, err)
	}
	if _, err := s.Matches("$1$abc", "x"); err == nil {
		t.Error("no error for what is no hash")
	}
}
