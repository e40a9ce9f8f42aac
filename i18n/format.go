package i18n

import (
	"bytes"
	"errors"
	"io/fs"
	"path"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/locales"
)

// Format formats the catalogs in an operator's directory. It returns the new content of the files that
// change, by name. The error joins the problems of files that cannot be read.
func Format(dir fs.FS) (map[string][]byte, error) {
	english, err := fs.ReadFile(locales.FS(), path.Join(language.English.String(), fileName))
	if err != nil {
		return nil, err
	}
	source, _ := parseFile(english) // Load reports problems
	names, err := fs.Glob(dir, "*/"+fileName)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errNoCatalog
	}
	formatted := make(map[string][]byte)
	var errs []error
	for _, name := range names {
		c := readCatalog(dir, path.Dir(name))
		errs = append(errs, loadError(c))
		if len(c.diagnostics) > 0 {
			continue
		}
		before, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		after, err := formatFile(c.file, source)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, after) {
			formatted[name] = after
		}
	}
	return formatted, errors.Join(errs...)
}
