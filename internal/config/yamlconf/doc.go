// Package yamlconf loads a struct from a YAML document, from environment variables and from files that hold one value
// each.
//
// [Loader.Decode] walks over the fields of the struct that have a tag `yaml:"key"`. It reports all problems, each
// with its file, line and column: a key that is unknown or given twice, a value that cannot be read, a variable that
// gives no value.
//
// What it returns as [Positions] lets later checks report their problems at the same places, and only where nothing
// was wrong before.
//
// Fields are structs, lists of single values, and maps of single values, lists, maps or pointers to structs. Single
// values are strings, strings of few words (see [Enum]), bools, ints and durations. So is every type that implements
// [encoding.TextUnmarshaler].
//
// A map of pointers to structs with a tag `include:"Field"` gets more entries from the files that the other field
// names. With a tag `folders:"Field"` it gets each file in the folders that the other field lists as an entry. With a tag
// `defaults:"Field"` its entries begin with what the document gives to the other field.
//
// A variable gives a single value that structs alone lead to. What is in a map has none, because its key is a name.
//
// The package comment of internal/config tells users how a value is given by a variable or by a file.
package yamlconf
