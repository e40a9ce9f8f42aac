package dataconn

// A Prepared holds the data connection that PASV, EPSV, PORT or EPRT has prepared for the
// next transfer. The zero value holds none.
type Prepared struct{ source Source }

// Prepare keeps a source for the next transfer, which must have been closed before.
func (p *Prepared) Prepare(source Source) { p.source = source }

// Take returns the source to the transfer, which must close it. It returns nil where
// there is none.
func (p *Prepared) Take() Source {
	source := p.source
	p.source = nil
	return source
}

// A passiveSource is a source that waits for the client.
type passiveSource interface {
	// Missing returns what the log should have, if the client has not connected.
	Missing() error
}

// Close closes the source if no transfer has taken it. The error is for the log: the client has not connected to the passive port that it got.
func (p *Prepared) Close() (missing error) {
	if p.source == nil {
		return nil
	}
	if waited, ok := p.source.(passiveSource); ok {
		missing = waited.Missing()
	}
	p.source.Close()
	p.source = nil
	return missing
}
