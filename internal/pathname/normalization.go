package pathname

import (
	"golang.org/x/text/unicode/norm"
)

// A Normalization is the Unicode form in which names are created. The zero value is [NFC]. With NFC and NFD, a
// Resolver also tries the other form of a name.
type Normalization string

// Normalizations.
const (
	NFC  Normalization = "nfc"  // Normalization Form C
	NFD  Normalization = "nfd"  // Normalization Form D
	None Normalization = "none" // names are created and looked up as given
)

// Values returns the values in a configuration.
func (Normalization) Values() []string { return []string{string(NFC), string(NFD), string(None)} }

// A Backslash is the meaning of a backslash in a client's pathname. The zero value is [BackslashInName].
type Backslash string

// Meanings of a backslash.
const (
	BackslashInName    Backslash = "name"      // a backslash
	BackslashSeparates Backslash = "separator" // a slash, as Windows clients mean it
)

// Values returns the values in a configuration.
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
