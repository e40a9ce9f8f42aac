package control

import (
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
)

// A commandState holds what the client has set for later commands. REIN and AUTH reset it. A login keeps it, because
// clients also send OPTS before they log in. It shares no memory with the session, so that a fileCommand can work on a
// copy.
type commandState struct {
	offersTLS  bool                    // FEAT lists AUTH TLS
	facts      list.Facts              // facts shown by MLST and MLSD
	algorithm  string                  // hash algorithm of HASH
	parameters wire.TransferParameters // set by TYPE, REST, RANG, ALLO and SITE HASH
	directory  string                  // working directory, set at login
	renaming   *renaming               // set by RNFR, nil after any other command
	copySource *copySource             // set by SITE CPFR
}

// A renaming is the source of a rename, named by RNFR.
type renaming struct {
	shown string // name sent by the client, as shown in replies
	path  string // absolute
	name  pathname.Name
}

// A copySource is the source of SITE CPTO.
type copySource struct {
	Path string // path in the storage, with a final slash if it is a directory
	Name string // sent by the client, as shown in replies
}

func newCommandState(facts list.Facts, offersTLS bool) commandState {
	return commandState{facts: facts, algorithm: wire.DefaultHash, offersTLS: offersTLS}
}

// A dataPort holds what the client has set for data connections, and the connection prepared for the next
// transfer. REIN and AUTH reset it.
type dataPort struct {
	prepared dataconn.Prepared // set by PASV, EPSV, PORT or EPRT
	address  string            // address in the last reply to PASV or EPSV, for the log
	epsvAll  bool              // EPSV ALL was sent, so only EPSV is accepted (RFC 2428, 4)
	sized    bool              // PBSZ was sent or is not needed
	private  bool              // PROT P was sent or is the default
}

// newDataPort returns the data port of a new session. Under implicit TLS data connections are encrypted by
// default, because such clients send neither PBSZ nor PROT.
func newDataPort(implicit bool) dataPort { return dataPort{sized: implicit, private: implicit} }
