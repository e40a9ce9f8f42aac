package value

import (
	"fmt"
	"strconv"
)

// A Share is a part of a whole, from 0 to 1.
type Share float64

// UnmarshalText reads a decimal number.
func (s *Share) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(f >= 0 && f <= 1) { // NaN is neither
		return fmt.Errorf("%q is no share: write a number from 0 to 1, like 0.1", text)
	}
	*s = Share(f)
	return nil
}

// String is the form that UnmarshalText reads.
func (s Share) String() string { return strconv.FormatFloat(float64(s), 'g', -1, 64) }
