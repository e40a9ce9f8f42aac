package control_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestLogin(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.MaxLogins = 3 })
	t.Run("accepted", func(t *testing.T) {
		c := s.connect()
		if r := c.do("USER demo", "331 "); !strings.Contains(r, "demo") {
			t.Errorf("331 does not name the user: %q", r)
		}
		c.do("PASS demo", "230 ")
		c.do("PWD", `257 "/" `)
		c.do("USER demo", "530 ")
		c.do("PASS demo", "530 ")
		c.do("HOST ftp.example.com", "503 ")
		c.do("QUIT", "221 ")
		c.WantClosed()
	})
	t.Run("refused-then-accepted", func(t *testing.T) {
		c := s.connect()
		c.do("PASS demo", "503 ")
		c.do("USER demo", "331 ")
		c.do("PASS wrong", "530 ")
		c.do("PASS demo", "503 ")
		c.do("USER demo", "331 ")
		c.do("PASS demo", "230 ")
		c.do("PWD", "257 ")
	})
	t.Run("refused-too-often", func(t *testing.T) {
		c := s.connect()
		for _, code := range []string{"530 ", "530 ", "421 "} {
			c.do("USER demo", "331 ")
			c.do("PASS wrong", code)
		}
		c.WantClosed()
	})
	t.Run("not-decided", func(t *testing.T) {
		c := s.connect()
		c.do("USER broken", "331 ")
		if r := c.do("PASS demo", "421 "); strings.Contains(r, "EOF") {
			t.Errorf("the reply shows the internal cause: %q", r)
		}
		c.WantClosed()
	})
	t.Run("needed-first", func(t *testing.T) {
		c := s.connect()
		for _, command := range []string{"PWD", "CWD x", "LIST", "STOR x", "RETR x", "DELE x", "TYPE I", "EPSV", "PASV",
			"PORT 127,0,0,1,200,1", "REST 1", "SITE HELP", "STAT x", "MLST", "RNFR x", "RNTO x", "MKD x", "SIZE x",
			"STOU", "ALLO 1", "MFMT 20260101000000 x", "MFF Modify=20260101000000; x"} {
			c.do(command, "530 ")
		}
		for _, command := range []string{"NOOP", "SYST", "FEAT", "HELP", "STAT", "LANG", "OPTS UTF8 ON", "CLNT x"} {
			c.do(command, "2")
		}
	})
}

func TestMalformedCommands(t *testing.T) {
	c := newSite(t, nil).login()
	c.Store("keep", "x")
	for command, want := range map[string]string{
		"":                                  "500 ",
		" NOOP":                             "500 ",
		"FOO keep":                          "500 ",
		"SMNT x":                            "502 ",
		"TYPE E":                            "504 ",
		"MODE B":                            "504 ",
		"CWD nothing":                       "550 ",
		"CWD keep":                          "550 ",
		"MKD /":                             "550 ",
		"SIZE nothing":                      "550 ",
		"XXQUIT":                            "500 ",
		"ÉSTAT":                             "500 ",
		"ſize keep":                         "500 ",
		strings.Repeat("A", 5000):           "500 ",
		"SIZE " + strings.Repeat("A", 5000): "500 ",
		"DELE":                              "501 ",
		"DELE ":                             "501 ",
		"RMD":                               "501 ",
		"RNFR":                              "501 ",
		"STOR":                              "501 ",
		"CWD":                               "501 ",
		"CWD ":                              "250 ", // sent by cameras that have no directory configured
		"PWD ":                              "257 ",
		"FEAT ":                             "211",
		"TYPE I ":                           "200 ",
		"MODE s ":                           "200 ",
		"STRU F ":                           "200 ",
		"STRU FF":                           "504 ",
		"PWD x":                             "501 ",
		"QUIT x":                            "501 ",
		"REST 99999999999999999999":         "501 ",
		"ALLO 99999999999999999999":         "200 ",
		"ALLO x":                            "501 ",
		"ALLO -5":                           "501 ",
		"ALLO +5":                           "501 ",
		"ALLO 5 x":                          "501 ",
		"ALLO 5 R":                          "501 ",
		"ALLO 5 R x":                        "501 ",
		"allo 5 r 2":                        "200 ",
		"TYPE A T":                          "504 ",
		"type l 8":                          "200 ",
		"PORT 1,2,3":                        "501 ",
		"PORT 127,0,0,1,999,1":              "501 ",
		"PORT 127,0,0,1,+9,1":               "501 ",
		"SITE FOO":                          "502 ",
		"SITE CHMOD":                        "502 ",
		"SITE MKDIR":                        "501 ",
		"HELP FOO":                          "502 ",
		"AUTH TL\u017f":                     "504 ", // in Unicode the last letter folds to S
		"SITE M\u212aDIR x":                 "502 ", // in Unicode the third letter folds to K
		"SIZE \xc0\xae":                     "501 ",
		"CWD /\xc0\xae\xc0\xae/":            "501 ",
		"STOR \xed\xa0\x80":                 "501 ",
		"STOR a\x00b":                       "553 ",
		"STOR " + strings.Repeat("a", 1025): "553 ",
		"STOR dir/":                         "550 ",
		"STOR .":                            "550 ",
		"STOR dir/..":                       "550 ",
		"APPE dir/.":                        "550 ",
		"RMD /":                             "550 ",
		"DELE /":                            "550 ",
		"RNFR /":                            "550 ",
		"DELE nothing":                      "550 ",
	} {
		c.do(command, want)
	}
	c.do("SIZE keep", "213 1")
}

// Trailing spaces belong to a pathname, but not to other arguments.
func TestSpaceAtTheEnd(t *testing.T) {
	c := newSite(t, nil).login()
	c.Store("keep", "x")
	for command, want := range map[string]string{
		"ABOR  ":              "226 ",
		"SYST ":               "215 ",
		"REST 5 ":             "501 ",
		"RANG 0 9 ":           "350 ",
		"ALLO 5 ":             "200 ",
		"EPSV 1 ":             "229 ",
		"EPSV  ":              "229 ",
		"PORT 127,0,0,1,8,1 ": "200 ",
		"EPRT |1|::1|1025| ":  "501 ",
		"OPTS UTF8 ON ":       "200 ",
		"OPTS HASH MD5 ":      "200 ",
		"HELP RETR ":          "214 ",
		"SITE HELP  ":         "214-",
		"SIZE keep ":          "550 ",
		"LANG en ":            "501 ",
	} {
		c.do(command, want)
	}
	c.do("AUTH TLS ", "234 ")
	must.OK(t, c.StartTLS(c.site.tls))
	c.do("PBSZ 0 ", "200 ")
	c.do("PROT P ", "200 ")
}

// Arguments of the maximum length do not end the session, neither before nor after login.
func TestLongestArguments(t *testing.T) {
	s := newSite(t, nil)
	_, verbs, _ := strings.Cut(s.connect().do("HELP", "214-"), "\n")
	for _, verb := range strings.Fields(verbs[:strings.LastIndexByte(verbs, '\n')]) {
		for _, fill := range []string{"a", "\x10", "\r\x00", "\xff\xff", "é", "/", " "} {
			for _, c := range []*client{s.connect(), s.login()} {
				line := verb + " " + strings.Repeat(fill, wire.MaxLine)
				line = line[:wire.MaxLine+strings.Count(fill, "\x00")*wire.MaxLine/2] // NUL does not count
				c.write(line + "\r\n")
				switch r := c.reply(); r[:3] {
				case "221", "234":
				case "421":
					t.Errorf("%s with many %q: %s", verb, fill, r)
				default:
					c.do("NOOP", "200 ")
				}
				_ = c.Close()
			}
		}
	}
}

// The verbs of RFC 775, which RFC 1123, 4.1.3.1 requires, are synonyms of the usual verbs.
func TestOldNames(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("XMKD d", `257 "/d" `)
	c.do("XCWD d", "250 ")
	c.do("XPWD", `257 "/d" `)
	c.do("XCUP", "250 ")
	c.do("XPWD", `257 "/" `)
	c.do("XRMD d", "250 ")
	c.do("XCUP x", "501 Syntax: XCUP")
}

// TestPipelining sends all commands at once and then byte by byte. The replies must come in the order of the
// commands.
func TestPipelining(t *testing.T) {
	s := newSite(t, nil)
	script := "NOOP\r\nUSER demo\r\nPASS demo\r\nMKD /a\r\nCWD a\r\nPWD\r\nFOO\r\nTYPE A\r\n" +
		strings.Repeat("NOOP\r\n", 200) + "RMD /a\r\nQUIT\r\n"
	replies := []string{"200", "331", "230", "257", "250", `257 "/a"`, "500", "200"}
	for range 200 {
		replies = append(replies, "200")
	}
	replies = append(replies, "250", "221")
	t.Run("at-once", func(t *testing.T) {
		c := s.connect()
		c.write(script)
		for _, want := range replies {
			c.expect(want)
		}
		c.WantClosed()
	})
	t.Run("byte-by-byte", func(t *testing.T) {
		c := s.connect()
		go func() {
			for _, b := range []byte(script) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
			}
		}()
		for _, want := range replies {
			c.expect(want)
		}
	})
}

func TestTLS(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.TLSRequired = true })
	c := s.connect()
	c.do("USER demo", "530 ")
	c.startTLS()
	c.do("AUTH TLS", "503 ")
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	c.do("EPSV", "229 ")
	c.do("LIST", "521 ")
	c.do("PROT P", "503 ")
	c.do("PBSZ 4294967295", "200 PBSZ=0")
	c.do("PROT C", "534 ")
	c.do("PROT P", "200 ")
	c.TLS = s.tls
	c.Store("secret", "under TLS")
	c.Want("under TLS", "RETR secret")
	c.Store("empty", "")
	c.Want("", "RETR empty")
	c.Want("empty\r\nsecret\r\n", "NLST")
	c.do("MKD none", "257 ")
	c.Want("", "LIST none")
}

// TestLongCommandLine: a command line that is too long gets a reply and the session continues, with and without
// TLS.
func TestLongCommandLine(t *testing.T) {
	for _, name := range []string{"in-the-clear", "tls-1.2", "tls-1.3"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			c := s.connect()
			for _, v := range versions {
				if v.name == name {
					s.tls.MaxVersion = v.version
					c.startTLS()
				}
			}
			for _, length := range []int{4100, 64 << 10} { // more than a TLS record of 16 KiB too
				c.do("USER "+strings.Repeat("a", length-len("USER ")), "500 ")
				c.do("NOOP", "200 ")
			}
			c.do("USER demo", "331 ")
			c.do("PASS demo", "230 ")
			c.do("MKD "+strings.Repeat("a", 4100), "500 ")
			c.do("PWD", "257 ")
		})
	}
}

// TestCommandsBehindAUTH: commands sent in the clear after AUTH are not run under TLS.
func TestCommandsBehindAUTH(t *testing.T) {
	s := newSite(t, nil)
	c := s.connect()
	c.write("AUTH TLS\r\nUSER demo\r\n")
	c.expect("234 ")
	c.Close()
	c = s.connect()
	c.startTLS()
	c.do("PASS demo", "503 ")
}

// Without a certificate, TLS is unavailable.
func TestNoCertificate(t *testing.T) {
	c := newSite(t, func(cfg *control.Config) { cfg.TLS = nil }).connect()
	c.do("AUTH TLS", "431 This server has no TLS certificate.")
	c.do("NOOP", "200 ")
}

func TestImplicitTLS(t *testing.T) {
	s := newSite(t, nil)
	listener := must.Listen(t)
	served := make(chan error, 1)
	go func() { served <- s.server.ServeTLS(context.Background(), listener) }()
	conn, err := tls.Dial("tcp", listener.Addr().String(), s.tls)
	must.OK(t, err)
	defer conn.Close()
	c := &client{Client: ftptest.New(t, conn), t: t, site: s}
	c.expect("220 ")
	for range 2 {
		c.TLS = s.tls // data connections are encrypted without PBSZ and PROT
		c.do("USER demo", "331 ")
		c.do("PASS demo", "230 ")
		c.Store("f", "x")
		c.Want("x", "RETR f")
		c.TLS = nil
		c.do("PROT C", "200 ")
		c.Store("f", "in the clear")
		c.TLS = s.tls
		c.do("PROT P", "200 ")
		c.Store("f", "x")
		c.do("PROT C", "200 ")
		c.do("REIN", "220 ") // implicit TLS never stops, neither for data connections
	}

	plain := must.Dial(t, listener.Addr().String())
	must.Write(t, plain, "USER demo\r\n")
	if b, _ := io.ReadAll(plain); strings.HasPrefix(string(b), "220") {
		t.Errorf("got a greeting without TLS: %q", b)
	}
	s.shutdown()
	if err := <-served; err != nil {
		t.Errorf("ServeTLS: %v", err)
	}
}

func TestIdleTimeout(t *testing.T) {
	c := newSite(t, func(cfg *control.Config) { cfg.IdleTimeout = 200 * time.Millisecond }).dial()
	c.expect("220 ")
	c.expect("421 ")
	c.WantClosed()
}

func TestShutdown(t *testing.T) {
	s := newSite(t, nil)
	idle := s.connect()
	idle.do("LANG fr", "200 ")
	busy := s.login()
	data := busy.Data()
	busy.do("STOR slow", "150 ")

	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		ended <- s.server.Shutdown(ctx)
	}()
	if r := idle.expect("421 "); strings.Contains(r, "server") {
		t.Errorf("got 421 in another language than French: %q", r)
	}
	idle.WantClosed()
	late := s.dial()
	late.expect("421 ")
	late.WantClosed()
	must.Write(t, data, "all of it")
	data.Close()
	busy.expect("226 ")
	busy.expect("421 ")
	if err := <-ended; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := net.Dial("tcp", s.address); err == nil {
		t.Error("accepted a connection after the shutdown")
	}
	if keys := s.objects(); len(keys) != 1 {
		t.Errorf("unexpected objects %q", keys)
	}
}

// TestEndOfShutdown: when the timeout ends, the server cancels running transfers, notifies their clients and
// stores nothing.
func TestEndOfShutdown(t *testing.T) {
	s := newSite(t, nil)
	upload, download := s.login(), s.login()
	upload.Store("f", strings.Repeat("x", 32<<20)) // more than the sockets hold
	sent, received := upload.Data(), download.Data()
	defer sent.Close()
	defer received.Close()
	upload.do("STOR slow", "150 ")
	download.do("RETR f", "150 ")
	must.Write(t, sent, "a part of it")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.server.Shutdown(ctx); !errors.Is(err, context.Canceled) ||
		!strings.HasPrefix(err.Error(), "2 sessions") {
		t.Errorf("Shutdown: %v", err)
	}
	for _, c := range []*client{upload, download} {
		c.expect("426 ")
		c.expect("421 ")
		c.WantClosed()
	}
	if keys := s.objects(); len(keys) != 1 {
		t.Errorf("unexpected objects %q", keys)
	}
}
