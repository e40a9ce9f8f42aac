package pathname

import (
	"slices"
)

// A Name is a pathname from a client, as a [Codec] decodes it. Its bytes may have several readings. A reading that
// exists wins, and a [Resolver] finds out which ones exist.
type Name struct {
	// Path is absolute, clean and UTF-8. The command creates this pathname if no reading exists. It ends with a slash
	// if it must be a directory.
	Path string
	// Choice is the charset that the client must have used, or Undecided if several are possible.
	Choice Choice

	ambiguous map[string]*segment // by the prefix of Path that ends with the segment
}

// A segment holds the possible meanings of the bytes of one path segment.
type segment struct {
	readings []Reading // in the order in which existing names win
	created  int       // index of the reading that is created if none exists
	meant    bool      // the charset of the first reading must have been meant
	mixed    bool      // UTF-8 is as likely as the charset
	later    bool      // the configuration lists a charset before the one of the first reading
	// inUTF8 means that an existing name in UTF-8 proves that the client uses UTF-8: the configuration lists UTF-8,
	// and the session has not shown names that the client may be sending back.
	inUTF8 bool
	// notUTF8 means that a new file or directory does not replace one with the name in UTF-8, because the session sees
	// that one with different bytes.
	notUTF8 bool
}

func (s *segment) name() string { return s.readings[s.created].Name }

// read returns the possible meanings of the bytes of a segment.
//
// A client that uses UTF-8 means UTF-8. For other clients the charset comes first, because listings show names in it.
// A new name that is valid in both is in the charset too, because the charset was configured for devices. The
// exception is the charset of a whole tenant, which clients with UTF-8 use as well: then the name itself decides.
func (c Codec) read(encoding *Encoding, bytes string) (*segment, error) {
	readings, err := encoding.For(c.orderOf()).Readings(bytes)
	if err != nil || len(readings) == 1 {
		return &segment{readings: readings}, err
	}
	later := encoding.For(c.Choice).inOrder()[0] != readings[0].Charset
	utf8At := slices.IndexFunc(readings, func(r Reading) bool { return r.Charset == nil })
	if utf8At < 0 {
		return &segment{readings: readings, later: later}, nil
	}
	if c.Choice == UTF8 {
		return &segment{readings: readings[utf8At : utf8At+1]}, nil
	}
	s := &segment{readings: readings, later: later, inUTF8: encoding.names(nil) && !c.Listed}
	first, inUTF8 := readings[0], readings[utf8At].Name
	if first.Charset == nil {
		return s, nil // the configuration prefers UTF-8
	}
	s.meant = first.Charset.lacks(inUTF8)
	if _, shownIn := encoding.encode(inUTF8); shownIn != nil && !encoding.names(nil) {
		s.notUTF8 = true
	}
	// A new name with an invisible character is refused, so it cannot be meant: "í" is "Ã" and a soft hyphen in
	// Latin-1.
	refused := invisibleIn(first.Name) != 0 && invisibleIn(inUTF8) == 0
	if refused || c.Mixed || encoding != c.Encoding {
		s.meant = !refused && first.Charset.meant(first.Name, inUTF8)
		s.mixed = true
		if c.Choice == Undecided && !s.meant {
			s.created, s.notUTF8 = utf8At, false
		}
	}
	return s, nil
}

// orderOf returns the choice that determines the order of readings. A client that uses UTF-8 may still send back a
// name in a charset. The order of those readings only changes if there are several charsets.
func (c Codec) orderOf() Choice {
	if c.Choice == UTF8 {
		return Undecided
	}
	return c.Choice
}

// choice returns the charset of the client, given the index of the reading that was used and whether a file or
// directory with this name exists.
func (s *segment) choice(taken int, exists bool) Choice {
	charset := s.readings[taken].Charset
	switch {
	case charset == nil && exists && s.inUTF8:
		return UTF8
	case charset == nil && (!s.mixed || s.meant):
		return Undecided // an existing name in UTF-8, which the server has shown in UTF-8
	case exists || s.meant || s.mixed || s.later:
		return charset.Name()
	}
	return Undecided
}
