package yamlconf

import (
	"crypto/sha256"
	"maps"
	"os"
	"slices"
	"strings"
)

// Sources are the files and folders that a configuration was read from, with hashes of what was in them. Make one
// with [NewSources].
type Sources struct{ sums map[string][sha256.Size]byte }

// NewSources has no files.
func NewSources() *Sources { return &Sources{sums: map[string][sha256.Size]byte{}} }

// ReadFile reads a file.
func (s *Sources) ReadFile(name string) ([]byte, error) {
	content, err := os.ReadFile(name)
	s.Note(name, content)
	return content, err
}

// ReadDir returns the entries of a folder.
func (s *Sources) ReadDir(name string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(name)
	s.Note(name, namesOf(entries))
	return entries, err
}

// Note remembers the content of a file that another function has read. That of a file which cannot be read is empty.
func (s *Sources) Note(name string, content []byte) { s.sums[name] = sha256.Sum256(content) }

// SumOf is the hash of the content of a file, zero for a file that was not read.
func (s *Sources) SumOf(name string) [sha256.Size]byte { return s.sums[name] }

// Names are the names of the files and folders, sorted.
func (s *Sources) Names() []string { return slices.Sorted(maps.Keys(s.sums)) }

// Sum is a hash of all contents. It does not depend on where the files are.
func (s *Sources) Sum() [sha256.Size]byte {
	all := sha256.New()
	for _, sum := range slices.SortedFunc(maps.Values(s.sums), func(a, b [sha256.Size]byte) int {
		return slices.Compare(a[:], b[:])
	}) {
		all.Write(sum[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// Changed reports whether a file or a folder has another content now.
func (s *Sources) Changed() bool {
	now := NewSources()
	return !now.repeat(s)
}

// repeat reads the files of other sources, and reports whether each has the same content.
func (s *Sources) repeat(other *Sources) bool {
	for name, sum := range other.sums {
		content, err := os.ReadFile(name)
		if err != nil { // also for a folder
			entries, _ := os.ReadDir(name)
			content = namesOf(entries)
		}
		if s.Note(name, content); s.sums[name] != sum {
			return false
		}
	}
	return true
}

// Add takes those of other sources too.
func (s *Sources) Add(other *Sources) { maps.Copy(s.sums, other.sums) }

// namesOf are the names of the entries that are not hidden.
func namesOf(entries []os.DirEntry) []byte {
	var names strings.Builder
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names.WriteString(e.Name() + "\x00")
		}
	}
	return []byte(names.String())
}
