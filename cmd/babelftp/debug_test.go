package main

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/bans"
	"github.com/babelftp/babelftp/internal/config/limit"
	"github.com/babelftp/babelftp/internal/sessionlog"
)

func TestDebug(t *testing.T) {
	dir, err := os.MkdirTemp("", "debug") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "admin.sock")
	if code, _, stderr := output(t, "", "debug", "--socket", socket); code != 1 || !strings.Contains(stderr, "no server answers at "+socket) {
		t.Errorf("without a server: exit code %d: %s", code, stderr)
	}
	l, err := admin.Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	list := bans.New(limit.Bans{}, limit.Networks{}, slog.New(slog.DiscardHandler), func(string) {})
	go func() {
		_ = http.Serve(l, admin.NewHandler(admin.Options{Bans: list, Debug: &sessionlog.Switch{}, Log: slog.New(slog.DiscardHandler)}))
	}() // until the listener is closed
	for _, step := range []struct {
		args string
		code int
		want string // in the output
	}{
		{"--socket SOCKET", 0, "ADDRESS  TENANT  USER  UNTIL\n"},
		{"--socket SOCKET --address 192.0.2.7 --for 5m", 0, "192.0.2.7/32  any     any   20"},
		{"--socket SOCKET --address 192.0.2.0/24 --tenant acme --user alice", 0, "192.0.2.0/24  acme    alice  20"},
		{"--socket SOCKET", 0, "\n192.0.2.0/24  acme    alice  20"},
		{"--socket SOCKET --off", 0, "2 ended\n"},
		{"--socket SOCKET --off", 0, "0 ended\n"},
		{"--socket SOCKET --address scanner", 1, `"scanner" is neither an address like 192.0.2.7 nor a network`},
		{"--socket SOCKET --tenant acme --for 25h", 1, "the time 25h0m0s is out of range"},
		{"--socket SOCKET --tenant acme --for tomorrow", 2, "invalid argument"},
		{"--socket SOCKET --for 5m", 2, "--for needs --address, --tenant or --user"},
		{"--socket SOCKET --off --tenant acme", 2, "--off ends all"},
		{"acme", 2, `unexpected argument "acme"`},
	} {
		args := strings.Fields("debug " + strings.ReplaceAll(step.args, "SOCKET", socket))
		code, stdout, stderr := output(t, "", args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit code %d: %s%s, want %q", args, code, stdout, stderr, step.want)
		}
	}
}
