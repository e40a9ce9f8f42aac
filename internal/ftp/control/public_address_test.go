package control_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// PASV shows the address of a host name, and another address to clients in some networks. HOST accepts this
// address. While the name cannot be resolved, PASV fails with a temporary error and EPSV works.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	outside, inside := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("10.0.0.7")
	host := func(addr netip.Addr) *netaddr.Host {
		return netaddr.NewHost("ftp.example", func(context.Context, string) ([]netip.Addr, error) {
			if !addr.IsValid() {
				return nil, errors.New("the name server does not answer")
			}
			return []netip.Addr{addr}, nil
		})
	}
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	for name, tc := range map[string]struct {
		public dataconn.Public
		want   string
	}{
		"reached": {dataconn.Public{}, "(127,0,0,1,"},
		"name":    {dataconn.Public{Host: host(outside)}, "(203,0,113,7,"},
		"network": {dataconn.Public{Host: host(outside),
			Networks: map[netip.Prefix]*netaddr.Host{loopback: host(inside)}}, "(10,0,0,7,"},
		"no-address": {dataconn.Public{Host: host(netip.Addr{})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(cfg *control.Config) { cfg.PublicAddress = tc.public })
			c := s.login()
			if tc.want == "" {
				c.do("LANG fr", "200 ")
				c.do("PASV", "425 Le serveur ne connaît pas son adresse publique pour le moment\u00a0; veuillez utiliser EPSV.")
				c.do("EPSV", "229 ")
				return
			}
			if got := c.do("PASV", "227 "); !strings.Contains(got, tc.want) {
				t.Errorf("PASV: got %q, want %s", got, tc.want)
			}
			shown, _ := tc.public.For(t.Context(), netip.MustParseAddr("127.0.0.1"))
			if shown.IsValid() {
				s.connect().do("HOST "+shown.String(), "220")
			}
		})
	}
}

// PASV cannot return an IPv6 address (RFC 2428, 1).
func TestPASVOverIPv6(t *testing.T) {
	s := newSite(t, nil)
	listener, err := net.Listen("tcp", "[::1]:0")
	must.OK(t, err)
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(context.WithoutCancel(t.Context()), listener) }()
	conn := must.Dial(t, listener.Addr().String())
	c := &client{Client: ftptest.New(t, conn), t: t, site: s}
	c.expect("220 ")
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	c.do("LANG en", "200 ")
	c.do("PASV", "425 PASV works over IPv4 only; please use EPSV.")
	c.do("EPSV", "229 ")
	s.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
