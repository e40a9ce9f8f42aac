package state

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/babelftp/babelftp/internal/storage/cas"
)

func newID() string { return rand.Text() }

// A saved copy is the content of the file. The items are encrypted as in S3.
type savedCopy struct {
	Place string               `json:"place"` // the URL of the store; a copy of another one is ignored
	Items map[string]savedItem `json:"items"`
	// Complete reports whether all items had been read when the copy was saved.
	Complete bool `json:"complete"`
}

type savedItem struct {
	ETag string `json:"etag"`
	Data string `json:"data"`
}

// load reads the file.
func (s *Store) load() {
	if s.opts.File == "" {
		return
	}
	var c savedCopy
	text, err := os.ReadFile(s.opts.File)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		s.opts.Log.Warn("saved copy of the shared state cannot be read; it is read from S3", "err", err)
		return
	}
	if c.Place != s.String() {
		return
	}
	for name, saved := range c.Items {
		i, err := s.open(name, cas.Version{Data: saved.Data, ETag: saved.ETag})
		if err != nil || i == nil {
			c.Complete = false
			continue // the object in S3 is read and reported
		}
		s.items[name] = i
	}
	if c.Complete {
		s.setComplete()
	}
}

// Save writes the file if the copy has changed. It is replaced as a whole. [Store.Run] calls it every few seconds, so
// that a server calls it only before it ends.
func (s *Store) Save() {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	if !s.unsaved || s.opts.File == "" {
		s.mu.Unlock()
		return
	}
	s.unsaved = false
	c := savedCopy{s.String(), make(map[string]savedItem, len(s.items)), s.Known()}
	for name, i := range s.items {
		c.Items[name] = savedItem{i.version.ETag, i.version.Data}
	}
	s.mu.Unlock()
	if err := c.write(s.opts.File); err != nil {
		s.opts.Log.Warn("copy of the shared state not saved; the server needs S3 at its next start", "err", err)
	}
}

func (c savedCopy) write(file string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	next := file + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}
