package relay

import (
	"net/netip"
	"sync"

	"github.com/babelftp/babelftp/internal/base/limits"
)

// maxRelays bounds the relays of a replica. Each takes two descriptors and up to 64 KiB.
const maxRelays = 4096

// slots count relays by the networks of their clients. The zero value has none.
type slots struct {
	mu        sync.Mutex
	all       int
	byNetwork map[netip.Prefix]int
}

// enter takes a slot for a client, unless it has its share of what the clients of other networks leave. leave gives
// it back.
func (s *slots) enter(client netip.Addr) (leave func(), ok bool) {
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
	return func() { s.leave(network) }, true
}

func (s *slots) leave(network netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byNetwork[network]--; s.byNetwork[network] == 0 {
		delete(s.byNetwork, network)
	}
}
