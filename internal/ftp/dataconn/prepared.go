package dataconn

// A Prepared holds the data connection that PASV, EPSV, PORT or EPRT has prepared for the
// next transfer. The zero value holds none.
type Prepared struct {
	source   Source
	returned bool // a transfer has failed before it needed the source, and the client may know
}

// Prepare keeps a source for the next transfer, which must have been closed before.
func (p *Prepared) Prepare(source Source) { *p = Prepared{source: source} }

// Return takes back what a transfer has got from Take. Where the transfer was nil or failed before it opened the data
// connection, the next transfer may use it. lynx relies on that: it tries RETR on a directory, and then LIST on the
// same data connection. Otherwise Return closes the source.
func (p *Prepared) Return(source Source, t *Transfer) {
	if t.used() {
		source.Close()
		return
	}
	*p = Prepared{source: source, returned: true}
}

// Take returns the source to the transfer, which must give it back to Return. It returns nil where
// there is none.
func (p *Prepared) Take() Source {
	source := p.source
	p.source = nil
	return source
}

// Close closes the source if no transfer has taken it. The error is for the log: the client has not connected to the
// passive port that it got, and no transfer has failed before.
func (p *Prepared) Close() (missing error) {
	if p.source == nil {
		return nil
	}
	if !p.returned {
		missing = p.source.Missing()
	}
	p.source.Close()
	*p = Prepared{}
	return missing
}
