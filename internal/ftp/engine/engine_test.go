package engine

import (
	"net"
	"testing"

	"github.com/babelftp/babelftp/internal/base/netaddr"
)

// TestEngineWithoutPorts: where all the ports are in use that the engine tries, it
// listens on another.
func TestEngineWithoutPorts(t *testing.T) {
	busy, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := uint16(busy.Addr().(*net.TCPAddr).Port)
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 21}
	e, err := Start(t.Context(), Config{
		Local: local, Remote: local,
		Login:       func() (string, error) { return "/", nil },
		Placeholder: &Placeholder{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	e.op = &Operation{}
	for _, step := range []struct {
		command string
		code    int
	}{{"USER alice", 331}, {"PASS", 230}} {
		if err := e.internalCommand(step.command, step.code); err != nil {
			t.Fatal(err)
		}
	}
	e.ports = netaddr.PortRange{First: port, Last: port} //, port}
	if err := e.internalCommand("EPSV", 229); err == nil {
		t.Error("the engine listens on a port that is in use")
	}
	if err := e.listen(); err != nil {
		t.Error(err)
	}
}
