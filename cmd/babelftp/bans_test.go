package main

import (
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A query is a command for a running server and its expected output.
type query struct {
	args string // SOCKET is replaced by the socket, FILE by a configuration with it
	code int
	want string // part of the output
}

// oneTenant is a server with the tenant acme.
type oneTenant struct{ admin.Source }

func (oneTenant) Tenants([]report.SessionInfo) []admin.Tenant { return []admin.Tenant{{Name: "acme"}} }

// runQueries runs commands against a server with bans and a debug switch. The first one runs before the
// server starts.
func runQueries(t *testing.T, command string, all []query) {
	t.Helper()
	dir := servicetest.SocketDir(t)
	socket := filepath.Join(dir, "admin.sock")
	file := filepath.Join(dir, "babelftp.yaml")
	text := "admin_socket: admin.sock\n" + `tenants: {acme: {bucket: acme-data, users: {alice: {password_hash: "` +
		validHash + `"}}}}`
	must.WriteFile(t, file, text)
	if code, _, stderr := output(t, "", command, "--socket", socket); code != 1 ||
		!strings.Contains(stderr, "cannot connect to the server at "+socket) {
		t.Errorf("without a server: exit code %d: %s", code, stderr)
	}
	l, err := admin.Listen(t.Context(), socket)
	must.OK(t, err)
	defer l.Close()
	list := bans.New(config.Bans{Time: time.Hour}, config.Networks{}, slog.New(slog.DiscardHandler), func(bans.Ban) {})
	go serveSocket(l, admin.NewHandler(admin.Options{Source: oneTenant{}, Bans: list, Debug: &sessionlog.Switch{},
		Log: slog.New(slog.DiscardHandler)}))
	for _, step := range all {
		args := strings.Fields(command + " " + strings.NewReplacer("SOCKET", socket, "FILE", file).Replace(step.args))
		code, stdout, stderr := output(t, "", args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit code %d: %s%s, want %q", args, code, stdout, stderr, step.want)
		}
	}
}

// serveSocket serves the API on an admin socket until the listener is closed.
func serveSocket(l net.Listener, api http.Handler) {
	srv := http.Server{Handler: api, ConnContext: admin.WithPeer, ReadHeaderTimeout: time.Minute}
	_ = srv.Serve(l)
}

func TestBans(t *testing.T) {
	runQueries(t, "bans", []query{
		{"list --socket SOCKET", 0, "NAME  UNTIL  REASON\n"},
		{"add 203.0.113.7 --config FILE", 0, "203.0.113.7 is banned until "},
		{"add alice@acme --time 24h --socket SOCKET", 0, "alice@acme is banned until "},
		{"list --socket SOCKET", 0, "an administrator\nalice@acme   "},
		{"remove 203.0.113.7 --socket SOCKET", 0, "the ban of 203.0.113.7 is lifted\n"},
		{"remove 203.0.113.7 --socket SOCKET", 1, "no ban of 203.0.113.7 on this replica: see babelftp bans list"},
		{"add alice --socket SOCKET", 1, `"alice" is not an address, network or user`},
		{"add --socket SOCKET", 2, "expected one address"},
		{"list --socket SOCKET --config FILE", 2, "cannot be combined"},
		{"--json --socket SOCKET", 0, `"name": "alice@acme"`},
		{"list --json --socket SOCKET", 0, `"reason": "an administrator"`},
		{"add alice@acme --json --socket SOCKET", 2, "unknown flag: --json"},
		{"lift", 2, `unknown command "lift"`},
	})
}
