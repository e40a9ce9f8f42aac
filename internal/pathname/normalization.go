package pathname

import (
	"fmt"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// A Normalization is what is done about the forms in which Unicode can write one
// name. The zero value is [NFC]. Under NFC and NFD a name that is not there as it was
// given is looked for in the other form.
type Normalization string

// The normalizations.
const (
	NFC  Normalization = "nfc"  // names are created in Normalization Form C
	NFD  Normalization = "nfd"  // in Form D
	None Normalization = "none" // as they are given, and found as they are given only
)

// Values are the words of a configuration.
func (Normalization) Values() []Normalization { return []Normalization{NFC, NFD, None} }

// UnmarshalText reads the name of a normalization.
func (n *Normalization) UnmarshalText(text []byte) error {
	if v := Normalization(text); slices.Contains(n.Values(), v) {
		*n = v
		return nil
	}
	return fmt.Errorf("%q is no Unicode normalization: write nfc, nfd or none", text)
}

// Normalize is a name as it is created.
func (n Normalization) Normalize(name string) string {
	switch n {
	case NFD:
		return norm.NFD.String(name)
	case None:
		return name
	}
	return norm.NFC.String(name)
}
