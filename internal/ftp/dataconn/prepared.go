package dataconn

// A Prepared holds the data connection that PASV, EPSV, PORT or EPRT has prepared for the next transfer. The zero
// value is empty.
type Prepared struct {
	source   Source
	returned bool // a transfer failed before it used the source
}

// Prepare stores a source for the next transfer. The previous source must be closed.
func (p *Prepared) Prepare(source Source) { *p = Prepared{source: source} }

// Return gives back a source returned by Take. If the transfer is nil or failed before it opened the data
// connection, the source is kept for the next transfer. lynx depends on that: it tries RETR on a directory, and
// then LIST on the same data connection. Otherwise Return closes the source.
func (p *Prepared) Return(source Source, t *Transfer) {
	if t.used() {
		source.Close()
		return
	}
	*p = Prepared{source: source, returned: true}
}

// Take returns the source for a transfer, or nil. The caller must pass it to Return.
func (p *Prepared) Take() Source {
	source := p.source
	p.source = nil
	return source
}

// Close closes a source that no transfer has taken. It returns an error for the log if the client never connected
// to its passive port, unless a transfer has failed before.
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
