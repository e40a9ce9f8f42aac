package relay

import (
	"net/netip"
	"sync"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// maxRelays limits the relays of a replica. Each uses two descriptors and up to 64 KiB.
const maxRelays = 4096

// A relayLimit counts relays by the network of the client. The zero value is empty.
type relayLimit struct {
	mu        sync.Mutex
	all       int
	byNetwork map[netip.Prefix]int
}

// acquire counts a relay for a client, unless its network already has its share of maxRelays. The caller must call
// release when the relay ends.
func (s *relayLimit) acquire(client netip.Addr) (release func(), ok bool) {
	network := limits.Network(client)
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.byNetwork[network]
	if s.all >= maxRelays || own >= limits.Share(maxRelays, s.all-own) {
		return nil, false
	}
	if s.byNetwork == nil {
		s.byNetwork = make(map[netip.Prefix]int)
	}
	s.all++
	s.byNetwork[network]++
	return func() { s.release(network) }, true
}

func (s *relayLimit) release(network netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byNetwork[network]--; s.byNetwork[network] == 0 {
		delete(s.byNetwork, network)
	}
}
