package control_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/account"
)

// TestEmptyUploads: a file may be empty, and APPE may append nothing.
func TestEmptyUploads(t *testing.T) {
	s := newSite(t, nil)
	for _, format := range []string{"TYPE I", "TYPE A"} {
		c := s.login()
		c.do(format, "200 ")
		c.Store("full", "content")
		for _, test := range []struct{ command, name, want string }{
			{"STOR empty", "empty", ""}, {"APPE empty", "empty", ""}, {"APPE new", "new", ""}, {"APPE full", "full", "content"},
			{"STOR full", "full", ""},
		} {
			if r := c.upload(test.command, ""); !strings.HasPrefix(r, "226 ") {
				t.Errorf("%s, %s of no bytes: %q", format, test.command, r)
			}
			c.Want(test.want, "RETR "+test.name)
		}
		c.do("DELE new", "250 ")
	}
}

// The data connection of a transfer that failed before it began is used by the next transfer.
func TestDataConnectionOfFailedTransfer(t *testing.T) {
	log := &servicetest.Log{}
	c := newSite(t, func(cfg *control.Config) { cfg.Logger = log.Logger() }).login()
	c.do("MKD dir", "257 ")
	for _, failing := range []string{"RETR dir", "RETR nothing", "LIST nothing"} {
		conn := c.Data()
		c.do(failing, "550 ")
		c.do("NLST", "150 ")
		if names, err := io.ReadAll(conn); string(names) != "dir\r\n" {
			t.Errorf("%s, NLST: %q, %v", failing, names, err)
		}
		c.expect("226 ")
		c.do("NLST", "425 ")

		c.epsvAddress()
		c.do(failing, "550 ")
	}
	c.do("QUIT", "221 ")
	c.WantClosed()
	for _, line := range log.Take() {
		if strings.Contains(line, "no data connection came") {
			t.Errorf("the log lacks the client that saw the failure: %q", line)
		}
	}
}

func TestASCII(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("TYPE A", "200 ")
	c.Store("text", "one\r\ntwo\r\n")
	c.Want("one\r\ntwo\r\n", "RETR text")
	c.do("TYPE I", "200 ")
	c.Want("one\ntwo\n", "RETR text")
	t.Run("large", func(t *testing.T) {
		// Use lines of all lengths, so that every buffer boundary occurs, and one line that is larger than any
		// buffer.
		var text strings.Builder
		for length := range 1500 {
			text.WriteString(strings.Repeat("x", length) + "\n")
		}
		text.WriteString(strings.Repeat("y", 300_000) + "\n")
		stored, sent := text.String(), strings.ReplaceAll(text.String(), "\n", "\r\n")
		c.do("TYPE A", "200 ")
		c.Store("large", sent)
		c.Want(sent, "RETR large")
		c.do("TYPE I", "200 ")
		c.Want(stored, "RETR large")
	})
}

// TestSTOUKeepsTheExtension: some devices send a name with STOU. The new name keeps its extension, from which S3
// and browsers derive the content type.
func TestSTOUKeepsTheExtension(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("MKD d", "257 ")
	for _, test := range []struct{ argument, name, mediaType string }{
		{"", `ftp-STAMP`, "application/octet-stream"},
		{"cam.jpg", `cam-STAMP\.jpg`, "image/jpeg"},
		{"a.tar.gz", `a\.tar-STAMP\.gz`, "application/gzip"},
		{"two words", `two words-STAMP`, "application/octet-stream"},
		{".profile", `\.profile-STAMP`, "application/octet-stream"},
		{"d/cam.jpg", `/d/cam-STAMP\.jpg`, "image/jpeg"},
		{"/cam 2.jpg", `cam 2-STAMP\.jpg`, "image/jpeg"},
	} {
		conn := c.Data()
		opening := c.do(strings.TrimSuffix("STOU "+test.argument, " "), "150 FILE: ")
		_, _ = io.WriteString(conn, "x")
		conn.Close()
		c.expect("226 ")
		name := strings.TrimPrefix(opening, "150 FILE: ")
		if want := strings.Replace(test.name, "STAMP", `\d{8}T\d{6}\.\d{9}`, 1); !regexp.MustCompile(
			"^" + want + "$").MatchString(name) {
			t.Errorf("STOU %s: got %q, want %s", test.argument, name, test.name)
		}
		c.do("OPTS MLST media-type;", "200 ")
		if got, want := c.facts(name), "media-type="+test.mediaType+";"; got != want {
			t.Errorf("STOU %s: got %q, want %q", test.argument, got, want)
		}
	}
	for argument, want := range map[string]string{"d/": "550 ", "..": "550 ", "\xfe": "501 "} {
		conn := c.Data()
		c.do("STOU "+argument, want)
		conn.Close()
	}
}

// TestKeptLineEnds: if the tenant is configured so, TYPE A transfers the bytes unchanged.
func TestKeptLineEnds(t *testing.T) {
	s := newTenantSite(t, loginTo(config.Tenant{Compatibility: config.Compatibility{ASCII: config.KeepLineEnds}}))
	const picture = "\xff\xd8\r\n\n\r\r\n"
	c := s.login()
	c.do("TYPE A", "200 Type set to A (ASCII).")
	c.Store("f", picture)
	c.do("TYPE I", "200 ")
	c.Want(picture, "RETR f")
	c.do("TYPE A", "200 ")
	c.Want(picture, "RETR f")
	c.do("SIZE f", "213 8")
	c.do("REST 6", "350 ")
	c.Want(picture[6:], "RETR f")
}

// TestConnectionAfter150: the server sends 150 once, when the file is open, even if the client opens the data
// connection only after 150 (RFC 959, 4.2.2).
func TestConnectionAfter150(t *testing.T) {
	for _, protected := range []bool{false, true} {
		name := "plain"
		if protected {
			name = "tls"
		}
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			login := s.login
			if protected {
				login = s.loginTLS
			}
			c := login()
			for _, transfer := range []struct{ command, begins, upload, download string }{
				{"STOR f", "150 ", "content", ""},
				{"APPE f", "150 ", "s", ""},
				{"RETR f", "150 ", "", "contents"},
				{"NLST", "150 ", "", "f\r\n"},
				{"STOU g", "150 FILE: g", "new", ""},
			} {
				address := c.epsvAddress()
				c.do(transfer.command, transfer.begins)
				conn := c.dialData(address)
				must.Write(t, conn, transfer.upload)
				if transfer.upload != "" {
					conn.Close()
				} else if got, err := io.ReadAll(conn); string(got) != transfer.download || err != nil {
					t.Errorf("%s: %q, %v", transfer.command, got, err)
				}
				c.expect("226 ")
			}
			c.epsvAddress()
			c.do("RETR nothing", "550 ")
			c.do("RETR f", "150 ")
			c.do("ABOR", "426 ")
			c.expect("226 ")
			c.do("NOOP", "200 ")
		})
	}
}

// TestQUITDuringATransfer: the server ends the session after the transfer (RFC 959, 4.1.1).
func TestQUITDuringATransfer(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	conn := c.Data()
	c.do("STOR f", "150 ")
	c.write("QUIT\r\n")
	must.Write(t, conn, "content")
	conn.Close()
	c.expect("226 ")
	c.expect("221 ")
	c.WantClosed()
	if got := s.login().Transfer("RETR f"); got != "content" {
		t.Errorf("the file has %q", got)
	}
}

func TestActive(t *testing.T) {
	for _, protected := range []bool{false, true} {
		name := "plain"
		if protected {
			name = "tls"
		}
		t.Run(name, func(t *testing.T) {
			c := newSite(t, nil).connect()
			if protected {
				c.startTLS()
				c.protectData()
			}
			c.do("USER demo", "331 ")
			c.do("PASS demo", "230 ")
			listener := must.Listen(t)
			if protected {
				c.do("EPRT |1|127.0.0.1|"+strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)+"|", "200 ")
			} else {
				c.do("PORT "+portArgument(listener.Addr()), "200 ")
			}
			c.do("STOR f", "150 ")
			conn, err := listener.Accept()
			must.OK(t, err)
			conn = c.protect(conn)
			_, _ = io.WriteString(conn, "active")
			conn.Close()
			c.expect("226 ")
			c.Want("active", "RETR f")
		})
	}
	t.Run("no-listener", func(t *testing.T) {
		c := newSite(t, nil).login()
		// the address of the control connection is in use, so no other program can take it
		c.do("PORT "+portArgument(c.LocalAddr()), "200 ")
		c.do("LIST", "425 ")
	})
	t.Run("foreign-address", func(t *testing.T) {
		c := newSite(t, nil).login()
		c.do("PORT 127,0,0,2,200,1", "501 ")
		c.do("PORT 127,0,0,1,0,25", "504 ") // RFC 2577, 3
		c.do("EPRT |1|127.0.0.2|2000|", "501 ")
	})
}

func TestStall(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.Data.StallTimeout = 100 * time.Millisecond })
	c := s.login()
	conn := c.Data()
	c.do("STOR f", "150 ")
	_, _ = io.WriteString(conn, "some")
	c.expect("426 Data transfer timed out.")
	s.wantEmpty()
}

// A client that stops reading a download gets the same reply.
func TestStalledDownload(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.Data.StallTimeout = 100 * time.Millisecond })
	// more than the socket buffers hold
	s.put(&s3.PutObjectInput{Key: new("f"), Body: bytes.NewReader(make([]byte, 64<<20))})
	c := s.login()
	_ = c.Data()
	c.do("RETR f", "150 ")
	c.expect("426 Data transfer timed out.")
}

func TestABOR(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	t.Run("during-an-upload", func(t *testing.T) {
		conn := c.Data()
		c.do("STOR f", "150 ")
		_, _ = io.WriteString(conn, strings.Repeat("x", 6<<20))
		c.write("ABOR\r\n")
		c.expect("426 Transfer aborted.")
		c.expect("226 Abort successful.")
		s.wantEmpty()
	})
	t.Run("before-the-data-connection", func(t *testing.T) {
		c.do("EPSV", "229 ")
		c.write("STOR f\r\nNOOP\r\nABOR \r\nNOOP\r\n")
		r := c.reply()
		if strings.HasPrefix(r, "150 ") { // the file was opened before ABOR was read
			r = c.reply()
		}
		if !strings.HasPrefix(r, "426 ") {
			t.Fatalf("reply %q, want 426", r)
		}
		c.expect("200 ")
		c.expect("226 ")
		c.expect("200 ")
		s.wantEmpty()
	})
	t.Run("nothing", func(t *testing.T) {
		c.do("EPSV", "229 ")
		c.do("ABOR", "226 There is no transfer to abort.")
		c.do("NLST", "425 ") // RFC 959, 4.1.3: ABOR must close the data connection
	})
	t.Run("status-while-running", func(t *testing.T) {
		conn := c.Data()
		c.do("STOR f", "150 ")
		c.do("STAT", "211-")
		conn.Close()
		c.expect("226 ")
		c.do("DELE f", "250 ")
	})
}

// TestClientDisconnects: an upload is not stored if its connections end in the middle, whichever connection ends
// first.
func TestClientDisconnects(t *testing.T) {
	big := strings.Repeat("x", 12<<20) // several parts
	for _, tt := range []struct {
		name   string
		vanish func(c *client, data net.Conn)
	}{
		{"data-first-as-when-killed", func(c *client, data net.Conn) { data.Close(); c.Close() }},
		{"control-first", func(c *client, data net.Conn) { c.Close(); data.Close() }},
		{"data-reset", func(c *client, data net.Conn) {
			_ = data.(*net.TCPConn).SetLinger(0)
			data.Close()
			c.expect("426 ")
			c.Close()
		}},
		{"only-control", func(c *client, data net.Conn) { c.Close(); _, _ = io.Copy(io.Discard, data) }},
	} {
		for size, content := range map[string]string{"empty": "", "small": "some", "large": big} {
			t.Run(tt.name+"/"+size, func(t *testing.T) {
				// an eighth of it is longer than the client takes to close both connections
				s := newSite(t, func(cfg *control.Config) { cfg.CommitDelay = time.Hour })
				other := s.login()
				c := s.login()
				data := c.Data()
				c.do("STOR f", "150 ")
				_, _ = io.WriteString(data, content)
				tt.vanish(c, data)
				s.shutdown()
				other.expect("421 ")
				s.wantEmpty()
			})
		}
	}
}

// TestLenientDataEOF: if the tenant is configured so, a data connection that ends without close_notify between two
// records completes the file. If it ends within a record or before the handshake, the upload is still refused.
func TestLenientDataEOF(t *testing.T) {
	strict := false
	s := newTenantSite(t, loginTo(config.Tenant{TLS: config.TenantTLS{StrictDataEOF: &strict}}))
	for _, tt := range []struct {
		name string
		send func(t *testing.T, raw net.Conn, conn *tls.Conn)
		want string // expected reply
	}{
		{"between-records", func(t *testing.T, _ net.Conn, conn *tls.Conn) { send(t, conn, "all of it") }, "226 "},
		{"nothing", func(t *testing.T, _ net.Conn, conn *tls.Conn) { send(t, conn, "") }, "226 "},
		{"close-notify", func(t *testing.T, _ net.Conn, conn *tls.Conn) {
			send(t, conn, "all of it")
			if err := conn.CloseWrite(); err != nil {
				t.Error(err)
			}
		}, "226 "},
		{"within-a-record", func(t *testing.T, raw net.Conn, conn *tls.Conn) {
			send(t, conn, "half")
			send(t, raw, "\x17\x03\x03\x40\x00 of a record")
		}, "426 "},
		{"before-the-handshake", func(*testing.T, net.Conn, *tls.Conn) {}, "426 "},
		{"within-the-handshake", func(t *testing.T, raw net.Conn, _ *tls.Conn) {
			send(t, raw, "\x16\x03\x01\x02\x00\x01")
		}, "426 "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := s.loginTLS()
			raw := c.dialClear()
			c.do("STOR f", "150 ")
			tt.send(t, raw, c.secure(raw).(*tls.Conn))
			raw.Close()
			c.expect(tt.want)
			if tt.want == "226 " {
				c.do("DELE f", "250 ")
			}
			s.wantEmpty()
		})
	}
}

// send writes text to a connection. Under TLS the handshake comes first.
func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if under, ok := conn.(*tls.Conn); ok {
		if err := under.Handshake(); err != nil {
			t.Error(err)
		}
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
	}
}

// TestClientHelloUnderPROTC: if a client starts TLS on a data connection that should be in the clear, its
// handshake is not stored. Data that only resembles a handshake is stored, and so is everything from a client
// without TLS.
func TestClientHelloUnderPROTC(t *testing.T) {
	s := newSite(t, nil)
	clear, under := s.login(), s.connect()
	under.startTLS()
	under.do("USER demo", "331 ")
	under.do("PASS demo", "230 ")
	const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
	for _, tt := range []struct {
		name   string
		client *client
		data   string
		want   string // expected reply
	}{
		{"client-hello", under, hello, "522 "},
		{"of-tls-1.2", under, strings.Replace(hello, "\x01", "\x03", 1), "522 "},
		{"client-in-the-clear", clear, hello, "226 "},
		{"beginning-only", under, hello[:5], "226 "},
		{"another-message", under, "\x16\x03\x01\x02\x00\x02", "226 "},
		{"another-record", under, "\x17\x03\x03\x02\x00\x01", "226 "},
		{"no-version", under, "\x16\x03\x04\x02\x00\x01", "226 "},
		{"text", under, "text", "226 "},
		{"nothing", under, "", "226 "},
		{"long", under, strings.Repeat("\x16\x03", 1<<20), "226 "},
	} {
		for _, command := range []string{"STOR f", "APPE f"} {
			t.Run(tt.name+"-"+command[:4], func(t *testing.T) {
				tt.client.t = t
				if r := tt.client.upload(command, tt.data); !strings.HasPrefix(r, tt.want) {
					t.Errorf("%s: got %q, want %s", command, r, tt.want)
				}
				if tt.want == "226 " {
					if got := tt.client.Transfer("RETR f"); got != tt.data {
						t.Errorf("stored %d bytes %.20q", len(got), got)
					}
					tt.client.do("DELE f", "250 ")
				}
				s.wantEmpty()
			})
		}
	}
	t.Run("byte-by-byte", func(t *testing.T) {
		under.t = t
		for _, data := range []string{hello, hello[:4] + "\x00no hello"} {
			conn := under.Data()
			under.do("STOR f", "150 ")
			for i := range len(data) {
				if _, err := conn.Write([]byte{data[i]}); err != nil {
					break // it was refused before the end of the data
				}
			}
			conn.Close()
			if data == hello {
				under.expect("522 ")
				under.do("SIZE f", "550 ")
				continue
			}
			under.expect("226 ")
			under.Want(data, "RETR f")
		}
	})
}

// TestNoTLSOnDataConnection: missing TLS is reported as a mistake of the client, not as a lost connection (RFC
// 4217, 10.2).
func TestNoTLSOnDataConnection(t *testing.T) {
	s := newSite(t, nil)
	c := s.loginTLS()
	c.Store("f", "x")
	c.TLS = nil
	for _, command := range []string{"STOR g", "RETR f", "NLST"} {
		conn := c.dialData(c.epsvAddress())
		_, _ = io.WriteString(conn, "this is no handshake\r\n")
		c.do(command, "150 ")
		c.expect("522 ")
		conn.Close()
	}
	conn := c.dialData(c.epsvAddress())
	c.do("STOR g", "150 ")
	conn.Close()
	c.expect("426 ")
	c.do("SIZE g", "550 ")
}

// TestRNTOMustFollowRNFR: RNTO is accepted only directly after RNFR (RFC 959, 4.1.3).
func TestRNTOMustFollowRNFR(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	c.Store("f", "content")
	for _, between := range []string{"200 NOOP", "550 RNFR nothing", "501 RNFR", "501 RNFR \xfe",
		"553 RNFR " + strings.Repeat("x", 1025), "500 FOO"} {
		c.do("RNFR f", "350 ")
		c.play(between)
		c.do("RNTO g", "503 ")
	}
	if keys := s.objects(); !slices.Equal(keys, []string{"f"}) {
		t.Errorf("unexpected objects %q", keys)
	}
}

// A failingBackend returns files that can only be read up to the middle of a line.
type failingBackend struct{ account.Backend }

func (b failingBackend) Login(ctx context.Context, r *account.LoginRequest) (*account.Login, error) {
	login, err := b.Backend.Login(ctx, r)
	if err == nil {
		root := &login.View.Mounts[0]
		root.Store = failingStore{root.Store}
	}
	return login, err
}

type failingStore struct{ view.Store }

func (s failingStore) OpenReader(ctx context.Context, name string, offset int64) (view.Reader, error) {
	file, err := s.Store.OpenReader(ctx, name, offset)
	if err != nil {
		return nil, err
	}
	return &failingFile{Reader: file, text: strings.NewReader("one\ntwo\nthr")}, nil
}

// A failingFile returns the error of S3 once.
type failingFile struct {
	view.Reader
	text *strings.Reader
	told bool
}

func (f *failingFile) Read(b []byte) (int, error) {
	n, err := f.text.Read(b)
	if err != nil && !f.told {
		f.told = true
		return 0, &fs.PathError{Op: "read", Path: "text", Err: syscall.ESTALE}
	}
	return n, err
}

func (f *failingFile) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, struct{ io.Reader }{f}) }

// A download whose storage fails ends with the error in every TYPE. The line conversion of ftpserverlib drops an
// error that comes in the middle of a line, and would reply 226.
func TestDownloadThatTheStorageFails(t *testing.T) {
	log := &servicetest.Log{}
	s := newSite(t, func(cfg *control.Config) {
		cfg.Logger = log.Logger()
		cfg.Backend = failingBackend{cfg.Backend}
	})
	c := s.login()
	c.Store("text", "one\ntwo\nthree\n")
	for _, kind := range []string{"I", "A"} {
		c.do("TYPE "+kind, "200 ")
		data := c.Data()
		c.do("RETR text", "150 ")
		_, _ = io.Copy(io.Discard, data)
		if reply := c.reply(); !strings.HasPrefix(reply, "451 ") {
			t.Errorf("TYPE %s: the reply is %q, want 451", kind, reply)
		}
		told := false
		for _, line := range log.Take() {
			told = told || strings.Contains(line, "code=451") && strings.Contains(line, "storage=")
		}
		if !told {
			t.Errorf("TYPE %s: the log lacks the storage error", kind)
		}
	}
}
