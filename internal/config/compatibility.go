package config

import (
	"cmp"
	"net/netip"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/pathname"
)

// Compatibility adapts the server to clients and devices that deviate from the standards. Settings of a user take
// precedence over settings of the client's network, which take precedence over settings of the tenant.
type Compatibility struct {
	// Encoding of file names for clients that do not use UTF-8: `utf-8`, `raw`, a charset, or a list of charsets that
	// are tried in order.
	Charset value.Encoding `yaml:"charset" default:"utf-8"`
	// Line endings of transfers in TYPE A: `convert` between CR LF on the connection and LF in the bucket, or `keep`
	// all bytes.
	ASCII ASCII `yaml:"ascii" default:"convert"`
	// Reply to SITE CHMOD: `refuse` it with 502, or `ignore` it with 200.
	Chmod Chmod `yaml:"chmod" default:"refuse"`
	// Meaning of a backslash in a path: a character of a `name`, or a `separator` of directories.
	Backslash pathname.Backslash `yaml:"backslash" default:"name"`
	// Bytes of the old file after the end of an upload that follows REST: `keep` them, or `truncate` the file.
	StorAfterRest StorAfterRest `yaml:"stor_after_rest" default:"keep"`
	// New names with control characters, such as line breaks: `allow` them, or `refuse` them with 553.
	ControlCharacters ControlCharacters `yaml:"control_characters" default:"allow"`
	// Unicode normalization of new names. It is always `none` for raw names.
	Normalization pathname.Normalization `yaml:"normalization" default:"nfc"`
}

// Or returns x with unset settings filled from other.
func (x Compatibility) Or(other Compatibility) Compatibility { return fillUnset(x, other) }

// NormalizationOf returns the normalization of new names. The default is NFC; raw names are not normalized.
func (x Compatibility) NormalizationOf() pathname.Normalization {
	if x.Charset.Raw() {
		return pathname.None
	}
	return cmp.Or(x.Normalization, pathname.NFC)
}

// BackslashOf returns the meaning of a backslash. In raw names it is always part of the name, because the encoding is
// unknown.
func (x Compatibility) BackslashOf() pathname.Backslash {
	if x.Charset.Raw() {
		return pathname.BackslashInName
	}
	return x.Backslash
}

// CompatibilityAt returns the settings for a client with this address before it logs in. Each login calls it several
// times.
func (t *Tenant) CompatibilityAt(addr netip.Addr) Compatibility {
	if len(t.CompatibilityByNetwork) == 0 {
		return t.Compatibility
	}
	return t.CompatibilityOfNetwork(addr).Or(t.Compatibility)
}

// CompatibilityOfNetwork returns the settings of the most specific network that contains the address.
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

// check validates the section at p.
func (x *Compatibility) check(v *validator, p yamlconf.Path) {
	if x.Charset.Raw() && x.Normalization != "" && x.Normalization != pathname.None {
		v.report(p.Child("normalization"), "conflicts with charset: raw, which keeps names as they are: remove it")
	}
	if x.Charset.Raw() && x.Backslash == pathname.BackslashSeparates {
		v.report(p.Child("backslash"),
			"conflicts with charset: raw, in which a backslash is not recognized: remove the key, or set another charset")
	}
}
