package config

import (
	"cmp"
	"net/netip"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/pathname"
)

// Compatibility is how clients and devices that differ from the standards are treated. A tenant, a network of its
// clients and a user each have one: what the user says counts first, then the network, then the tenant.
type Compatibility struct {
	// How clients without UTF-8 write names: `utf-8`, `raw`, or the label of a charset, or a list of charsets in the order
	// in which they are tried.
	Charset value.Encoding `yaml:"charset" default:"utf-8"`
	// TYPE A: `convert` between CR LF on the way and LF in the bucket, or `keep` all bytes.
	ASCII ASCII `yaml:"ascii" default:"convert"`
	// SITE CHMOD: `refuse` with 502, or `ignore` with 200.
	Chmod Chmod `yaml:"chmod" default:"refuse"`
	// A backslash in a pathname: a character of a `name`, or a `separator` of directories.
	Backslash pathname.Backslash `yaml:"backslash" default:"name"`
	// Bytes after those that STOR after REST sends: `keep` them, or `truncate` the file.
	StorAfterRest StorAfterRest `yaml:"stor_after_rest" default:"keep"`
	// Names with control characters, such as line ends: `allow`, or `refuse` with 553.
	ControlCharacters ControlCharacters `yaml:"control_characters" default:"allow"`
	// Unicode form in which names are created. For raw names it is `none`.
	Normalization pathname.Normalization `yaml:"normalization" default:"nfc"`
}

// Or fills the settings that x leaves unset from other.
func (x Compatibility) Or(other Compatibility) Compatibility { return or(x, other) }

// NormalizationOf is the Unicode form of new names: NFC unless x says otherwise, or has names that are no text.
func (x Compatibility) NormalizationOf() pathname.Normalization {
	if x.Charset.Raw() {
		return pathname.None
	}
	return cmp.Or(x.Normalization, pathname.NFC)
}

// BackslashOf is what a backslash stands for. In raw names no byte is known to be one.
func (x Compatibility) BackslashOf() pathname.Backslash {
	if x.Charset.Raw() {
		return pathname.BackslashInName
	}
	return x.Backslash
}

// CompatibilityAt returns how the tenant treats a client at an address that has not logged in. Each login calls it
// several times.
func (t *Tenant) CompatibilityAt(addr netip.Addr) Compatibility {
	if len(t.CompatibilityByNetwork) == 0 {
		return t.Compatibility
	}
	return t.CompatibilityOfNetwork(addr).Or(t.Compatibility)
}

// CompatibilityOfNetwork returns the settings of the smallest configured network that has the address.
func (t *Tenant) CompatibilityOfNetwork(addr netip.Addr) Compatibility {
	found, bits := &Compatibility{}, -1
	addr = addr.Unmap().WithZone("")
	for network, c := range t.CompatibilityByNetwork {
		if network.Contains(addr) && network.Bits() > bits {
			found, bits = c, network.Bits()
		}
	}
	return *found
}

// check reports what contradicts itself in the section that p leads to.
func (x *Compatibility) check(v *validator, p yamlconf.Path) {
	if x.Charset.Raw() && x.Normalization != "" && x.Normalization != pathname.None {
		v.report(p.Child("normalization"), "raw names are kept as they are, byte for byte: write none, or remove the key")
	}
	if x.Charset.Raw() && x.Backslash == pathname.BackslashSeparates {
		v.report(p.Child("backslash"),
			"in raw names no byte is known to be a backslash: remove the key, or name the charset of the clients")
	}
}
