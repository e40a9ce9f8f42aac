package driver

import "github.com/babelftp/babelftp/driver/internal/profile"

// A Profile says what an S3 server can do beyond what all of them can, and which rules it enforces. The zero value is the strictest server.
type Profile = profile.Profile

// ProfileNamed returns the profile of a name, "aws" for example, and false where there is none.
func ProfileNamed(name string) (Profile, bool) { return profile.Named(name) }

// ProfileNames are the names of all profiles.
func ProfileNames() []string { return profile.Names() }
