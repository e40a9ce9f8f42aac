package config

import "github.com/babelftp/babelftp/internal/config/yamlconf"

// A LogFormat is the format of log records. The zero value is LogText.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Values implements [yamlconf.Enum].
func (LogFormat) Values() []string { return yamlconf.EnumValues(LogText, LogJSON) }

// A Permission allows an operation.
type Permission string

// The permissions.
const (
	List   Permission = "list"   // list directories
	Read   Permission = "read"   // download files
	Write  Permission = "write"  // upload, append to and replace files, set their time
	Delete Permission = "delete" // remove files and directories
	Rename Permission = "rename" // rename files and directories
	Mkdir  Permission = "mkdir"  // create directories

	// Password allows users to change their password. Unlike the others, it must be granted; see
	// [Tenant.MayChangePassword].
	Password Permission = "password"
)

// FilePermissions returns the permissions for files, in the order of the documentation.
func FilePermissions() []Permission { return []Permission{List, Read, Write, Delete, Rename, Mkdir} }

// Values implements [yamlconf.Enum].
func (Permission) Values() []string {
	return yamlconf.EnumValues(append(FilePermissions(), Password)...)
}

// Overwrite controls whether a file may replace an existing one. The zero value inherits the setting of the tenant.
type Overwrite string

// The overwrite modes.
const (
	AllowOverwrite Overwrite = "allow" // replace the file
	DenyOverwrite  Overwrite = "deny"  // refuse the new file
	// replace the file only if the bucket keeps it as an older version
	VersionOverwrite Overwrite = "version"
)

// Values implements [yamlconf.Enum].
func (Overwrite) Values() []string {
	return yamlconf.EnumValues(AllowOverwrite, DenyOverwrite, VersionOverwrite)
}

// UsersStore is a place besides files where users are stored.
type UsersStore string

// StateStore is the shared state.
const StateStore UsersStore = "state"

// Values implements [yamlconf.Enum].
func (UsersStore) Values() []string { return yamlconf.EnumValues(StateStore) }

// RestoreTier is the speed at which S3 restores archived objects. The zero value is StandardRestore.
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

// ControlCharacters controls whether users may create names with control characters. The zero value is
// AllowControlCharacters.
type ControlCharacters string

// The modes.
const (
	AllowControlCharacters  ControlCharacters = "allow" // RFC 2640, section 3.1
	RefuseControlCharacters ControlCharacters = "refuse"
)

// Values implements [yamlconf.Enum].
func (ControlCharacters) Values() []string {
	return yamlconf.EnumValues(AllowControlCharacters, RefuseControlCharacters)
}

// ASCII controls the conversion of line endings in TYPE A. The zero value is ConvertLineEnds.
type ASCII string

// The modes.
const (
	ConvertLineEnds ASCII = "convert" // RFC 959, section 3.1.1.1
	KeepLineEnds    ASCII = "keep"    // for devices that send binary files in TYPE A
)

// Values implements [yamlconf.Enum].
func (ASCII) Values() []string { return yamlconf.EnumValues(ConvertLineEnds, KeepLineEnds) }

// Chmod controls the reply to SITE CHMOD. The zero value is RefuseChmod.
type Chmod string

// The modes.
const (
	RefuseChmod Chmod = "refuse"
	IgnoreChmod Chmod = "ignore"
)

// Values implements [yamlconf.Enum].
func (Chmod) Values() []string { return yamlconf.EnumValues(RefuseChmod, IgnoreChmod) }

// StorAfterRest controls what happens to the rest of the old file when STOR follows REST. The zero value is KeepRest.
type StorAfterRest string

// The modes. RFC 3659, section 5.3, allows both.
const (
	KeepRest     StorAfterRest = "keep"
	TruncateRest StorAfterRest = "truncate"
)

// Values implements [yamlconf.Enum].
func (StorAfterRest) Values() []string { return yamlconf.EnumValues(KeepRest, TruncateRest) }

// OnFailure controls what happens to a file that could not be inspected. The zero value is RefuseOnFailure.
type OnFailure string

// The modes.
const (
	RefuseOnFailure OnFailure = "refuse"
	AcceptOnFailure OnFailure = "accept"
)

// Values implements [yamlconf.Enum].
func (OnFailure) Values() []string { return yamlconf.EnumValues(RefuseOnFailure, AcceptOnFailure) }

// Resume controls what happens to interrupted uploads. The zero value is DiscardInterrupted.
type Resume string

// The modes.
const (
	DiscardInterrupted Resume = "discard"
	KeepInterrupted    Resume = "keep" // so that the user who started it can resume it
)

// Values implements [yamlconf.Enum].
func (Resume) Values() []string { return yamlconf.EnumValues(DiscardInterrupted, KeepInterrupted) }
