package i18n

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"

	"github.com/babelftp/babelftp/locales"
)

// A Bundle holds the languages of the server or of a tenant. It does not change
// after Load or WithOverrides, and is safe for concurrent use.
type Bundle struct {
	tags       []language.Tag // the first is for readers of other languages
	matcher    language.Matcher
	localizers map[language.Tag]*Localizer
	sources    map[ID]source                  // every message there is
	has        map[language.Tag]map[ID]bool   // which messages a catalogue has, not counting its parents
	overrides  map[language.Tag]map[ID]string // a tenant's texts, as formats for package fmt
}

// Load reads the embedded catalogues, then each overlay. An overlay is an
// operator's folder of <tag>/messages.gotext.json. It adds a language, or
// overrides single messages of one. A later overlay wins. The error joins all
// problems, each with the file, the message and what to do.
func Load(overlays ...fs.FS) (*Bundle, error) {
	if len(overlays) == 0 {
		return loadBuiltIn()
	}
	return load(overlays)
}

// loadBuiltIn returns the bundle of the embedded catalogues. It reads them once,
// because they do not change.
var loadBuiltIn = sync.OnceValues(func() (*Bundle, error) { return load(nil) })

func load(overlays []fs.FS) (*Bundle, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, overlay := range overlays {
		catalogues, err := l.addAll(overlay)
		errs = append(errs, err, loadError(catalogues...))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l.bundle()
}

// Tags returns the languages: English, the others that are built in, and the
// overlays' in alphabetical order. A bundle with overrides has its own order.
func (b *Bundle) Tags() []language.Tag { return slices.Clone(b.tags) }

// IDs returns the identifiers of all messages, sorted.
func (b *Bundle) IDs() []ID { return slices.Sorted(maps.Keys(b.sources)) }

// Coverage says how many messages a language has.
type Coverage struct {
	Tag        language.Tag
	Name       string // in the language itself, or the tag
	Translated int    // messages that do not come in English
	Total      int    // messages
}

// Completeness returns the coverage of each language, in the order of Tags.
func (b *Bundle) Completeness() []Coverage {
	coverage := make([]Coverage, len(b.tags))
	for i, tag := range b.tags {
		coverage[i] = newCoverage(tag, len(b.localizers[tag].missing), len(b.sources))
	}
	return coverage
}

func newCoverage(tag language.Tag, missing, total int) Coverage {
	return Coverage{
		Tag:        tag,
		Name:       cmp.Or(display.Self.Name(tag), tag.String()),
		Translated: total - missing,
		Total:      total,
	}
}

// A loader collects catalogues for a Bundle.
type loader struct {
	ids     []ID // every message there is, in the order of the English catalogue
	sources map[ID]source
	builder *catalog.Builder
	tags    []language.Tag // in the order of loading
	texts   map[language.Tag]map[ID]bool
}

// A source is a message of the English catalogue that is built in.
type source struct {
	parameters
	entry entry
}

// newLoader returns a loader that has the languages that are built in.
func newLoader() (*loader, error) {
	english := readCatalogue(locales.FS(), language.English.String())
	if err := loadError(english); err != nil {
		return nil, err
	}
	l := &loader{
		sources: make(map[ID]source, len(english.entries)),
		builder: catalog.NewBuilder(),
		texts:   make(map[language.Tag]map[ID]bool),
	}
	for _, e := range english.entries {
		parameters, err := newParameters(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", english.name, err)
		}
		l.ids = append(l.ids, e.ID)
		l.sources[e.ID] = source{parameters, e}
	}
	var errs []error
	for _, folder := range locales.Tags() {
		errs = append(errs, loadError(l.add(locales.FS(), folder)))
	}
	return l, errors.Join(errs...)
}

// addAll adds every language folder of an overlay. It ignores other files and
// folders: a mounted Kubernetes ConfigMap has some of its own.
func (l *loader) addAll(overlay fs.FS) ([]*catalogue, error) {
	folders, err := fs.ReadDir(overlay, ".")
	if err != nil {
		return nil, fmt.Errorf("reading a folder of catalogues: %w", err)
	}
	var catalogues []*catalogue
	for _, folder := range folders {
		// Not folder.IsDir, because a ConfigMap's folders are symbolic links.
		if info, err := fs.Stat(overlay, folder.Name()); err != nil || !info.IsDir() {
			continue
		}
		if _, err := fs.Stat(overlay, path.Join(folder.Name(), fileName)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		catalogues = append(catalogues, l.add(overlay, folder.Name()))
	}
	if len(catalogues) == 0 {
		return nil, fmt.Errorf("there is no <language tag>/%s in the folder of catalogues; add one, such as fr/%[1]s", fileName)
	}
	return catalogues, nil
}

// add adds the texts of one folder.
func (l *loader) add(fsys fs.FS, folder string) *catalogue {
	c := readCatalogue(fsys, folder)
	if c.tag == language.Und {
		return c
	}
	if l.texts[c.tag] == nil {
		l.texts[c.tag] = make(map[ID]bool)
		l.tags = append(l.tags, c.tag)
	}
	seen := make(map[ID]bool)
	for _, e := range c.entries {
		source, known := l.sources[e.ID]
		switch {
		case e.ID == "":
			c.errorf(e, `a message has no "id"; take it from the English catalogue`)
		case !known:
			c.errorf(e, "no such message; %s", adviseID(l.sources, e.ID))
		case seen[e.ID]:
			c.errorf(e, "appears twice; remove one")
		default:
			l.set(c, e, source)
		}
		seen[e.ID] = true
	}
	return c
}

// set stores one translation. Translation tools write an empty one where it is
// still missing.
func (l *loader) set(c *catalogue, e entry, source source) {
	if e.Translation.empty() {
		return
	}
	m, problems := source.compile(e.ID, c.tag, e.Translation)
	if len(problems) == 0 {
		if err := l.builder.Set(c.tag, string(e.ID), m); err != nil {
			problems = []string{err.Error() + "; correct the text"}
		}
	}
	for _, problem := range problems {
		c.errorf(e, "%s", problem)
	}
	l.texts[c.tag][e.ID] = true
}

func (l *loader) bundle() (*Bundle, error) {
	overlaid := l.tags[len(locales.Tags()):]
	slices.SortFunc(overlaid, compareTags)
	b := &Bundle{
		tags:       l.tags,
		matcher:    language.NewMatcher(l.tags),
		localizers: make(map[language.Tag]*Localizer, len(l.tags)),
		sources:    l.sources,
		has:        l.texts,
	}
	english := message.NewPrinter(language.English, message.Catalog(l.builder))
	for _, tag := range l.tags {
		b.localizers[tag] = b.newLocalizer(tag, message.NewPrinter(tag, message.Catalog(l.builder)), english)
	}
	if n := len(b.localizers[language.English].missing); n > 0 {
		return nil, fmt.Errorf("the English catalogue lacks %d texts", n)
	}
	return b, nil
}

func compareTags(a, b language.Tag) int { return strings.Compare(a.String(), b.String()) }

// missing returns the messages that neither the language nor a parent of it has.
func (l *loader) missing(tag language.Tag) map[ID]bool {
	missing := make(map[ID]bool)
	for id := range l.sources {
		if nearest(tag, func(t language.Tag) bool { return l.texts[t][id] }) == language.Und {
			missing[id] = true
		}
	}
	return missing
}

// nearest returns the language itself, or its nearest parent (fr for fr-CA), for
// which has is true; language.Und without one. The x/text catalogue does the same.
func nearest(tag language.Tag, has func(language.Tag) bool) language.Tag {
	for tag != language.Und && !has(tag) {
		tag = tag.Parent()
	}
	return tag
}
