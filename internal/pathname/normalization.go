package pathname

import (
	"golang.org/x/text/unicode/norm"
)

// A Normalization is the Unicode form in which names are created. The zero value is
// [NFC]. Under NFC and NFD, a Resolver also looks for the other form of a name.
type Normalization string

// The normalizations.
const (
	NFC  Normalization = "nfc"  // Normalization Form C
	NFD  Normalization = "nfd"  // Normalization Form D
	None Normalization = "none" // names are created and looked for as they are given
)

// Values are the values in a configuration.
func (Normalization) Values() []string { return []string{string(NFC), string(NFD), string(None)} }

// A Backslash is what a backslash in a client's pathname stands for. The zero value is
// [BackslashInName].
type Backslash string

// What a backslash stands for.
const (
	BackslashInName    Backslash = "name"      // itself
	BackslashSeparates Backslash = "separator" // a slash, as clients of Windows mean it
)

// Values are the values in a configuration.
func (Backslash) Values() []string {
	return []string{string(BackslashInName), string(BackslashSeparates)}
}

// Normalize returns the form in which a name is created.
func (n Normalization) Normalize(name string) string {
	switch n {
	case NFD:
		return norm.NFD.String(name)
	case None:
		return name
	}
	return norm.NFC.String(name)
}
