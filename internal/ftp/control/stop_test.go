package control_test

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A blockade makes one storage operation, or the login, block until its context ends, or panic.
type blockade struct {
	operation string
	panics    bool
	log       servicetest.Log // errors only
	begun     chan struct{}   // receives when the operation begins
	ended     chan struct{}   // receives when the context of the operation ends
}

func (b *blockade) pass(ctx context.Context, operation string) error {
	if b.operation != operation {
		return nil
	}
	b.begun <- struct{}{}
	if b.panics {
		panic("a bug in " + operation)
	}
	<-ctx.Done()
	b.ended <- struct{}{}
	return &fs.PathError{Op: operation, Path: "/", Err: ctx.Err()}
}

// blockedBackend is a backend with a blockade.
type blockedBackend struct {
	account.Backend
	blockade *blockade
}

func (b *blockedBackend) Login(ctx context.Context, r *account.LoginRequest) (*account.Login, error) {
	if err := b.blockade.pass(ctx, "login"); err != nil {
		return nil, err
	}
	login, err := b.Backend.Login(ctx, r)
	if err != nil {
		return nil, err
	}
	root := &login.View.Mounts[0]
	root.Store = &blockedStore{root.Store, b.blockade}
	return login, nil
}

// blockedStore is a store with a blockade.
type blockedStore struct {
	view.Store
	blockade *blockade
}

func (s *blockedStore) StatFile(ctx context.Context, name string) (fs.FileInfo, error) {
	if err := s.blockade.pass(ctx, "stat-file"); err != nil {
		return nil, err
	}
	return s.Store.StatFile(ctx, name)
}

func (s *blockedStore) List(ctx context.Context, name string) (iter.Seq2[fs.FileInfo, error], error) {
	if err := s.blockade.pass(ctx, "list"); err != nil {
		return nil, err
	}
	entries, err := s.Store.List(ctx, name)
	return func(yield func(fs.FileInfo, error) bool) {
		if err := s.blockade.pass(ctx, "next-page"); err != nil {
			yield(nil, err)
			return
		}
		entries(yield)
	}, err
}

func (s *blockedStore) OpenReader(ctx context.Context, name string, offset int64) (view.Reader, error) {
	if err := s.blockade.pass(ctx, "open"); err != nil {
		return nil, err
	}
	return s.Store.OpenReader(ctx, name, offset)
}

func (s *blockedStore) OpenWriter(
	ctx context.Context, name string, flag int, offset int64, sum *[sha256.Size]byte,
) (view.Writer, error) {
	if err := s.blockade.pass(ctx, "open"); err != nil {
		return nil, err
	}
	return s.Store.OpenWriter(ctx, name, flag, offset, sum)
}

func (s *blockedStore) RenameTo(ctx context.Context, _ view.Store, from, to string) error {
	if err := s.blockade.pass(ctx, "rename"); err != nil {
		return err
	}
	return s.Store.RenameTo(ctx, s.Store, from, to)
}

func (s *blockedStore) CopyTo(ctx context.Context, _ view.Store, from, to string) error {
	if err := s.blockade.pass(ctx, "copy"); err != nil {
		return err
	}
	return s.Store.CopyTo(ctx, s.Store, from, to)
}

func (s *blockedStore) Mkdir(ctx context.Context, name string) error {
	if err := s.blockade.pass(ctx, "mkdir"); err != nil {
		return err
	}
	return s.Store.Mkdir(ctx, name)
}

func (s *blockedStore) Hash(
	ctx context.Context, name, algorithm string, from, to int64,
) (sum []byte, end int64, err error) {
	if err := s.blockade.pass(ctx, "hash"); err != nil {
		return nil, 0, err
	}
	return s.Store.Hash(ctx, name, algorithm, from, to)
}

// stoppable lists commands of each kind that may take long, and the storage operation that blocks them.
var stoppable = []struct {
	name, operation string
	before          []string // earlier commands and the codes of their replies
	command         string
	transfer        bool
	aborted         string // reply to the command after ABOR; default 426
}{
	{name: "pass", operation: "login", command: "PASS demo"},
	{name: "mkd", operation: "mkdir", command: "MKD new"},
	{name: "rnto", operation: "rename", before: []string{"RNFR dir", "350"}, command: "RNTO other"},
	{name: "size", operation: "stat-file", command: "SIZE dir/f"},
	{name: "mdtm", operation: "stat-file", command: "MDTM dir/f"},
	{name: "stat", operation: "list", command: "STAT dir"},
	// A multi-line reply cannot end in another way (RFC 959, 4.2).
	{name: "stat-next-page", operation: "next-page", command: "STAT dir", aborted: "212-"},
	{name: "hash", operation: "hash", command: "HASH dir/f"},
	{name: "xcrc", operation: "hash", command: "XCRC dir/f"},
	{name: "site-cpto", operation: "copy", before: []string{"SITE CPFR dir", "350"}, command: "SITE CPTO other"},
	{name: "site-copy", operation: "copy", command: "SITE COPY dir other"},
	{name: "retr", operation: "open", command: "RETR dir/f", transfer: true},
	{name: "stor", operation: "open", command: "STOR new", transfer: true},
	{name: "appe", operation: "open", command: "APPE new", transfer: true},
	{name: "stou", operation: "stat-file", command: "STOU", transfer: true},
	{name: "list", operation: "list", command: "LIST dir", transfer: true},
	{name: "mlsd-next-page", operation: "next-page", command: "MLSD dir", transfer: true, aborted: "150 "},
}

// TestStoppingCommands: ABOR, the end of the control connection and a shutdown stop a command, whatever storage
// operation it waits for.
func TestStoppingCommands(t *testing.T) {
	for _, tt := range stoppable {
		begin := func(t *testing.T, panics bool) (*client, *blockade) {
			t.Helper()
			b := &blockade{panics: panics, begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
			s := newSite(t, func(cfg *control.Config) {
				cfg.Backend = &blockedBackend{cfg.Backend, b}
				cfg.Logger = b.log.LoggerAt(slog.LevelError)
			})
			c := s.connect()
			c.do("USER demo", "331 ")
			var data net.Conn
			if tt.operation != "login" {
				c.do("PASS demo", "230 ")
				c.do("MKD dir", "257 ")
				c.Store("dir/f", "content")
			}
			for i := 0; i < len(tt.before); i += 2 {
				c.do(tt.before[i], tt.before[i+1])
			}
			if tt.transfer {
				data = c.Data()
				t.Cleanup(func() { data.Close() })
			}
			b.operation = tt.operation
			c.write(tt.command + "\r\n")
			receive(t, "begin", b.begun)
			return c, b
		}
		t.Run(tt.name+"/ABOR", func(t *testing.T) {
			c, b := begin(t, false)
			c.write("ABOR\r\n")
			receive(t, "end", b.ended)
			switch tt.aborted {
			case "":
				c.expect("426 ")
			case "150 ":
				c.expect("150 ")
				c.expect("426 ")
			case "212-":
				if line, err := c.In.ReadString('\n'); err != nil || !strings.HasPrefix(line, "212-") {
					t.Errorf("got %q, %v", line, err)
				}
				c.expect("421 ")
				c.WantClosed()
				return
			}
			c.expect("226 ")
			b.operation = ""
			if tt.operation == "login" {
				c.do("USER demo", "331 ")
				c.do("PASS demo", "230 ")
			}
			c.do("PWD", "257 ")
		})
		t.Run(tt.name+"/hang-up", func(t *testing.T) {
			c, b := begin(t, false)
			c.Close()
			receive(t, "end", b.ended)
		})
		t.Run(tt.name+"/panic", func(t *testing.T) {
			c, b := begin(t, true)
			switch tt.aborted {
			case "150 ":
				c.expect("150 ")
			case "212-":
				if line, err := c.In.ReadString('\n'); err != nil || !strings.HasPrefix(line, "212-") {
					t.Errorf("got %q, %v", line, err)
				}
			}
			c.expect("421 ")
			c.WantClosed()
			if line := b.log.Next("a bug in " + tt.operation); !strings.Contains(line, "stack=\"goroutine ") {
				t.Errorf("the log has no panic with its stack: %s", line)
			}
			b.operation = ""
			c.site.login().do("PWD", "257 ") // other sessions continue
		})
		t.Run(tt.name+"/shutdown", func(t *testing.T) {
			c, b := begin(t, false)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := c.site.server.Shutdown(ctx); err == nil {
				t.Error("the session was not cut")
			}
			receive(t, "end", b.ended)
			for {
				reply, err := c.Conn.Reply()
				if err != nil { // even in the middle of a listing
					break
				}
				code, text := ftptest.Parse(reply)
				if code >= 400 && text != "The server is shutting down. Please connect again in a moment." &&
					tt.operation != "login" {
					t.Errorf("got reply %d %q", code, text)
				}
			}
		})
	}
}

// aGuard lets a test cut sessions like a ban does.
type aGuard chan *limits.Session

func (g aGuard) Admit(s *limits.Session) (leave func(), err error) {
	g <- s
	return func() {}, nil
}

func (aGuard) Offended(netip.Addr) {}

// begins reports started commands to a test, and records reached limits.
type begins struct {
	loginObserver
	commands chan string
}

func (o *begins) CommandBegan(ctx context.Context, c report.Command) context.Context {
	o.commands <- c.Name
	return ctx
}

// A ban that cuts a session is counted once, whatever the session is doing, and before the client gets the reply.
func TestBanDuringACommand(t *testing.T) {
	for _, tt := range []struct {
		name      string
		commands  []string
		operation string // storage operation that blocks the last command
		rate      int    // commands per second
		replies   []string
	}{
		{name: "idle", replies: []string{"421 "}},
		{name: "mkd", commands: []string{"USER demo", "PASS demo", "MKD new"}, operation: "mkdir",
			replies: []string{"450 ", "421 "}},
		{name: "stat-next-page", commands: []string{"USER demo", "PASS demo", "STAT ."}, operation: "next-page",
			replies: []string{"212-", "421 "}},
		{name: "waits-for-its-turn", commands: []string{"NOOP", "NOOP"}, rate: 1, replies: []string{"421 "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &blockade{operation: tt.operation, begun: make(chan struct{}, 1), ended: make(chan struct{}, 1)}
			seen := &begins{commands: make(chan string, 20)}
			guard := make(aGuard, 1)
			s := newSite(t, func(cfg *control.Config) {
				cfg.Backend = &blockedBackend{cfg.Backend, b}
				cfg.Limits = limits.NewServer(limits.Bounds{Work: limits.Work{CommandRate: tt.rate}}, limits.Bounds{})
				cfg.Limits.Guard = guard
				cfg.Observe = func(*report.Client) report.Observers { return report.Observers{seen} }
			})
			c := s.connect()
			for _, command := range tt.commands {
				c.write(command + "\r\n")
				<-seen.commands
			}
			if tt.operation != "" {
				receive(t, "begin", b.begun)
			}
			(<-guard).Cut(&limits.Error{Limit: limits.Bans})
			got, err := io.ReadAll(c.In)
			must.OK(t, err)
			for _, want := range tt.replies {
				if !strings.Contains(string(got), want) {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if reached := strings.Join(seen.limits, " "); reached != limits.Bans {
				t.Errorf("reached limits: got %q, want %q", reached, limits.Bans)
			}
		})
	}
}

// An administrator may disconnect a session at any time, even during login.
func TestDisconnect(t *testing.T) {
	s := newSite(t, nil)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if s.server.Disconnect("none") {
					t.Error("found a session with an unknown ID")
				}
				runtime.Gosched()
			}
		}
	}()
	c := s.login()
	close(stop)
	<-stopped
	if !s.server.Disconnect(s.server.Sessions()[0].ID) {
		t.Error("missing session")
	}
	c.expect("421 ")
	c.WantClosed()
}

// A faulty observer panics at the end of a NOOP.
type faulty struct{ report.Silent }

func (faulty) CommandEnded(_ context.Context, o *report.Outcome) {
	if o.Name == "NOOP" {
		panic("a bug in an observer")
	}
}

// counting counts the outcomes of NOOP.
type counting struct {
	report.Silent
	ended *atomic.Int32
}

func (c counting) CommandEnded(_ context.Context, o *report.Outcome) {
	if o.Name == "NOOP" {
		c.ended.Add(1)
	}
}

// If one observer panics, the other observers get the outcome once, and the session releases its slot.
func TestPanicOfAnObserver(t *testing.T) {
	log := &servicetest.Log{}
	ended := make(chan struct{}, 1)
	var told atomic.Int32
	s := newSite(t, func(cfg *control.Config) {
		cfg.Limits = limits.NewServer(limits.Bounds{Usage: limits.Usage{Sessions: 1}}, limits.Bounds{})
		cfg.Logger = log.LoggerAt(slog.LevelError)
		cfg.Guard = panics.NewGuard(cfg.Logger)
		observers := report.Observers{counting{ended: &told}, faulty{}}
		cfg.Observe = func(*report.Client) report.Observers { return observers }
		demo := cfg.Backend.(*backend)
		demo.demo.End = func() { ended <- struct{}{} }
	})
	c := s.login()
	c.do("NOOP", "421 ")
	c.WantClosed()
	if n := told.Load(); n != 1 {
		t.Errorf("the other observers were called %d times", n)
	}
	log.Next("a bug in an observer")
	receive(t, "end the login", ended)
	s.login().do("PWD", "257 ")
}

// TestQuitAndHangUp: the commands of a client that sends QUIT and closes its side are still run.
func TestQuitAndHangUp(t *testing.T) {
	c := newSite(t, nil).login()
	c.write("MKD a\r\nMKD b\r\nRNFR a\r\nRNTO c\r\nQUIT\r\n")
	must.OK(t, c.Conn.Conn.(*net.TCPConn).CloseWrite())
	for _, code := range []string{"257 ", "257 ", "350 ", "250 ", "221 "} {
		c.expect(code)
	}
	c.WantClosed()
}

func receive(t *testing.T, what string, from <-chan struct{}) {
	t.Helper()
	select {
	case <-from:
	case <-time.After(waitTimeout):
		t.Fatalf("the operation did not %s", what)
	}
}
