package certs

// SetTicketKeys replaces the keys of TLS session tickets (RFC 8446, section 4.6.1). The first encrypts, and all
// decrypt. Without a call, crypto/tls creates random keys and replaces them daily.
func (s *Set) SetTicketKeys(keys [][32]byte) {
	s.tickets.Store(&keys)
	s.useTicketKeys()
}

// useTicketKeys sets the keys in the current TLS configuration.
func (s *Set) useTicketKeys() {
	if keys, config := s.tickets.Load(), s.Config(); keys != nil && config != nil {
		config.SetSessionTicketKeys(*keys)
	}
}
