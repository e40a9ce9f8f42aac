package value

import (
	"cmp"
	"fmt"
	"time"
	_ "time/tzdata" // an image of the server need not have it
)

// A Zone is a time zone of the IANA database, such as Europe/Paris. The zero value means UTC.
type Zone struct{ location *time.Location }

// UnmarshalText parses the name of a time zone. It rejects the local time zone, because replicas may run on different
// machines.
func (z *Zone) UnmarshalText(text []byte) error {
	location, err := time.LoadLocation(string(text))
	if err != nil || location == time.Local {
		return fmt.Errorf("%q is not a time zone: write one of the IANA database, like Europe/Paris", text)
	}
	z.location = location
	return nil
}

// Location returns the time zone.
func (z Zone) Location() *time.Location { return cmp.Or(z.location, time.UTC) }

// IsSet reports whether the time zone is set.
func (z Zone) IsSet() bool { return z.location != nil }

// String returns the name of the time zone.
func (z Zone) String() string { return z.Location().String() }
