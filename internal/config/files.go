package config

import (
	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// FileRules restrict the files that may be stored.
type FileRules struct {
	// Patterns of file names that are refused with 553 in all directories, such as `*.exe`.
	Deny []string `yaml:"deny" default:"none"`
	// Maximum size of a file. Larger uploads are refused with 552.
	MaxSize bytesize.Size `yaml:"max_size" default:"no limit"`
}

// check validates the section at p.
func (r *FileRules) check(v *validator, p yamlconf.Path) { v.fileNames(p.Child("deny"), r.Deny) }
