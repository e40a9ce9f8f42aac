//go:build goftp

// Package goftp replaces main_test.go in the tests of goftp, so that they use this server instead of starting
// others.
package goftp

import "os"

var goftpConfig = Config{User: os.Getenv("FTP_USER"), Password: os.Getenv("FTP_PASSWORD")}

// The tests use all addresses. They use the address of a specific server for workarounds.
var (
	ftpdAddrs        = []string{"127.0.0.1:" + os.Getenv("FTP_PORT"), "[::1]:" + os.Getenv("FTP_PORT")}
	pureAddrs        = ftpdAddrs
	proAddrs         = ftpdAddrs[:1]
	implicitTLSAddrs = []string{"127.0.0.1:" + os.Getenv("FTP_IMPLICIT"), "[::1]:" + os.Getenv("FTP_IMPLICIT")}
)

// startPureFTPD starts nothing.
func startPureFTPD([]string, string) (func(), error) { return func() {}, nil }
