package dataconn

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// lateTTL limits how late a connection may arrive after its session has stopped waiting. Linux repeats a SYN for 127
// seconds, and a load balancer may hold a connection back.
const lateTTL = 3 * time.Minute

// latePorts holds the ports to which the clients with an address did not connect. Such a connection may still
// arrive, and nothing in it identifies its session, so other sessions from this address get other ports.
type latePorts map[uint16]*latePort

// A latePort records when the last wait on a port ended. The timer removes it.
type latePort struct {
	at    time.Time
	timer *time.Timer
}

// oldestFirst returns the ports sorted by time.
func (p latePorts) oldestFirst() []uint16 {
	return slices.SortedFunc(maps.Keys(p), func(a, b uint16) int { return p[a].at.Compare(p[b].at) })
}

// expectLate records that a connection from a client may still arrive at a port. The mutex must be locked.
func (p *Ports) expectLate(client netip.Addr, port uint16) {
	if p.late[client] == nil {
		p.late[client] = make(latePorts)
	}
	late := p.late[client][port]
	if late == nil {
		late = &latePort{}
		late.timer = time.AfterFunc(lateTTL, func() { p.forgetLate(client, port) })
		p.late[client][port] = late
	}
	late.at = time.Now()
	late.timer.Reset(lateTTL)
}

func (p *Ports) forgetLate(client netip.Addr, port uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if late := p.late[client][port]; late == nil || time.Since(late.at) < lateTTL { // another wait has ended since
		return
	}
	if delete(p.late[client], port); len(p.late[client]) == 0 {
		delete(p.late, client)
	}
}
