package yamlconf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// includeTag is the tag of a map with the name of another field, whose value names a file, or a folder of files, with
// more entries. The entries stand in these files under the key of the map. That key is the only one that they may
// have.
const includeTag = "include"

// include adds what the files have to the maps of the struct v.
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
		for _, file := range files {
			d.includeFile(p, file, field, v.Field(i))
		}
	}
}

// includeFile adds what a file has to the map that v is.
func (d *decoder) includeFile(p Path, name string, field reflect.StructField, v reflect.Value) {
	text, err := d.sources.ReadFile(name)
	if err != nil {
		d.report(nil, position{source: name}, "cannot be read: %v", WithoutPath(err))
		return
	}
	tag := reflect.StructTag(fmt.Sprintf("yaml:%q", field.Tag.Get("yaml")))
	// The document is a struct with the one field.
	document := reflect.New(
		reflect.StructOf([]reflect.StructField{{Name: field.Name, Type: field.Type, Tag: tag}})).Elem()
	document.Field(0).Set(v)
	defer func(before string) { d.file = before }(d.file)
	d.file = name
	if body, ok := d.parse(text); ok {
		d.structure(p, body, document)
	}
	v.Set(document.Field(0))
}

var errNoDocument = errors.New("the folder has no file whose name ends in .yaml or .yml")

// documents returns the file name itself, or those of the folder name that are YAML. It leaves out hidden files, like
// those that Kubernetes makes in a mounted Secret or ConfigMap.
func (d *decoder) documents(name string) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		return []string{name}, err
	}
	entries, err := d.sources.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		if !strings.HasPrefix(e.Name(), ".") && (ext == ".yaml" || ext == ".yml") {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errNoDocument
	}
	return files, nil
}
