package control

import (
	"strings"

	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// settings are what the client has said about the commands that follow. REIN and AUTH begin with new ones; a login
// keeps them, because clients send OPTS and PROT before it too.
type settings struct {
	facts     list.Facts // of MLST and MLSD
	algorithm string     // of HASH

	sized   bool // PBSZ was sent, or need not be
	private bool // PROT P
	epsvAll bool // after EPSV ALL nothing else is accepted (RFC 2428 4)

	renaming   *renaming   // of RNFR, nil after another command
	copySource *copySource // of SITE CPFR
	next       prepared
}

// A prepared is what commands have prepared for the next transfer, which takes it.
type prepared struct {
	parameters wire.TransferParameters // of TYPE, REST, RANG and ALLO
	data       dataconn.Prepared       // of PASV, EPSV, PORT and EPRT
	address    string                  // what the last reply to PASV or EPSV has told, for the log
}

// port is that of a passive data connection, as a text, and empty for an active one.
func (p *prepared) port() string { return p.address[strings.LastIndexByte(p.address, ':')+1:] }

// newSettings are what counts before a client has said anything. Where TLS comes with the control connection, data
// connections are under TLS too: there clients send neither PBSZ nor PROT.
func newSettings(facts list.Facts, implicit bool) settings {
	return settings{facts: facts, algorithm: wire.DefaultHash, sized: implicit, private: implicit}
}

// take is what a transfer takes. Only TYPE stays for the next one.
func (s *settings) take() prepared {
	p := s.next
	s.next = prepared{parameters: p.parameters.AfterTransfer()}
	return p
}

// giveBack takes the data connection back that a transfer has not used.
func (s *settings) giveBack(p prepared) { s.next.data, s.next.address = p.data, p.address }
