// Package value has the types of single values in the configuration that are more than a text or a number, such as
// sizes, secrets, networks and encodings of pathnames. Each reads itself from text and says what is wrong with it.
//
// The functions whose names end in Problem say which rule other values break: names of buckets, prefixes of keys,
// pathnames and patterns, texts, tags of objects. The text is empty for a good value.
package value

import (
	"crypto/tls"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/pathname"
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

// unit is what a number of bytes may be written in.
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

// UnmarshalText reads a whole number of bytes, or of a unit: 64MiB, 1GB.
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

// String is the size in the largest unit that it is a whole number of.
func (s Size) String() string {
	for _, u := range units() {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

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
