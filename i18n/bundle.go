package i18n

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"

	"github.com/babelftp/babelftp/locales"
)

// A Bundle is every language that the server speaks. It does not change after
// Load and serves all sessions at once.
type Bundle struct {
	tags       []language.Tag
	matcher    language.Matcher
	localizers map[language.Tag]*Localizer
	total      int // messages
}

// Load reads the embedded catalogues, then each overlay: an operator's folder of
// <tag>/messages.gotext.json, which adds a language or overrides single messages
// of one. A later overlay wins. The error joins all that is wrong, each with the
// file, the message and what to do.
func Load(overlays ...fs.FS) (*Bundle, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, folder := range locales.Tags() {
		errs = append(errs, l.add(locales.FS(), folder))
	}
	for _, overlay := range overlays {
		errs = append(errs, l.addAll(overlay))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l.bundle()
}

// Tags returns the languages: English, the others that are built in, and the
// overlays' in alphabetical order.
func (b *Bundle) Tags() []language.Tag { return slices.Clone(b.tags) }

// Coverage is how much of the catalogue a language has.
type Coverage struct {
	Tag        language.Tag
	Name       string // in the language itself, the tag where no name is known
	Translated int    // messages that are not answered in English
	Total      int    // messages
}

// Completeness returns the coverage of each language, in the order of Tags.
func (b *Bundle) Completeness() []Coverage {
	coverage := make([]Coverage, len(b.tags))
	for i, tag := range b.tags {
		coverage[i] = Coverage{
			Tag:        tag,
			Name:       cmp.Or(display.Self.Name(tag), tag.String()),
			Translated: b.total - len(b.localizers[tag].missing),
			Total:      b.total,
		}
	}
	return coverage
}

// A loader collects catalogues for a Bundle.
type loader struct {
	parameters map[ID]parameters // of every message there is
	builder    *catalog.Builder
	tags       []language.Tag // in the order of loading
	texts      map[language.Tag]map[ID]bool
}

// newLoader returns a loader that knows the messages of the English catalogue.
func newLoader() (*loader, error) {
	source, err := readCatalogue(locales.FS(), language.English.String())
	if err != nil {
		return nil, err
	}
	l := &loader{
		parameters: make(map[ID]parameters, len(source.entries)),
		builder:    catalog.NewBuilder(),
		texts:      make(map[language.Tag]map[ID]bool),
	}
	for _, e := range source.entries {
		if l.parameters[e.ID], err = newParameters(e); err != nil {
			return nil, fmt.Errorf("%s: %w", source.name, err)
		}
	}
	return l, nil
}

// addAll adds every language folder of an overlay. Other files and folders may
// be there: a mounted Kubernetes ConfigMap has some of its own.
func (l *loader) addAll(overlay fs.FS) error {
	folders, err := fs.ReadDir(overlay, ".")
	if err != nil {
		return fmt.Errorf("reading a folder of catalogues: %w", err)
	}
	var errs []error
	found := false
	for _, folder := range folders {
		// Not folder.IsDir, because a ConfigMap's folders are symbolic links.
		if info, err := fs.Stat(overlay, folder.Name()); err != nil || !info.IsDir() {
			continue
		}
		if _, err := fs.Stat(overlay, path.Join(folder.Name(), fileName)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found = true
		errs = append(errs, l.add(overlay, folder.Name()))
	}
	if !found {
		errs = append(errs, fmt.Errorf("there is no <language tag>/%s in the folder of catalogues; add one, such as fr/%[1]s", fileName))
	}
	return errors.Join(errs...)
}

// add adds the language of one folder, or to it.
func (l *loader) add(fsys fs.FS, folder string) error {
	c, err := readCatalogue(fsys, folder)
	if err != nil {
		return err
	}
	if checkTag(folder) != nil {
		return fmt.Errorf("%s: LANG cannot ask for %q, because RFC 2640 allows letters only; use another tag", c.name, folder)
	}
	if l.texts[c.tag] == nil {
		l.texts[c.tag] = make(map[ID]bool)
		l.tags = append(l.tags, c.tag)
	}
	var errs []error
	seen := make(map[ID]bool)
	for _, e := range c.entries {
		if err := l.set(c.tag, e, seen); err != nil {
			errs = append(errs, fmt.Errorf("%s: message %q: %w", c.name, e.ID, err))
		}
	}
	return errors.Join(errs...)
}

// set stores one translation; seen are the messages of the file so far. An
// empty translation is how translation tools write one that is still missing.
func (l *loader) set(tag language.Tag, e entry, seen map[ID]bool) error {
	parameters, ok := l.parameters[e.ID]
	if !ok {
		return errors.New("no such message; take the identifiers from the English catalogue")
	}
	if seen[e.ID] {
		return errors.New("is there twice; remove one")
	}
	seen[e.ID] = true
	if e.Translation.empty() {
		return nil
	}
	m, err := parameters.compile(e.ID, tag, e.Translation)
	if err != nil {
		return err
	}
	if err := l.builder.Set(tag, string(e.ID), m); err != nil {
		return fmt.Errorf("%w; correct the text", err)
	}
	l.texts[tag][e.ID] = true
	return nil
}

func (l *loader) bundle() (*Bundle, error) {
	overlaid := l.tags[len(locales.Tags()):]
	slices.SortFunc(overlaid, func(a, b language.Tag) int { return strings.Compare(a.String(), b.String()) })
	b := &Bundle{
		tags:       l.tags,
		matcher:    language.NewMatcher(l.tags),
		localizers: make(map[language.Tag]*Localizer, len(l.tags)),
		total:      len(l.parameters),
	}
	english := message.NewPrinter(language.English, message.Catalog(l.builder))
	for _, tag := range l.tags {
		b.localizers[tag] = &Localizer{
			tag:     tag,
			printer: message.NewPrinter(tag, message.Catalog(l.builder)),
			english: english,
			missing: l.missing(tag),
		}
	}
	if n := len(b.localizers[language.English].missing); n > 0 {
		return nil, fmt.Errorf("the English catalogue lacks %d texts", n)
	}
	return b, nil
}

// missing returns the messages that neither the language nor a parent of it
// (fr for fr-CA) has, which is where the x/text catalogue looks.
func (l *loader) missing(tag language.Tag) map[ID]bool {
	missing := make(map[ID]bool)
	for id := range l.parameters {
		t := tag
		for t != language.Und && !l.texts[t][id] {
			t = t.Parent()
		}
		if t == language.Und {
			missing[id] = true
		}
	}
	return missing
}
