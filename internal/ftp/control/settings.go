package control

import (
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// settings hold what the client has said about the commands that follow. REIN and AUTH start with new ones, but a login
// keeps them, because clients send OPTS before it too. They are values only, so that a file command can work on a copy.
type settings struct {
	offersTLS  bool                    // FEAT lists AUTH TLS
	facts      list.Facts              // of MLST and MLSD
	algorithm  string                  // of HASH
	parameters wire.TransferParameters // of TYPE, REST, RANG and ALLO
	directory  string                  // the working directory, once the user has logged in
	renaming   *renaming               // of RNFR, nil after another command
	copySource *copySource             // of SITE CPFR
}

// A renaming is the source that RNFR has named.
type renaming struct {
	shown string // the name that the client has given, as a reply repeats it
	path  string // absolute
	name  pathname.Name
}

// A copySource is what SITE CPTO copies.
type copySource struct {
	Path string // where the storage has it, with a final slash for a directory only
	Name string // that the client has given, as a reply repeats it
}

func newSettings(facts list.Facts, offersTLS bool) settings {
	return settings{facts: facts, algorithm: wire.DefaultHash, offersTLS: offersTLS}
}

// A dataPort holds what the client has said about data connections, and the connection that is ready for the next
// transfer. REIN and AUTH start with a new one.
type dataPort struct {
	prepared dataconn.Prepared // by PASV, EPSV, PORT or EPRT
	address  string            // that the last reply to PASV or EPSV has named, for the log
	epsvAll  bool              // after EPSV ALL nothing else is accepted (RFC 2428 4)
	sized    bool              // PBSZ was sent, or need not be
	private  bool              // PROT P
}

// newDataPort returns the port of a new session. Under implicit TLS data connections are encrypted too, because such
// clients send neither PBSZ nor PROT.
func newDataPort(implicit bool) dataPort { return dataPort{sized: implicit, private: implicit} }
