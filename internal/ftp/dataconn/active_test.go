package dataconn

import (
	"errors"
	"net/netip"
	"testing"
)

func TestParseExtendedPort(t *testing.T) {
	const four, six = "192.0.2.7", "2001:db8::7"
	for _, tt := range []struct {
		name, client, arg string
		want              string // the expected address
		err               error
	}{
		{"ipv4", four, "|1|192.0.2.7|2000|", "192.0.2.7:2000", nil},
		{"ipv6", six, "|2|2001:db8::7|2000|", "[2001:db8::7]:2000", nil},
		{"another-address", four, "|1|198.51.100.1|2000|", "198.51.100.1:2000", nil}, // the session refuses it
		{"mapped", four, "|2|::ffff:192.0.2.7|2000|", "192.0.2.7:2000", nil},
		{"mapped-hexadecimal", four, "|2|::ffff:c000:207|2000|", "192.0.2.7:2000", nil},
		{"mapped-as-ipv4", four, "|1|::ffff:192.0.2.7|2000|", "", errSyntax},
		{"ipv6-for-ipv4", four, "|2|2001:db8::7|2000|", "", ErrProtocol},
		{"ipv4-for-ipv6", six, "|1|192.0.2.7|2000|", "", ErrProtocol},
		{"ipv4-as-ipv6-for-ipv4", four, "|2|192.0.2.7|2000|", "", ErrProtocol},
		{"ipv4-as-ipv6-for-ipv6", six, "|2|192.0.2.7|2000|", "", errSyntax},
		{"ipv6-as-ipv4-for-ipv4", four, "|1|2001:db8::7|2000|", "", errSyntax},
		{"ipv6-as-ipv4-for-ipv6", six, "|1|2001:db8::7|2000|", "", ErrProtocol},
		{"no-address-for-ipv4", four, "|1|x|2000|", "", errSyntax},
		{"no-address-of-ipv6-for-ipv4", four, "|2|x|2000|", "", ErrProtocol},
		{"no-address-of-ipv4-for-ipv6", six, "|1|x|2000|", "", ErrProtocol},
		{"unknown-for-ipv4", four, "|3|x|1|", "", ErrProtocol},
		{"unknown-for-ipv6", six, "|3|x|1|", "", ErrProtocol},
		{"unknown-and-port-too-large", four, "|3|x|65536|", "", ErrProtocol},
		{"zero", four, "|0|192.0.2.7|2000|", "", ErrProtocol},
		{"no-protocol", four, "||192.0.2.7|2000|", "", errSyntax},
		{"unknown-and-no-port", four, "|3|x|ftp|", "", ErrProtocol},
		{"another-and-no-port", four, "|2|::1|ftp|", "", errSyntax},
		{"zone", six, "|2|fe80::7%eth0|2000|", "", errSyntax},
		{"port-too-large", six, "|2|2001:db8::7|65536|", "", errSyntax},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseExtendedPort(tt.arg, netip.MustParseAddr(tt.client))
			if !errors.Is(err, tt.err) || tt.err == nil && got.String() != tt.want {
				t.Errorf("got %v, %v; want %s, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
