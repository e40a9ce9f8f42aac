// Package value has the types of configuration values that are more than a string or a number, for example [Secret],
// [Network] and [Encoding]. Each implements [encoding.TextUnmarshaler] with an error that explains how to write the
// value.
//
// Functions with the suffix Problem check other values: bucket names, key prefixes, paths, patterns, greetings and
// object tags. They return the rule that a value violates, or an empty string if it is valid.
package value

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"

	"github.com/babelftp/babelftp/internal/pathname"
)

// A TLSVersion is a version constant of crypto/tls. The zero value means TLS 1.2.
type TLSVersion uint16

// UnmarshalText parses 1.2 or 1.3. RFC 8996 forbids older versions.
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

// String returns the version as it is written in the configuration, such as 1.3.
func (v TLSVersion) String() string { return strings.TrimPrefix(tls.VersionName(uint16(v)), "TLS ") }

// An Encoding is an encoding of pathnames. The zero value is UTF-8.
type Encoding struct{ *pathname.Encoding }

// UnmarshalText parses utf-8, raw, or a list of charsets separated by commas.
func (e *Encoding) UnmarshalText(text []byte) error {
	return e.UnmarshalList(strings.Split(string(text), ","))
}

// UnmarshalList parses utf-8, raw, or a list of charsets.
func (e *Encoding) UnmarshalList(labels []string) error {
	parsed, err := pathname.ParseEncoding(labels...)
	if err != nil {
		return err
	}
	e.Encoding = parsed
	return nil
}

// A Network is an IP network.
type Network struct{ netip.Prefix }

// UnmarshalText parses a network in CIDR notation or a single address: 203.0.113.0/24, 2001:db8::/32 or 203.0.113.7.
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
