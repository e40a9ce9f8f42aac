package value

import (
	"cmp"
	"fmt"
	"time"
	_ "time/tzdata" // an image of the server need not have it
)

// A Zone is a time zone of the IANA database, such as Europe/Paris. The zero value is UTC.
type Zone struct{ location *time.Location }

// UnmarshalText reads the name of a zone. That of the machine has none, because replicas may run on several.
func (z *Zone) UnmarshalText(text []byte) error {
	location, err := time.LoadLocation(string(text))
	if err != nil || location == time.Local {
		return fmt.Errorf("%q is not a time zone: write one of the IANA database, like Europe/Paris", text)
	}
	z.location = location
	return nil
}

// Location is the zone.
func (z Zone) Location() *time.Location { return cmp.Or(z.location, time.UTC) }

// Given reports whether a zone was written.
func (z Zone) Given() bool { return z.location != nil }

// String is the name of the zone.
func (z Zone) String() string { return z.Location().String() }
