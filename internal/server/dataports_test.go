package server

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A reload keeps resolved addresses, so that PASV works even if the name server is down. Unused hosts are dropped.
func TestPublicAddressAfterAReload(t *testing.T) {
	p, err := newDataPorts(t.Context(), &config.Config{}, dataPortObserver{}, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	section := func(public, inside string) (x config.Passive) {
		t.Helper()
		var a config.PublicAddress
		for to, text := range map[*config.PublicAddress]string{&x.PublicAddress: public, &a: inside} {
			must.OK(t, to.UnmarshalText([]byte(text)))
		}
		x.PublicAddressByNetwork = map[value.Network]config.PublicAddress{{Prefix: netip.MustParsePrefix(
			"10.0.0.0/8")}: a}
		return x
	}
	before := p.PublicAddress(section("ftp.example.com", "10.0.0.7"))
	after := p.PublicAddress(section("ftp.example.com", "ftp.example.com"))
	if inside := after.Networks[netip.MustParsePrefix("10.0.0.0/8")]; after.Host != before.Host ||
		inside != before.Host {
		t.Error("looked up a host of the previous configuration again")
	}
	p.PublicAddress(section("10.0.0.7", "10.0.0.7"))
	if again := p.PublicAddress(section("ftp.example.com", "10.0.0.7")); again.Host == before.Host {
		t.Error("an unused host is still cached")
	}
}
