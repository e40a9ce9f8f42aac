// Package bytesize parses and formats numbers of bytes with a unit, such as 64MiB.
package bytesize

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Size is a number of bytes.
type Size int64

// Multiples of a byte.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// A unit is a unit in which a size may be written.
type unit struct {
	name string
	size Size
}

func units() []unit {
	return []unit{
		{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"", 1},
	}
}

// UnmarshalText parses a whole number with an optional unit, such as 64MiB or 1GB.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "TGMKkiB ")
	name := strings.TrimLeft(string(text)[len(digits):], " ")
	i := slices.IndexFunc(units(), func(u unit) bool { return u.name == name })
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || i < 0 || n < 0 {
		return fmt.Errorf("%q is not a size: write a whole number of bytes, or of KiB, MiB or GiB, like 64MiB", text)
	}
	size := units()[i].size
	if n > math.MaxInt64/int64(size) {
		return fmt.Errorf("%q is too large", text)
	}
	*s = Size(n) * size
	return nil
}

// String returns the size as a whole number in the largest possible unit.
func (s Size) String() string {
	for _, u := range units() {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
