// Package value has the types of single values in the configuration that are more than a text or a number, such as
// secrets, networks and encodings of pathnames. Each reads itself from text and says what is wrong with it.
//
// The functions whose names end in Problem say which rule other values break: names of buckets, prefixes of keys,
// pathnames and patterns, texts, tags of objects. The text is empty for a good value.
package value

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"

	"github.com/babelftp/babelftp/internal/pathname"
)

// A TLSVersion is a version that crypto/tls knows. The zero value is TLS 1.2.
type TLSVersion uint16

// UnmarshalText reads 1.2 or 1.3. RFC 8996 forbids the versions before.
func (v *TLSVersion) UnmarshalText(text []byte) error {
	switch string(text) {
	case "1.2":
		*v = tls.VersionTLS12
	case "1.3":
		*v = tls.VersionTLS13
	default:
		return fmt.Errorf("%q is not an allowed TLS version: write 1.2 or 1.3", text)
	}
	return nil
}

// An Encoding is how clients write pathnames. The zero value is UTF-8.
type Encoding struct{ *pathname.Encoding }

// UnmarshalText reads utf-8, raw or the labels of charsets, with commas between them.
func (e *Encoding) UnmarshalText(text []byte) error {
	return e.UnmarshalList(strings.Split(string(text), ","))
}

// UnmarshalList reads utf-8, raw or the labels of charsets.
func (e *Encoding) UnmarshalList(labels []string) error {
	parsed, err := pathname.ParseEncoding(labels...)
	if err != nil {
		return err
	}
	e.Encoding = parsed
	return nil
}

// A Network is the addresses that begin alike.
type Network struct{ netip.Prefix }

// UnmarshalText reads a network in CIDR notation, or a single address: 203.0.113.0/24, 2001:db8::/32, 203.0.113.7.
func (n *Network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil && addr.Zone() == "" {
		n.Prefix = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		return nil
	}
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil || prefix != prefix.Masked() {
		return fmt.Errorf("%q is not a network: write it like 203.0.113.0/24, 2001:db8::/32 or 203.0.113.7", text)
	}
	n.Prefix = prefix
	return nil
}
