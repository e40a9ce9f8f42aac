package control

import (
	"context"
	"net"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/dataconn"
)

// anyone is a backend that lets everybody in.
type anyone struct{ Backend }

func (anyone) Login(context.Context, *LoginRequest) (*Login, error) {
	return &Login{Tenant: &Tenant{}}, nil
}

// TestEngineWithoutPorts: where all the ports are in use that the engine tries, it
// listens on another.
func TestEngineWithoutPorts(t *testing.T) {
	busy, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := uint16(busy.Addr().(*net.TCPAddr).Port)
	s, _ := quietSession(t, loadBundle(t), language.English)
	s.server.cfg.Backend = anyone{}
	if err := s.startEngine(); err != nil {
		t.Fatal(err)
	}
	defer s.stopEngine()
	for _, step := range []struct {
		command string
		code    int
	}{{"USER alice", 331}, {"PASS", 230}} {
		if err := s.silently(step.command, step.code); err != nil {
			t.Fatal(err)
		}
	}
	s.engine.ports = dataconn.PortRange{First: port, Last: port} //, port}
	if err := s.silently("EPSV", 229); err == nil {
		t.Error("the engine listens on a port that is in use")
	}
	if err := s.listen(); err != nil {
		t.Error(err)
	}
}
