package driver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// pageOf is a page of keys after another key, as S3 gives it.
func pageOf(keys []string, after string, limit int) *s3api.Page {
	p := &s3api.Page{Encoded: true}
	for _, key := range keys {
		if key <= after {
			continue
		}
		if len(p.Versions) == limit {
			p.Next = "more"
			break
		}
		p.Versions = append(p.Versions, s3api.Version{Key: key})
	}
	return p
}

// keySets are the names that people give to many files in one directory.
func keySets() map[string]func(i int) string {
	hex, word, character := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4)), rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("the of and to in is was he for it with as his on be at by had are but from or have an they which one you were")
	return map[string]func(int) string{
		"numbers":       func(i int) string { return fmt.Sprintf("scan-%06d.pdf", i) },
		"short-numbers": func(i int) string { return fmt.Sprintf("%05d", i) },
		"plain-numbers": func(i int) string { return fmt.Sprintf("img%d.jpg", i) },
		"hours": func(i int) string {
			return fmt.Sprintf("2024-%02d-%02dT%02d-%02d.log", i/672%12+1, i/24%28+1, i%24, i/8064)
		},
		"random-hex": func(int) string { return fmt.Sprintf("%08x-%04x.bin", hex.Uint32(), hex.Uint32N(1<<16)) },
		"words": func(int) string {
			return words[word.IntN(len(words))] + " " + words[word.IntN(len(words))] + " " + fmt.Sprint(word.IntN(100))
		},
		"kanji": func(int) string {
			return string([]rune{rune(0x4e00 + character.IntN(2000)), rune(0x4e00 + character.IntN(2000)), '.', 'x'})
		},
		"one-way": func(i int) string { return strings.Repeat("a", i%900+1) },
		"two":     func(i int) string { return []string{"a", "b"}[i%2] + fmt.Sprint(i/2%7) },
	}
}

// TestSplitter checks how far guesses lie from where they should, and that there are none that nobody could use.
func TestSplitter(t *testing.T) {
	const count, limit = 20_000, 1000
	// Most of the steps that are no good, for each set, in percent: too short by half, or too long.
	bad := map[string]int{"plain-numbers": 20, "hours": 30, "random-hex": 25, "kanji": 40, "words": 100}
	for name, key := range keySets() {
		t.Run(name, func(t *testing.T) {
			keys := []string{}
			for i := range count {
				keys = append(keys, "dir/"+key(i))
			}
			slices.Sort(keys)
			keys = slices.Compact(keys)
			l := s3api.Listing{Prefix: "dir/", Delimiter: "/"}
			steps, wrong := 0, 0
			for at := ""; ; {
				p := pageOf(keys, at, limit)
				if p.Next == "" {
					break
				}
				s := newSplitter(l, p)
				at = p.Last()
				if s == nil {
					continue
				}
				for guess, ok := s.after(at); ok && steps < 100; guess, ok = s.after(guess) {
					if guess <= at || strings.Contains(guess[len(l.Prefix):], "/") {
						t.Fatalf("%q is guessed to come a page after %q", guess, at)
					}
					from, _ := slices.BinarySearch(keys, at)
					to, _ := slices.BinarySearch(keys, guess)
					if to == len(keys) {
						break
					}
					steps++
					if to-from < limit/2 || to-from > limit {
						wrong++
					}
					at = guess
				}
			}
			if steps > 0 && 100*wrong/steps > bad[name] {
				t.Errorf("%d of %d steps are no good", wrong, steps)
			}
			t.Logf("%d steps, %d of them no good", steps, wrong)
		})
	}
}
