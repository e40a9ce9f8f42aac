package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

var manySessions = flag.Int("sessions", 300, "how many sessions TestManySessions has one after another")

// TestManySessions has many sessions, a few of them at the same time, which end in each way that there is. Then the
// server uses no more goroutines, descriptors and memory than after the first ones.
//
//	go test ./internal/server -run TestManySessions -sessions 100000
func TestManySessions(t *testing.T) {
	count := *manySessions
	b := newBusy(t)
	const atOnce, first = 16, 100 // the first ones allocate what the server needs once
	play := func(from, to int) {
		t.Helper()
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i := from; i < to; i++ {
			group.Go(func() error { return b.short(i) })
		}
		must.OK(t, group.Wait())
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

// short is a session that does little, under TLS or in the clear, and ends in one of eight ways.
func (b *busy) short(i int) error {
	c, err := ftptest.Open(b.srv.Addr().String())
	if err != nil {
		return err
	}
	defer func() { c.Close() }()
	if _, err := c.Reply(); err != nil {
		return err
	}
	if i%2 == 0 {
		if err := errors.Join(say(c, "234 AUTH TLS"), c.StartTLS(b.tls), say(c, "200 PBSZ 0", "200 PROT P")); err != nil {
			return err
		}
		c.TLS = b.tls
	}
	if err := say(c, "331 USER carol", "530 PASS wrong", "331 USER carol", "230 PASS "+servicetest.Password); err != nil {
		return err
	}
	name := fmt.Sprintf("/short%d/f", i%50)
	switch i / 2 % 8 {
	case 0:
		return say(c, "221 QUIT")
	case 1:
		return say(c, "220 REIN")
	case 2:
		_, err = c.Upload("STOR "+name, strings.Repeat("content\n", 20))
		return err
	case 3:
		_, _, err = c.Download("NLST /")
		return err
	case 4:
		_, err = c.Passive() // to which no client connects
		return err
	case 5, 6: // an upload that the client aborts, or in which it hangs up
		data, err := c.Data()
		if err != nil {
			return err
		}
		defer data.Close()
		err = say(c, "150 STOR "+name)
		if _, failed := io.WriteString(data, strings.Repeat("content\n", 1000)); err != nil || failed != nil {
			return errors.Join(err, failed)
		}
		if i/2%8 == 5 {
			return say(c, "426 ABOR")
		}
		_ = c.Close()
	}
	return nil // hangs up
}

// say sends commands, each behind the code of its reply.
func say(c *ftptest.Conn, steps ...string) error {
	for _, step := range steps {
		code, line, _ := strings.Cut(step, " ")
		reply, err := c.Send(line)
		if err == nil && !strings.HasPrefix(reply, code) {
			err = fmt.Errorf("%s: %s, want %s", line, reply, code)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	s, cfg := simulated(t)
	dir := t.TempDir()
	cfg.TLS = config.TLS{CertFile: dir + "/server.crt", KeyFile: dir + "/server.key", Required: new(bool)}
	certtest.Write(t, cfg.TLS.CertFile, cfg.TLS.KeyFile, &x509.Certificate{})
	cfg.Limits.Address.Sessions, cfg.Limits.FailedLoginDelay = 0, 0
	acme := cfg.Tenants["acme"]
	acme.Presign, acme.Quota = time.Hour, 1<<30
	acme.Users["carol"] = &config.User{PasswordHash: servicetest.PasswordHash()}
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
