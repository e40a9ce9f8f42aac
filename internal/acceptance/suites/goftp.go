//go:build goftp

// Package goftp is the file main_test.go of the tests of goftp: instead of starting other servers, they use this one.
package goftp

import "os"

var goftpConfig = Config{User: os.Getenv("FTP_USER"), Password: os.Getenv("FTP_PASSWORD")}

// The tests use all addresses, and those of one server for what they have found to be wrong in another.
var (
	ftpdAddrs        = []string{"127.0.0.1:" + os.Getenv("FTP_PORT"), "[::1]:" + os.Getenv("FTP_PORT")}
	pureAddrs        = ftpdAddrs
	proAddrs         = ftpdAddrs[:1]
	implicitTLSAddrs = []string{"127.0.0.1:" + os.Getenv("FTP_IMPLICIT"), "[::1]:" + os.Getenv("FTP_IMPLICIT")}
)

// startPureFTPD has nothing to start.
func startPureFTPD([]string, string) (func(), error) { return func() {}, nil }
