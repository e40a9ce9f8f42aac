package yamlconf

import (
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sources are the files and folders that a configuration was read from, with hashes of what was in them. Make one
// with [NewSources].
type Sources struct {
	sums    map[string][sha256.Size]byte
	instead map[string][]byte
}

// NewSources has no files.
func NewSources() *Sources { return SourcesWith(nil) }

// SourcesWith has no files either. Those that instead names seem to have the content there.
func SourcesWith(instead map[string][]byte) *Sources {
	return &Sources{sums: map[string][sha256.Size]byte{}, instead: instead}
}

// replaced tells whether a file seems to have another content.
func (s *Sources) replaced(name string) bool {
	_, found := s.instead[name]
	return found
}

// added are the documents that seem to be in a folder next to its entries, by name.
func (s *Sources) added(folder string, entries []os.DirEntry) (names []string) {
	for name := range s.instead {
		there := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == filepath.Base(name) })
		if filepath.Dir(name) == filepath.Clean(folder) && IsDocument(filepath.Base(name)) && !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadFile reads a file.
func (s *Sources) ReadFile(name string) ([]byte, error) {
	content, err := s.instead[name], error(nil)
	if !s.replaced(name) {
		content, err = os.ReadFile(name)
	}
	s.note(name, content)
	return content, err
}

// ReadDir returns the entries of a folder.
func (s *Sources) ReadDir(name string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(name)
	s.note(name, namesOf(entries))
	return entries, err
}

// maxValue is more bytes than any value has: a longer file is a mistake, like the name of a device.
const maxValue = 64 << 10

// readValue reads a file that holds one value.
func (s *Sources) readValue(name string) ([]byte, error) {
	s.note(name, nil)
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	s.note(name, content)
	if err == nil && len(content) > maxValue {
		err = fmt.Errorf("it is longer than %d bytes", maxValue)
	}
	return content, err
}

// note remembers the content of a file. That of a file which cannot be read is empty.
func (s *Sources) note(name string, content []byte) { s.sums[name] = sha256.Sum256(content) }

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
	for name, sum := range s.sums {
		content, err := os.ReadFile(name)
		if err != nil { // also for a folder
			entries, _ := os.ReadDir(name)
			content = namesOf(entries)
		}
		if sha256.Sum256(content) != sum {
			return true
		}
	}
	return false
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
