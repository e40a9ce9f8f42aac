package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var (
	manySessions = flag.Int(
		"sessions", 0,
		"how many sessions TestManySessions has one after another; 0 stands for 1,000, or for 300 with -short")
)

func number(given, long, short int) int {
	switch {
	case given > 0:
		return given
	case testing.Short():
		return short
	}
	return long
}

// A worker is a client of TestManySessions.
type worker struct {
	site   *busy
	dir    string
	random *rand.Rand
	conn   *ftptest.Conn
}

func (w *worker) login() error {
	c, err := ftptest.Open(w.site.srv.Addr().String())
	if err != nil {
		return err
	}
	w.conn = c
	_, err = c.Reply()
	if w.random.IntN(2) == 0 {
		err = errors.Join(
			err, w.command("234", "AUTH TLS"), c.StartTLS(w.site.tls), w.command("200", "PBSZ 0"),
			w.command("200", "PROT P"))
		c.TLS = w.site.tls
	}
	return errors.Join(
		err, w.command("331", "USER carol"), w.command("230", "PASS "+configtest.Password), w.command("200", "TYPE I"))
}

func (w *worker) command(code, line string) error {
	reply, err := w.conn.Send(line)
	return want(code, line, reply, err)
}

func want(code, line, reply string, err error) error {
	if err == nil && !strings.HasPrefix(reply, code) {
		err = fmt.Errorf("%s: %s, want %s", line, reply, code)
	}
	return err
}

func (w *worker) name() string { return fmt.Sprintf("%s/f%d", w.dir, w.random.IntN(4)) }

// content is bytes that no other file has.
func (w *worker) content(size int) string {
	piece := fmt.Sprintf("%s %d\n", w.dir, w.random.Uint64())
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

// begin begins an upload and sends a part of it.
func (w *worker) begin() (net.Conn, error) {
	data, err := w.conn.Data()
	if err != nil {
		return nil, err
	}
	err = w.command("150", "STOR "+w.name())
	if err == nil {
		_, err = io.WriteString(data, w.content(1+w.random.IntN(20_000)))
	}
	return data, err
}

func (w *worker) abort() error {
	data, err := w.begin()
	if err != nil {
		return err
	}
	defer data.Close()
	if err := w.command("426", "ABOR"); err != nil {
		return err
	}
	reply, err := w.conn.Reply()
	return want("226", "ABOR", reply, err)
}

// hangUp closes the control connection in an upload, and then the data connection.
func (w *worker) hangUp() error {
	data, err := w.begin()
	if err != nil {
		return err
	}
	_ = w.conn.Close()
	_ = data.Close()
	return w.login()
}

// guess logs in with a wrong password, in a session of its own.
func (w *worker) guess() error {
	own := w.conn
	defer func() { w.conn = own }()
	var err error
	if w.conn, err = ftptest.Open(w.site.srv.Addr().String()); err != nil {
		return err
	}
	defer func() { w.conn.Close() }()
	_, err = w.conn.Reply()
	return errors.Join(err, w.command("331", "USER carol"), w.command("530", "PASS wrong"))
}

// TestManySessions has many sessions, a few of them at the same time, which end in each way that there is. Then the
// server uses no more goroutines, descriptors and memory than after the first ones.
//
//	go test ./internal/server -run TestManySessions -sessions 100000
func TestManySessions(t *testing.T) {
	count := number(*manySessions, 1000, 300)
	b := newBusy(t)
	const atOnce, first = 16, 100 // the first ones allocate what the server needs once
	play := func(from, to int) {
		t.Helper()
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i := from; i < to; i++ {
			group.Go(func() error { return b.short(i) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		b.released(t)
	}
	play(0, first)
	before, early := heap(), used()
	play(first, count)
	// A session that was kept would take some ten thousand bytes.
	const slack, each = 16 << 20, 500
	after := heap()
	late := used()
	slog.New(slog.NewTextHandler(t.Output(), nil)).Info(
		"in use", "sessions", count, "heap_before", before, "heap_after", after,
		"goroutines_before", early.goroutines, "goroutines_after", late.goroutines,
		"descriptors_before", early.descriptors, "descriptors_after", late.descriptors)
	if most := before + slack + uint64(count)*each; after > most {
		t.Errorf("%d bytes are in use after %d sessions, %d before", after, count, before)
	}
}

// short is a session that does little.
func (b *busy) short(i int) error {
	w := &worker{site: b, dir: "/short", random: rand.New(rand.NewPCG(uint64(i), 1))}
	if i%8 == 0 {
		return w.guess()
	}
	if err := w.login(); err != nil {
		return err
	}
	defer func() { w.conn.Close() }()
	switch i % 8 {
	case 1:
		return w.command("221", "QUIT")
	case 2:
		w.dir = fmt.Sprintf("/short%d", i%50)
		_, err := w.conn.Upload("STOR "+w.dir, w.content(100))
		return err
	case 3:
		_, _, err := w.conn.Download("NLST /")
		return err
	case 4:
		return w.abort()
	case 5:
		_, err := w.conn.Passive() // to which no client connects
		return err
	case 6:
		return w.hangUp()
	}
	return nil // hangs up
}

// heap is how many bytes are in use.
func heap() uint64 {
	const rounds = 3 // what finalizers and pools hold goes in the second and third one
	var m runtime.MemStats
	for range rounds {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A busy server has many sessions.
type busy struct {
	srv  *Server
	tls  *tls.Config
	most resources // that the server may use between sessions
}

func newBusy(t *testing.T) *busy {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	cfg := configtest.New(t, s)
	dir := t.TempDir()
	cfg.TLS = config.TLS{CertFile: dir + "/server.crt", KeyFile: dir + "/server.key"}
	certtest.Write(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
	cfg.Limits.SessionsPerAddress, cfg.Limits.FailedLoginDelay = 0, 0
	acme := cfg.Tenants["acme"]
	acme.Presign, acme.Quota = time.Hour, 1<<30
	acme.Users["carol"] = &config.User{PasswordHash: configtest.PasswordHash()}
	// the test knows its server
	b := &busy{srv: start(t, cfg, Options{AWS: s.AWSConfig()}), tls: &tls.Config{InsecureSkipVerify: true}}
	const slack = 40 // idle connections to S3, with two goroutines each at both ends
	b.most = used()
	b.most.goroutines += 4 * slack
	b.most.descriptors += 2 * slack
	return b
}

// resources are what a process uses.
type resources struct{ goroutines, descriptors int }

func used() resources {
	open, _ := os.ReadDir("/proc/self/fd") // none where there is no /proc
	return resources{runtime.NumGoroutine(), len(open)}
}

// released waits until the server has released what ended sessions used.
func (b *busy) released(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		now := used()
		if now.goroutines <= b.most.goroutines && now.descriptors <= b.most.descriptors {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("in use: %+v, want %+v at most\n%s", now, b.most, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}
