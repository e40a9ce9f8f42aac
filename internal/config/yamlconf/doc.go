// Package yamlconf decodes a YAML document, environment variables and files with single values into a struct.
//
// [Loader.Decode] sets the fields of the struct that have a tag `yaml:"key"`. Unlike other decoders it does not stop
// at the first error: it returns a [Problem] with file, line and column for each unknown or duplicate key, invalid
// value and unknown variable. It also returns [Positions], with which later checks report their problems at the right
// place. They suppress problems with values that are already known to be invalid.
//
// Fields may be structs, lists of scalars, and maps of scalars, lists, maps or pointers to structs. Scalars are
// strings, enumerations (see [Enum]), bools, ints, durations and every type that implements
// [encoding.TextUnmarshaler].
//
// These tags apply to maps of pointers to structs and name another field:
//
//   - `include:"Field"`: further entries are read from the file, or the folder of files, in that field.
//   - `folders:"Field"`: each file in the folders in that field is an entry.
//   - `defaults:"Field"`: the values of that field are the defaults of all entries.
//
// Scalars can be set by environment variables unless they are in a map, because the keys of a map are names. The
// documentation of package config describes how users set values by variables and files.
package yamlconf
