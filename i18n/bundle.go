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

	"github.com/babelftp/babelftp/locales"
)

// A Bundle holds the languages of the server or of a tenant. It does not change after Load or WithOverrides,
// and is safe for concurrent use.
type Bundle struct {
	tags       []language.Tag // readers of other languages get the first one
	matcher    language.Matcher
	sources    map[ID]source                      // all messages
	texts      map[language.Tag]texts             // texts of each language, without those inherited from a parent
	localizers map[language.Tag]func() *Localizer // by tag, with inherited and English texts
	refused    []Diagnostic
}

// texts returns the texts of a language. An embedded catalog is read on the first call, because most servers
// need few languages.
type texts func() map[ID]*text

// with returns the texts in t, replaced or extended by those in others.
func (t texts) with(others map[ID]*text) texts {
	return sync.OnceValue(func() map[ID]*text {
		all := make(map[ID]*text)
		if t != nil {
			maps.Copy(all, t())
		}
		maps.Copy(all, others)
		return all
	})
}

// has reports whether the language has a text for the message.
func (t texts) has(id ID) bool { return t != nil && t()[id] != nil }

// Load reads the embedded catalogs and then each overlay. An overlay is a directory of an operator with
// <tag>/messages.gotext.json. It adds a language or overrides messages of an existing one; later overlays
// win. The error joins the problems of whole files, each with advice. Single messages with a problem are
// ignored; see Refused.
func Load(overlays ...fs.FS) (*Bundle, error) {
	if len(overlays) == 0 {
		return loadBuiltIn()
	}
	return load(overlays)
}

// loadBuiltIn returns the bundle of the embedded catalogs.
var loadBuiltIn = sync.OnceValues(func() (*Bundle, error) { return load(nil) })

func load(overlays []fs.FS) (*Bundle, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, overlay := range overlays {
		catalogs, err := l.addAll(overlay)
		errs = append(errs, err)
		for _, c := range catalogs {
			for _, d := range c.diagnostics {
				if d.Message == "" {
					errs = append(errs, d)
				} else {
					l.refused = append(l.refused, d)
				}
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return l.bundle(), nil
}

// Refused returns the problems of messages in the overlays or, for a bundle with overrides, of texts of the
// tenant. These texts are ignored.
func (b *Bundle) Refused() []Diagnostic { return slices.Clone(b.refused) }

// Tags returns the languages: English, the other built-in ones, and the languages of overlays, the latter two
// sorted alphabetically. A bundle with overrides has its own order.
func (b *Bundle) Tags() []language.Tag { return slices.Clone(b.tags) }

// IDs returns the identifiers of all messages, sorted.
func (b *Bundle) IDs() []ID { return slices.Sorted(maps.Keys(b.sources)) }

// Coverage is the number of translated messages of a language.
type Coverage struct {
	Tag        language.Tag
	Name       string // in the language itself, or else the tag
	Translated int    // messages that do not fall back to English
	Total      int    // all messages
}

// Completeness returns the coverage of each language, in the order of Tags.
func (b *Bundle) Completeness() []Coverage {
	coverage := make([]Coverage, len(b.tags))
	for i, tag := range b.tags {
		coverage[i] = newCoverage(tag, len(b.localizers[tag]().missing), len(b.sources))
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

// A loader collects catalogs for a Bundle.
type loader struct {
	ids     []ID // all messages, in the order of the English catalog
	sources map[ID]source
	tags    []language.Tag // in the order of loading
	texts   map[language.Tag]texts
	refused []Diagnostic
}

// A source is a message of the embedded English catalog.
type source struct {
	parameters
	entry Message
}

// newLoader returns a loader with the built-in languages.
func newLoader() (*loader, error) {
	l, err := builtIn()
	if err != nil {
		return nil, err
	}
	return &loader{ids: l.ids, sources: l.sources, tags: slices.Clone(l.tags), texts: maps.Clone(l.texts)}, nil
}

// builtIn finds the embedded catalogs and reads the English one. Invalid messages in other embedded catalogs
// are ignored; Lint reports them.
var builtIn = sync.OnceValues(func() (*loader, error) {
	english := readCatalog(locales.FS(), language.English.String())
	if err := loadError(english); err != nil {
		return nil, err
	}
	l := &loader{sources: make(map[ID]source, len(english.file.Messages)), texts: make(map[language.Tag]texts)}
	for _, e := range english.file.Messages {
		parameters, err := newParameters(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", english.name, err)
		}
		l.ids = append(l.ids, ID(e.ID))
		l.sources[ID(e.ID)] = source{parameters, e}
	}
	for _, folder := range locales.Tags() {
		tag, err := language.Parse(folder)
		if err != nil {
			return nil, err
		}
		l.tags = append(l.tags, tag)
		l.texts[tag] = sync.OnceValue(func() map[ID]*text { return l.read(readCatalog(locales.FS(), folder)) })
	}
	return l, nil
})

// addAll adds all languages of an overlay. It ignores other files and directories, such as those in a mounted
// Kubernetes ConfigMap.
func (l *loader) addAll(overlay fs.FS) ([]*catalog, error) {
	folders, err := fs.ReadDir(overlay, ".")
	if err != nil {
		return nil, fmt.Errorf("read the directory of catalogs: %w", err)
	}
	var catalogs []*catalog
	for _, folder := range folders {
		// folder.IsDir would miss the directories of a ConfigMap, which are symbolic links.
		if info, err := fs.Stat(overlay, folder.Name()); err != nil || !info.IsDir() {
			continue
		}
		if _, err := fs.Stat(overlay, path.Join(folder.Name(), fileName)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		catalogs = append(catalogs, l.add(overlay, folder.Name()))
	}
	if len(catalogs) == 0 {
		return nil, errNoCatalog
	}
	return catalogs, nil
}

// add adds the texts in one directory.
func (l *loader) add(fsys fs.FS, folder string) *catalog {
	c := readCatalog(fsys, folder)
	if c.tag == language.Und {
		return c
	}
	own := l.read(c)
	base, known := l.texts[c.tag]
	if !known {
		l.tags = append(l.tags, c.tag)
	}
	l.texts[c.tag] = base.with(own)
	return c
}

// read returns the texts of a catalog, and records its problems. Empty translations, which translation tools
// write for missing ones, are skipped.
func (l *loader) read(c *catalog) map[ID]*text {
	found := make(map[ID]*text, len(c.file.Messages))
	seen := make(map[ID]bool)
	for _, e := range c.file.Messages {
		id := ID(e.ID)
		source, known := l.sources[id]
		switch {
		case id == "":
			c.errorf(e, `a message has no "id"; take it from the English catalog`)
		case !known:
			c.errorf(e, "unknown message; %s", adviseID(l.sources, id))
		case seen[id]:
			c.errorf(e, "appears twice; remove one")
		case !e.Translation.IsZero():
			e.Translation.takeArg(source.entry.Translation)
			problems := source.check(id, c.tag, e.Translation)
			for _, problem := range problems {
				c.errorf(e, "%s", problem)
			}
			if len(problems) == 0 {
				found[id] = &text{e.Translation, c.tag, source.parameters}
			}
		}
		seen[id] = true
	}
	return found
}

func (l *loader) bundle() *Bundle {
	overlaid := l.tags[len(locales.Tags()):]
	slices.SortFunc(overlaid, compareTags)
	b := &Bundle{
		tags:       l.tags,
		matcher:    language.NewMatcher(l.tags),
		sources:    l.sources,
		texts:      l.texts,
		localizers: make(map[language.Tag]func() *Localizer, len(l.tags)),
		refused:    l.refused,
	}
	for _, tag := range l.tags {
		b.localizers[tag] = sync.OnceValue(func() *Localizer { return b.newLocalizer(tag) })
	}
	return b
}

func compareTags(a, b language.Tag) int { return strings.Compare(a.String(), b.String()) }

// missing returns the messages that neither the language nor any of its parents have.
func (l *loader) missing(tag language.Tag) map[ID]bool {
	missing := make(map[ID]bool)
	for id := range l.sources {
		if nearest(tag, func(t language.Tag) bool { return l.texts[t].has(id) }) == language.Und {
			missing[id] = true
		}
	}
	return missing
}

// nearest returns the tag itself or its nearest parent (fr for fr-CA) for which has returns true, or
// language.Und.
func nearest(tag language.Tag, has func(language.Tag) bool) language.Tag {
	for tag != language.Und && !has(tag) {
		tag = tag.Parent()
	}
	return tag
}
