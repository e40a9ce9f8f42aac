package config

import "github.com/babelftp/babelftp/internal/config/yamlconf"

// A LogFormat is how a log record is written. The zero value is LogText.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Values implements [yamlconf.Enum].
func (LogFormat) Values() []string { return yamlconf.EnumValues(LogText, LogJSON) }

// A Permission is what a user may do.
type Permission string

// The permissions.
const (
	List   Permission = "list"   // see what is in a directory
	Read   Permission = "read"   // download
	Write  Permission = "write"  // upload, append, replace a file, set its time
	Delete Permission = "delete" // remove files and directories
	Rename Permission = "rename" // move files and directories
	Mkdir  Permission = "mkdir"  // make directories
)

// AllPermissions is every permission, in the order of the documentation.
func AllPermissions() []Permission { return []Permission{List, Read, Write, Delete, Rename, Mkdir} }

// Values implements [yamlconf.Enum].
func (Permission) Values() []string { return yamlconf.EnumValues(AllPermissions()...) }

// Overwrite is what happens when a file is stored whose name another one has. The zero value stands for what the
// layer above says.
type Overwrite string

// The modes.
const (
	AllowOverwrite Overwrite = "allow" // the file is replaced
	DenyOverwrite  Overwrite = "deny"  // the file stays, and the other is refused
	// the file is replaced where the bucket keeps it as an older version, and only there
	VersionOverwrite Overwrite = "version"
)

// Values implements [yamlconf.Enum].
func (Overwrite) Values() []string {
	return yamlconf.EnumValues(AllowOverwrite, DenyOverwrite, VersionOverwrite)
}

// RestoreTier is how fast S3 restores archived objects. The zero value is StandardRestore.
type RestoreTier string

// The tiers.
const (
	ExpeditedRestore RestoreTier = "expedited" // minutes
	StandardRestore  RestoreTier = "standard"  // hours
	BulkRestore      RestoreTier = "bulk"      // up to two days
)

// Values implements [yamlconf.Enum].
func (RestoreTier) Values() []string {
	return yamlconf.EnumValues(ExpeditedRestore, StandardRestore, BulkRestore)
}

// ControlCharacters is whether users may create names with control characters. The zero value is
// AllowControlCharacters.
type ControlCharacters string

// The answers.
const (
	AllowControlCharacters  ControlCharacters = "allow" // RFC 2640, section 3.1
	RefuseControlCharacters ControlCharacters = "refuse"
)

// Values implements [yamlconf.Enum].
func (ControlCharacters) Values() []string {
	return yamlconf.EnumValues(AllowControlCharacters, RefuseControlCharacters)
}

// ASCII is what TYPE A does to lines. The zero value is ConvertLineEnds.
type ASCII string

// The treatments.
const (
	ConvertLineEnds ASCII = "convert" // RFC 959, section 3.1.1.1
	KeepLineEnds    ASCII = "keep"    // for devices that send pictures after TYPE A
)

// Values implements [yamlconf.Enum].
func (ASCII) Values() []string { return yamlconf.EnumValues(ConvertLineEnds, KeepLineEnds) }

// Chmod is how SITE CHMOD is answered. The zero value is RefuseChmod.
type Chmod string

// The answers.
const (
	RefuseChmod Chmod = "refuse"
	IgnoreChmod Chmod = "ignore"
)

// Values implements [yamlconf.Enum].
func (Chmod) Values() []string { return yamlconf.EnumValues(RefuseChmod, IgnoreChmod) }

// StorAfterRest is what STOR after REST does with the bytes of the file after those that the client sends. The zero
// value is KeepRest.
type StorAfterRest string

// The choices. RFC 3659, section 5.3, leaves both to the server.
const (
	KeepRest     StorAfterRest = "keep"
	TruncateRest StorAfterRest = "truncate"
)

// Values implements [yamlconf.Enum].
func (StorAfterRest) Values() []string { return yamlconf.EnumValues(KeepRest, TruncateRest) }

// OnFailure is what happens to a file that could not be judged. The zero value is RefuseUnjudged.
type OnFailure string

// The choices.
const (
	RefuseUnjudged OnFailure = "refuse"
	AcceptUnjudged OnFailure = "accept"
)

// Values implements [yamlconf.Enum].
func (OnFailure) Values() []string { return yamlconf.EnumValues(RefuseUnjudged, AcceptUnjudged) }

// Resume is what happens to an interrupted upload. The zero value is DiscardInterrupted.
type Resume string

// The choices.
const (
	DiscardInterrupted Resume = "discard"
	KeepInterrupted    Resume = "keep" // for the user who began it, to resume
)

// Values implements [yamlconf.Enum].
func (Resume) Values() []string { return yamlconf.EnumValues(DiscardInterrupted, KeepInterrupted) }
