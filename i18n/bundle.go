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

// A Bundle holds the languages of the server or of a tenant. It does not change
// after Load or WithOverrides, and is safe for concurrent use.
type Bundle struct {
	tags       []language.Tag // the first is for readers of other languages
	matcher    language.Matcher
	sources    map[ID]source                      // every message there is
	texts      map[language.Tag]texts             // what each language has, not counting its parents
	localizers map[language.Tag]func() *Localizer // by tag, with the texts of parents and of English
	refused    []Diagnostic
}

// texts returns the texts of a language. It reads an embedded catalogue when it is called
// first, because most servers need few of the languages.
type texts func() map[ID]*text

// with returns the texts with others in place of some.
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

// has reports whether there is a text of the message.
func (t texts) has(id ID) bool { return t != nil && t()[id] != nil }

// Load reads the embedded catalogues, then each overlay. An overlay is an
// operator's folder of <tag>/messages.gotext.json. It adds a language, or
// overrides single messages of one. A later overlay wins. The error joins what is wrong
// with whole files, each with what to do. A message that is wrong does not count; see
// Refused.
func Load(overlays ...fs.FS) (*Bundle, error) {
	if len(overlays) == 0 {
		return loadBuiltIn()
	}
	return load(overlays)
}

// loadBuiltIn returns the bundle of the embedded catalogues.
var loadBuiltIn = sync.OnceValues(func() (*Bundle, error) { return load(nil) })

func load(overlays []fs.FS) (*Bundle, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, overlay := range overlays {
		catalogues, err := l.addAll(overlay)
		errs = append(errs, err)
		for _, c := range catalogues {
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

// Refused returns what is wrong with single messages of the overlays or, in a bundle with
// overrides, with texts of the tenant. In their place the texts serve that the server would
// have without them.
func (b *Bundle) Refused() []Diagnostic { return slices.Clone(b.refused) }

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

// A loader collects catalogues for a Bundle.
type loader struct {
	ids     []ID // every message there is, in the order of the English catalogue
	sources map[ID]source
	tags    []language.Tag // in the order of loading
	texts   map[language.Tag]texts
	refused []Diagnostic
}

// A source is a message of the English catalogue that is built in.
type source struct {
	parameters
	entry Message
}

// newLoader returns a loader that has the languages that are built in.
func newLoader() (*loader, error) {
	l, err := builtIn()
	if err != nil {
		return nil, err
	}
	return &loader{ids: l.ids, sources: l.sources, tags: slices.Clone(l.tags), texts: maps.Clone(l.texts)}, nil
}

// builtIn finds the embedded catalogues, and reads the English one. It does so once, because
// they do not change. A message of another one that is wrong is left out; Lint finds it.
var builtIn = sync.OnceValues(func() (*loader, error) {
	english := readCatalogue(locales.FS(), language.English.String())
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
		l.texts[tag] = sync.OnceValue(func() map[ID]*text { return l.read(readCatalogue(locales.FS(), folder)) })
	}
	return l, nil
})

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
		return nil, errNoCatalogue
	}
	return catalogues, nil
}

// add adds the texts of one folder.
func (l *loader) add(fsys fs.FS, folder string) *catalogue {
	c := readCatalogue(fsys, folder)
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

// read returns the texts of a catalogue, and adds to its problems. Translation tools write
// an empty translation where it is still missing.
func (l *loader) read(c *catalogue) map[ID]*text {
	found := make(map[ID]*text, len(c.file.Messages))
	seen := make(map[ID]bool)
	for _, e := range c.file.Messages {
		id := ID(e.ID)
		source, known := l.sources[id]
		switch {
		case id == "":
			c.errorf(e, `a message has no "id"; take it from the English catalogue`)
		case !known:
			c.errorf(e, "no such message; %s", adviseID(l.sources, id))
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

// missing returns the messages that neither the language nor a parent of it has.
func (l *loader) missing(tag language.Tag) map[ID]bool {
	missing := make(map[ID]bool)
	for id := range l.sources {
		if nearest(tag, func(t language.Tag) bool { return l.texts[t].has(id) }) == language.Und {
			missing[id] = true
		}
	}
	return missing
}

// nearest returns the language itself, or its nearest parent (fr for fr-CA), for
// which has is true; language.Und without one.
func nearest(tag language.Tag, has func(language.Tag) bool) language.Tag {
	for tag != language.Und && !has(tag) {
		tag = tag.Parent()
	}
	return tag
}
