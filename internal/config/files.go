package config

import (
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// FileRules are which files may be stored.
type FileRules struct {
	// Names of files that are refused with 553 in each directory, by pattern, such as `*.exe`.
	Deny []string `yaml:"deny" default:"none"`
	// Most bytes that a whole file may have. An upload that is larger is refused with 552.
	MaxSize bytesize.Size `yaml:"max_size" default:"no limit"`
}

// check reports what is wrong with the section that p leads to.
func (r *FileRules) check(v *validator, p yamlconf.Path) { v.fileNames(p.Child("deny"), r.Deny) }
