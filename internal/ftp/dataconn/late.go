package dataconn

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// lateFor is how long a connection may come after its session has ceased to wait. Linux repeats a SYN for 127
// seconds, and a load balancer may hold a connection.
const lateFor = 3 * time.Minute

// latePorts are ports to which the clients of an address have not connected. A connection may still come, and nothing
// in it says for which session it is. So other sessions of the address get other ports.
type latePorts map[uint16]*latePort

// A latePort is when the last wait on a port has ended, and what forgets that.
type latePort struct {
	at    time.Time
	timer *time.Timer
}

// oldestFirst are the ports in the order of their times.
func (p latePorts) oldestFirst() []uint16 {
	return slices.SortedFunc(maps.Keys(p), func(a, b uint16) int { return p[a].at.Compare(p[b].at) })
}

// expectLate notes for some time that a connection of a client may still come to a port. The mutex is locked.
func (p *Ports) expectLate(client netip.Addr, port uint16) {
	if p.late[client] == nil {
		p.late[client] = make(latePorts)
	}
	late := p.late[client][port]
	if late == nil {
		late = &latePort{}
		late.timer = time.AfterFunc(lateFor, func() { p.forgetLate(client, port) })
		p.late[client][port] = late
	}
	late.at = time.Now()
	late.timer.Reset(lateFor)
}

func (p *Ports) forgetLate(client netip.Addr, port uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if late := p.late[client][port]; late == nil || time.Since(late.at) < lateFor { // another wait has just ended
		return
	}
	if delete(p.late[client], port); len(p.late[client]) == 0 {
		delete(p.late, client)
	}
}
