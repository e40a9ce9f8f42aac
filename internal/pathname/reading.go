package pathname

import (
	"slices"
)

// A Name is a pathname that a client has sent, as a [Codec] reads it. Its bytes may have several readings. An existing
// name that has one of them wins, and a [Resolver] knows which exist.
type Name struct {
	// Path is absolute, clean and UTF-8. It is the pathname that the command creates if no reading exists. It ends with
	// a slash if it is the pathname of a directory.
	Path string
	// Choice is the charset in which the client must have written the name, Undecided if there is more than one.
	Choice Choice

	ambiguous map[string]*segment // by the part of Path that ends in the segment
}

// A segment holds the possible meanings of the bytes of one segment of a pathname.
type segment struct {
	readings []Reading // in the order in which existing names win
	created  int       // index of the reading that is created if none exists
	meant    bool      // whether the charset of the first reading must have been meant
	mixed    bool      // whether UTF-8 is as likely as the charset
	later    bool      // whether the configuration has a charset before the one of the first reading
	// inUTF8 reports that an existing name in UTF-8 shows that the client writes UTF-8: the configuration lists UTF-8,
	// and the session has not shown names that the client sends back.
	inUTF8 bool
	// notUTF8 reports that a new file or directory does not replace one that has the name in UTF-8, because the session
	// sees that one under other bytes.
	notUTF8 bool
}

func (s *segment) name() string { return s.readings[s.created].Name }

// read returns what a session can mean by the bytes of a segment.
//
// A client that writes UTF-8 means UTF-8. For others the charset comes first, because listings show names in it. A new
// name that can be both is in the charset too, because it was configured for devices, unless it is the charset of a
// whole tenant: then clients that write UTF-8 come as well, and the name itself has to tell.
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
	// A new name with an invisible character is refused, so it is not meant: "í" is "Ã" and a soft hyphen in Latin-1.
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

// orderOf returns the choice that decides the order of readings. A client that writes UTF-8 can still send back a name
// in a charset; the order of those readings changes only if there are several charsets.
func (c Codec) orderOf() Choice {
	if c.Choice == UTF8 {
		return Undecided
	}
	return c.Choice
}

// choice returns the charset of the client, given that the reading at index taken was used, and whether a file or
// directory exists under this name.
func (s *segment) choice(taken int, exists bool) Choice {
	charset := s.readings[taken].Charset
	switch {
	case charset == nil && exists && s.inUTF8:
		return UTF8
	case charset == nil && (!s.mixed || s.meant):
		return Undecided // an existing name in UTF-8, which the server has shown so
	case exists || s.meant || s.mixed || s.later:
		return charset.Name()
	}
	return Undecided
}
