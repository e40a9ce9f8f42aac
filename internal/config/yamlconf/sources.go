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

// Sources records the files and folders from which a configuration was read, with hashes of their content. Use
// [NewSources] to create it.
type Sources struct {
	sums         map[string][sha256.Size]byte
	replacements map[string][]byte
}

// NewSources returns empty Sources.
func NewSources() *Sources { return SourcesWith(nil) }

// SourcesWith returns empty Sources in which the content of the files in replacements is replaced.
func SourcesWith(replacements map[string][]byte) *Sources {
	return &Sources{sums: map[string][sha256.Size]byte{}, replacements: replacements}
}

// replaced reports whether the content of a file is replaced.
func (s *Sources) replaced(name string) bool {
	_, found := s.replacements[name]
	return found
}

// addedDocuments returns the replaced documents that belong to a folder, but are not among its entries.
func (s *Sources) addedDocuments(folder string, entries []os.DirEntry) (names []string) {
	for name := range s.replacements {
		there := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == filepath.Base(name) })
		if filepath.Dir(name) == filepath.Clean(folder) && IsDocument(filepath.Base(name)) && !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadFile reads and records a file.
func (s *Sources) ReadFile(name string) ([]byte, error) {
	content, err := s.replacements[name], error(nil)
	if !s.replaced(name) {
		content, err = os.ReadFile(name)
	}
	s.note(name, content)
	return content, err
}

// ReadDir reads and records a folder.
func (s *Sources) ReadDir(name string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(name)
	s.note(name, namesOf(entries))
	return entries, err
}

// maxValue is larger than any value. A longer file is a mistake, for example a device.
const maxValue = 64 << 10

// readValue reads a file with a single value.
func (s *Sources) readValue(name string) ([]byte, error) {
	if s.replaced(name) {
		return s.ReadFile(name)
	}
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

// note records the content of a file. A file that cannot be read counts as empty.
func (s *Sources) note(name string, content []byte) { s.sums[name] = sha256.Sum256(content) }

// SumOf returns the hash of a file, or zero if it was not read.
func (s *Sources) SumOf(name string) [sha256.Size]byte { return s.sums[name] }

// Names returns the names of the files and folders, sorted.
func (s *Sources) Names() []string { return slices.Sorted(maps.Keys(s.sums)) }

// Sum returns a hash of all contents, which does not depend on the names of the files.
func (s *Sources) Sum() [sha256.Size]byte {
	all := sha256.New()
	for _, sum := range slices.SortedFunc(maps.Values(s.sums), func(a, b [sha256.Size]byte) int {
		return slices.Compare(a[:], b[:])
	}) {
		all.Write(sum[:])
	}
	return [sha256.Size]byte(all.Sum(nil))
}

// Changed reports whether the content of a file or folder has changed.
func (s *Sources) Changed() bool {
	for name, sum := range s.sums {
		content, err := os.ReadFile(name)
		if err != nil { // or a folder
			entries, _ := os.ReadDir(name)
			content = namesOf(entries)
		}
		if sha256.Sum256(content) != sum {
			return true
		}
	}
	return false
}

// Add adds the files of other.
func (s *Sources) Add(other *Sources) { maps.Copy(s.sums, other.sums) }

// namesOf returns the names of the entries that are not hidden.
func namesOf(entries []os.DirEntry) []byte {
	var names strings.Builder
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names.WriteString(e.Name() + "\x00")
		}
	}
	return []byte(names.String())
}
