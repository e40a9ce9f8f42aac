package main

import "testing"

func TestDebug(t *testing.T) {
	t.Setenv("HTTP_PROXY", "socks5://127.0.0.1:1") // connections to a socket must not use a proxy
	runQueries(t, "debug", []query{
		{"--socket SOCKET", 0, "ADDRESS  TENANT  USER  UNTIL\n"},
		{"--socket SOCKET --address 192.0.2.7 --for 5m", 0, "192.0.2.7/32  any     any   20"},
		{"--socket SOCKET --address 192.0.2.0/24 --tenant acme --user alice", 0, "192.0.2.0/24  acme    alice  20"},
		{"--socket SOCKET", 0, "\n192.0.2.0/24  acme    alice  20"},
		{"--socket SOCKET --off", 0, "2 ended\n"},
		{"--socket SOCKET --off", 0, "0 ended\n"},
		{"--socket SOCKET --address scanner", 1, `invalid address "scanner": want an address like 192.0.2.7`},
		{"--socket SOCKET --tenant typo", 1, `unknown tenant "typo": want one of acme`},
		{"--socket SOCKET --tenant acme --for 25h", 1, "invalid duration 25h0m0s"},
		{"--socket SOCKET --tenant acme --for tomorrow", 2, "invalid argument"},
		{"--socket SOCKET --for 5m", 2, "--for requires --address, --tenant or --user"},
		{"--socket SOCKET --off --tenant acme", 2, "--off cannot be combined"},
		{"acme", 2, `unexpected argument "acme"`},
	})
}
