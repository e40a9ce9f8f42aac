package mojibake

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/pathname"
)

// maxRequests limits the directories that are listed, or the objects that are moved, at the same time.
const maxRequests = 16

// A scan checks the names of a tenant.
type scan struct {
	*Tenant
	seen  *atomic.Int64
	group *errgroup.Group

	mu    sync.Mutex
	found []*finding
}

// A finding is a line whose objects are still being counted.
type finding struct {
	Line
	objects atomic.Int64
}

// Scan returns a line for each reading that a name of the tenant has in its charsets, sorted by path. seen counts the
// checked names.
func Scan(ctx context.Context, t *Tenant, seen *atomic.Int64) ([]Line, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxRequests)
	s := &scan{Tenant: t, seen: seen, group: group}
	for i := range t.Places {
		p := &t.Places[i]
		group.Go(func() error { return panics.Catch(func() error { return s.directory(ctx, p, p.Dir, nil) }) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	lines := make([]Line, len(s.found))
	for i, f := range s.found {
		lines[i] = f.Line
		lines[i].Objects = f.objects.Load()
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Charset, b.Charset))
	})
	return lines, nil
}

// directory checks the names in and below a directory. Each object also counts toward the lines of its parent
// directories.
func (s *scan) directory(ctx context.Context, p *Place, dir string, above []*finding) error {
	entries, err := p.Files.List(ctx, p.in(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed during the scan
	}
	if err != nil {
		return err
	}
	for entry, err := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		s.seen.Add(1)
		name := path.Join(dir, entry.Name())
		if !entry.IsDir() {
			for _, f := range slices.Concat(above, s.check(dir, entry.Name(), name)) {
				f.objects.Add(1)
			}
			continue
		}
		if p.skips(name) {
			continue
		}
		within := slices.Concat(above, s.check(dir, entry.Name(), name+"/"))
		below := func() error {
			return panics.Catch(func() error { return s.directory(ctx, p, name, within) })
		}
		if s.group.TryGo(below) {
			continue
		}
		if err := below(); err != nil {
			return err
		}
	}
	return nil
}

// skips reports whether a directory belongs to another place or tenant. It compares names in one Unicode form, as the
// server does with names in a configuration.
func (p *Place) skips(dir string) bool {
	dir = norm.NFC.String(dir)
	return slices.ContainsFunc(p.Skip, func(other string) bool { return norm.NFC.String(other) == dir })
}

// check adds a line for each reading of a name in a directory.
func (s *scan) check(dir, name, whole string) []*finding {
	var found []*finding
	for _, line := range s.readings(dir, name, whole) {
		found = append(found, &finding{Line: line})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, found...)
	return found
}

// readings returns a line for each name that a device may have meant by the bytes of a name.
func (t *Tenant) readings(dir, name, whole string) (lines []Line) {
	if !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil
	}
	for _, encoding := range t.Encodings(dir) {
		if encoding.UTF8() || encoding.Raw() {
			continue
		}
		readings, err := encoding.Readings(name)
		if err != nil {
			continue // not valid in any of these charsets
		}
		for _, r := range readings {
			meant := t.Normalize(r.Name)
			known := func(l Line) bool { return l.Name == meant }
			if !r.Meant(name) || meant == name || slices.ContainsFunc(lines, known) {
				continue
			}
			line := Line{State: Rename, Charset: string(r.Charset.Name()), Path: whole, Name: meant}
			if !r.Plausible() || strings.ContainsFunc(meant, isPrivate) {
				line.State, line.Note = Unsure, noteUnusual
			}
			lines = append(lines, line)
		}
	}
	for i := range lines {
		switch l := &lines[i]; {
		case len(lines) > 1:
			l.State, l.Note = Unsure, "several charsets have these bytes"
		case pathname.Plausible(name):
			l.State, l.Note = Unsure, notePlausible
		}
		t.noteConfigured(&lines[i])
	}
	return lines
}

// Notes on names that Trust can rename without another decision.
const (
	notePlausible = "people may have chosen the name as it is"
	noteUnusual   = "the new name is unusual"
)

// Trust sets the state Rename for names that people may have chosen. Use it for a tenant whose clients all use a
// legacy charset.
func Trust(lines []Line) {
	for i := range lines {
		if l := &lines[i]; l.Note == notePlausible || l.Note == noteUnusual {
			l.State, l.Note = Rename, ""
		}
	}
}

func isPrivate(r rune) bool { return unicode.In(r, unicode.Co, unicode.Cc) }

// noteConfigured sets the state Unsure for a directory in the configuration, so that a person confirms it.
func (t *Tenant) noteConfigured(l *Line) {
	if !l.IsDir() {
		return
	}
	dir := norm.NFC.String(strings.TrimSuffix(l.Path, "/"))
	for configured, key := range t.Configured {
		if isBelow(norm.NFC.String(configured), dir) {
			l.State, l.Note = Unsure, key+" names this directory: correct it after the rename"
		}
	}
}
