package dataconn

// A Prepared holds the data connection that PASV, EPSV, PORT or EPRT has prepared for the
// next transfer. The zero value holds none.
type Prepared struct{ source Source }

// Prepare keeps a source for the next transfer, and closes the one that it had.
func (p *Prepared) Prepare(source Source) {
	p.Close()
	p.source = source
}

// Take returns the source to the transfer, which must close it. It returns nil where
// there is none.
func (p *Prepared) Take() Source {
	source := p.source
	p.source = nil
	return source
}

// Close closes the source if no transfer has taken it.
func (p *Prepared) Close() {
	if p.source != nil {
		p.source.Close()
		p.source = nil
	}
}
