package yamlconf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// includeTag is the tag of a map with further entries in other files. It names the field with the path of the file or
// of a folder of files. These files have the key of the map as their only key.
const includeTag = "include"

// include adds the entries in included files to the maps of the struct v.
func (d *decoder) include(p Path, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		naming, ok := v.Type().FieldByName(field.Tag.Get(includeTag))
		if !ok {
			continue
		}
		key, name := naming.Tag.Get("yaml"), v.FieldByIndex(naming.Index).String()
		if name == "" {
			continue
		}
		at := d.positions[p.Child(key).key()]
		files, err := d.documents(name)
		if err != nil {
			d.report(p.Child(key), at, "cannot read %s: %v", name, WithoutPath(err))
			continue
		}
		before := len(d.problems)
		for _, file := range files {
			d.includeFile(p, file, field, v.Field(i))
		}
		if at.broken = len(d.problems) > before; at.broken { // missing values may be in a file with a problem
			d.positions[p.Child(key).key()] = at
		}
	}
}

// folderTag is the tag of a map of pointers to structs with further entries in folders. It names the field with the
// list of folders. Each file is an entry, which has the name of the file without .yaml or .yml.
const folderTag = "folders"

// folders adds the files in folders to the maps of the struct v.
func (d *decoder) folders(p Path, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		naming, ok := v.Type().FieldByName(field.Tag.Get(folderTag))
		if !ok {
			continue
		}
		list := p.Child(naming.Tag.Get("yaml"))
		for n, name := range v.FieldByIndex(naming.Index).Seq2() {
			files, err := d.documents(name.String())
			if err == nil && len(files) == 1 && files[0].name == name.String() {
				err = errNoFolder
			}
			if err != nil {
				item := list.Child(fmt.Sprint(n))
				d.report(item, d.positions[item.key()], "cannot read %s: %v", name, WithoutPath(err))
				continue
			}
			for _, file := range files {
				d.entryFile(p.Child(field.Tag.Get("yaml")), file, v.Field(i))
			}
		}
	}
}

var errNoFolder = errors.New("it is a file: name its folder")

// entryFile adds a file as an entry to the map v at p.
func (d *decoder) entryFile(p Path, file document, v reflect.Value) {
	defer func(before string) { d.file = before }(d.file)
	d.file = file.name
	at := position{source: file.name, line: 1, column: 1}
	base := filepath.Base(file.name)
	child := p.Child(strings.TrimSuffix(base, filepath.Ext(base)))
	key := reflect.ValueOf(child[len(p)]).Convert(v.Type().Key())
	switch {
	case file.err != nil:
		d.report(child, position{source: file.name}, "cannot be read: %v", WithoutPath(file.err))
		return
	case v.MapIndex(key).IsValid():
		d.report(child, at, "is already set at %s: remove one", d.positions[child.key()])
		return
	case v.IsNil():
		v.Set(reflect.MakeMap(v.Type()))
	}
	body, ok := d.parse(file.text)
	if at.broken = !ok; ok && body != nil {
		at = d.at(body)
	}
	d.positions[child.key()] = at
	value := reflect.New(v.Type().Elem().Elem())
	if ok {
		d.inMap++
		d.fill(p, child, value.Elem())
		d.structure(child, body, value.Elem())
		d.inMap--
	}
	v.SetMapIndex(key, value)
}

// includeFile adds the entries in a file to the map v.
func (d *decoder) includeFile(p Path, file document, field reflect.StructField, v reflect.Value) {
	if file.err != nil {
		d.report(nil, position{source: file.name}, "cannot be read: %v", WithoutPath(file.err))
		return
	}
	tag := reflect.StructTag(fmt.Sprintf("yaml:%q", field.Tag.Get("yaml")))
	// Decode the document as a struct with a single field.
	document := reflect.New(
		reflect.StructOf([]reflect.StructField{{Name: field.Name, Type: field.Type, Tag: tag}})).Elem()
	document.Field(0).Set(v)
	defer func(before string) { d.file = before }(d.file)
	d.file = file.name
	if body, ok := d.parse(file.text); ok {
		d.structure(p, body, document)
	}
	v.Set(document.Field(0))
}

var errNoDocument = errors.New("the folder has no file whose name ends in .yaml or .yml")

// A document is a file and its content.
type document struct {
	name string
	text []byte
	err  error
}

// documents returns the file, or the YAML files in the folder, with this name. For a volume of Kubernetes, all files
// are of the same version.
func (d *decoder) documents(name string) ([]document, error) {
	if d.sources.replaced(name) {
		return []document{d.document(name)}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []document{d.document(name)}, nil
	}
	// If the volume is updated while the files are read, read them again.
	for version := versionOf(name); ; {
		files, err := d.documentsIn(name)
		now := versionOf(name)
		if err != nil || now == version {
			return files, err
		}
		version = now
	}
}

// versionOf returns the version of a mounted Secret or ConfigMap, or an empty string for other folders. It is the
// target of a symbolic link, which Kubernetes replaces to update all files at once.
func versionOf(folder string) string {
	version, _ := os.Readlink(filepath.Join(folder, "..data"))
	return version
}

// IsDocument reports whether a file in a folder is a document: its name ends in .yaml or .yml and does not begin with
// a dot. Kubernetes creates hidden files in mounted Secrets and ConfigMaps.
func IsDocument(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml")
}

func (d *decoder) documentsIn(folder string) ([]document, error) {
	entries, err := d.sources.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []document
	for _, e := range entries {
		if IsDocument(e.Name()) {
			files = append(files, d.document(filepath.Join(folder, e.Name())))
		}
	}
	for _, name := range d.sources.addedDocuments(folder, entries) {
		files = append(files, d.document(name))
	}
	if len(files) == 0 {
		return nil, errNoDocument
	}
	return files, nil
}

func (d *decoder) document(name string) document {
	text, err := d.sources.ReadFile(name)
	return document{name, text, err}
}
