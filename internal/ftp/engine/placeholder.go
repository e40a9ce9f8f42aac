package engine

import (
	"net"
	"sync"
)

// A Placeholder is a TCP listener to which nothing can connect. All engines of a
// server share it, because each wants to set deadlines on a listener of its own. The zero
// value is ready.
type Placeholder struct {
	mu       sync.Mutex
	listener *net.TCPListener // nil until it is needed
}

// get makes the listener when it is first asked for. An error may pass: it takes a
// descriptor.
func (p *Placeholder) get() (*net.TCPListener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener == nil {
		listener, err := unconnectable()
		if err != nil {
			return nil, err
		}
		p.listener = listener
	}
	return p.listener, nil
}

// Close closes the listener.
func (p *Placeholder) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
}
