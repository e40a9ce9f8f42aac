package control_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/users/account"
)

func TestMain(m *testing.M) { s3test.Main(ftptest.Texts{M: m, Reader: ftptest.Control}) }

// waitTimeout bounds how long a test waits for an expected event.
const waitTimeout = time.Minute

// A site is a server with one tenant on a fresh bucket of a simulated AWS.
type site struct {
	t       *testing.T
	server  *control.Server
	address string
	client  *s3.Client
	bucket  string
	tls     *tls.Config // configuration of the client
}

// newSite starts a server. change may modify its configuration.
func newSite(t *testing.T, change func(*control.Config)) *site {
	t.Helper()
	s := &site{t: t}
	storage := s3test.Start(t, "sim-aws")
	s.client, s.bucket = storage.Client(), storage.Bucket(t)
	bundle, err := i18n.Load()
	must.OK(t, err)
	defaults := config.Default()
	cfg := control.Config{
		Bundle:      bundle,
		IdleTimeout: defaults.IdleTimeout,
		Ports:       dataconn.NewPorts(dataconn.PortOptions{}),
		Data: dataconn.Config{
			OpenTimeout: defaults.DataTimeout, StallTimeout: defaults.StallTimeout,
		},
		CommitDelay: time.Millisecond,
		MaxLogins:   defaults.MaxFailedLogins,
		Backend: &backend{
			site:  s,
			demo:  loginTo(config.Tenant{}),
			hosts: map[string]*account.Tenant{"ftp.example.com": tenant},
		},
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	cfg.TLS, s.tls = certificates(t)
	if change != nil {
		change(&cfg)
	}
	s.server = control.New(cfg)
	listener := must.Listen(t)
	s.address = listener.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		wantNoGoroutines(ctx, t, slices.Concat(ofSessions, ofEngines)...)
	})
	return s
}

// Functions that identify the goroutines of a session and of its engine.
var (
	ofSessions = []string{"control.(*session)", "wire.(*Conn)"}
	ofEngines  = []string{"engine.(*Engine)", "engine.(*conn)", "ftpserverlib.(*clientHandler)"}
)

// wantNoGoroutines waits until no goroutine runs any of these functions.
func wantNoGoroutines(ctx context.Context, t *testing.T, of ...string) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for {
		n := runtime.Stack(stacks, true)
		left := ""
		for stack := range strings.SplitSeq(string(stacks[:n]), "\n\n") {
			if slices.ContainsFunc(of, func(name string) bool { return strings.Contains(stack, name) }) {
				left = stack
			}
		}
		if left == "" {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("goroutine left behind:\n%s", left)
			return
		}
		runtime.Gosched()
	}
}

// may returns the policy of a user with these rights, and with other rights for some patterns.
func may(rights view.Rights, byPattern map[string]view.Rights) view.Policy {
	return view.Policy{view.NewLayer(rights, byPattern)}
}

// backend knows the user demo, whose tenant has no texts unless a test sets them, and the user marie, whose tenant
// has a greeting and the host ftp.example.com.
type backend struct {
	site  *site
	demo  account.Login
	hosts map[string]*account.Tenant

	passwordErrors map[string]error // of changes, by new password
	changed        string           // the new password
	onChange       func()           // called after a change; may be nil
}

var tenant = &account.Tenant{
	Name:            "demo",
	DefaultLanguage: language.German,
	Tenant: &config.Tenant{Greeting: map[language.Tag]string{
		language.English: "Welcome!", language.German: "Willkommen!\nBitte eintreten.", language.French: "Bienvenue !",
	}},
}

// loginTo returns the login of the user demo to a tenant with these settings.
func loginTo(settings config.Tenant) account.Login {
	return account.Login{
		User: userOf(&account.Tenant{Name: "demo", Tenant: &settings}), Compatibility: settings.Compatibility,
	}
}

func noQuota() *account.Usage { return nil }

// userOf returns the user demo of a tenant.
func userOf(t *account.Tenant) *account.User {
	return &account.User{Name: "demo", Tenant: t, User: &config.User{}}
}

func (b *backend) Host(name string) (*account.Tenant, bool) {
	tenant, ok := b.hosts[name]
	return tenant, ok
}

func (b *backend) Charset(netip.Addr) *pathname.Encoding { return nil }

func (b *backend) Admit([]*x509.Certificate) error { return nil }

func (b *backend) RequiresTLS(req *account.LoginRequest) bool { return req.TLSRequired }

func (b *backend) NeedsNoPassword(*account.LoginRequest) bool { return false }

// ChangePassword accepts the current password of demo, and decides by the new one.
func (b *backend) ChangePassword(
	_ context.Context, _ *account.Login, r *account.LoginRequest, password string,
) error {
	if err := b.passwordErrors[password]; err != nil {
		return err
	}
	if r.Password != "demo" {
		return fmt.Errorf("user %q: %w", r.User, account.ErrLoginRefused)
	}
	b.changed = password
	if b.onChange != nil {
		b.onChange()
	}
	return nil
}

func (b *backend) Login(ctx context.Context, r *account.LoginRequest) (*account.Login, error) {
	if r.User == "broken" {
		return nil, io.ErrUnexpectedEOF
	}
	if r.User != "demo" && r.User != "marie" || r.Password != "demo" {
		return nil, fmt.Errorf("user %q: %w", r.User, account.ErrLoginRefused)
	}
	storage := drivertest.MustNew(ctx, b.site.client, b.site.bucket, &driver.Options{
		BeforeCommit: r.BeforeCommit, Presigner: s3.NewPresignClient(b.site.client),
	})
	login := b.demo
	if r.User == "marie" {
		login = account.Login{User: userOf(tenant)}
		login.Name, login.User.User = "marie", &config.User{Home: "/home"}
	}
	login.View = &view.View{
		Mounts:      view.NewMounts(view.Mount{Dir: "/", Store: view.NewStore(storage.Driver)}),
		Policy:      login.Policy,
		Directories: view.NewDirectories(login.Home),
	}
	login.TLSRequired = r.TLSRequired
	if login.Usage == nil {
		login.Usage = noQuota
	}
	return &login, nil
}

// A client is a control connection, used line by line. Any failure ends the test.
type client struct {
	*ftptest.Client
	t    *testing.T
	site *site
}

func (s *site) dial() *client {
	s.t.Helper()
	return &client{Client: ftptest.New(s.t, must.Dial(s.t, s.address)), t: s.t, site: s}
}

// newTenantSite starts a server with this login for the user demo.
func newTenantSite(t *testing.T, demo account.Login) *site {
	t.Helper()
	return newSite(t, func(cfg *control.Config) { cfg.Backend.(*backend).demo = demo })
}

// connect opens a control connection and reads the greeting.
func (s *site) connect() *client {
	s.t.Helper()
	c := s.dial()
	c.expect("220 ")
	return c
}

// loginTLS logs in as demo under TLS, and protects data connections too.
func (s *site) loginTLS() *client {
	s.t.Helper()
	c := s.connect()
	c.startTLS()
	c.protectData()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	return c
}

// login logs in as demo.
func (s *site) login() *client {
	s.t.Helper()
	c := s.connect()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230 ")
	return c
}

func (c *client) write(bytes string) {
	c.t.Helper()
	must.Write(c.t, c, bytes)
}

// reply reads one reply and joins its lines with LF.
func (c *client) reply() string {
	c.t.Helper()
	return c.must(c.Conn.Reply())
}

// must returns the reply, its lines joined with LF, and fails the test if err is not nil.
func (c *client) must(reply string, err error) string {
	c.t.Helper()
	must.OK(c.t, err)
	return strings.ReplaceAll(reply, "\r\n", "\n")
}

// expect reads a reply and checks its prefix.
func (c *client) expect(prefix string) string {
	c.t.Helper()
	r := c.reply()
	if !strings.HasPrefix(r, prefix) {
		c.t.Fatalf("reply %q, want %q", r, prefix)
	}
	return r
}

// do sends a command and checks the prefix of the reply.
func (c *client) do(command, prefix string) string {
	c.t.Helper()
	c.write(command + "\r\n")
	r := c.reply()
	if !strings.HasPrefix(r, prefix) {
		c.t.Fatalf("%s: reply %q, want %q", command, r, prefix)
	}
	return r
}

func (c *client) epsvAddress() string {
	c.t.Helper()
	return c.must(c.Passive())
}

func (c *client) dialData(address string) net.Conn {
	c.t.Helper()
	conn, err := c.DialData(address)
	must.OK(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// upload stores data and returns the last reply.
func (c *client) upload(command, data string) string {
	c.t.Helper()
	return c.must(c.Upload(command, data))
}

// startTLS starts TLS on the control connection and protects data connections.
func (c *client) startTLS() {
	c.t.Helper()
	c.do("AUTH TLS", "234 ")
	must.OK(c.t, c.StartTLS(c.site.tls))
}

func (c *client) protectData() {
	c.t.Helper()
	c.do("PBSZ 0", "200 ")
	c.do("PROT P", "200 ")
	c.TLS = c.site.tls
}

// objects returns the keys in the bucket.
func (s *site) objects() []string { return s3test.Objects(s.t, s.client, s.bucket) }

func (s *site) wantEmpty() {
	s.t.Helper()
	if keys := s.objects(); len(keys) > 0 {
		s.t.Errorf("objects %q, want none", keys)
	}
	if uploads := s3test.OpenUploads(s.t, s.client, s.bucket); len(uploads) > 0 {
		s.t.Errorf("open multipart uploads %q, want none", uploads)
	}
}

// certificates returns a server configuration for 127.0.0.1 and a client configuration that trusts it.
func certificates(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	pair, client := must.CertificatePair(
		t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}})
	return &tls.Config{Certificates: []tls.Certificate{pair}}, client
}

// portArgument returns an address in the syntax of PORT.
func portArgument(addr net.Addr) string {
	tcp := addr.(*net.TCPAddr)
	return strings.ReplaceAll(tcp.IP.String(), ".", ",") + "," + strconv.Itoa(tcp.Port>>8) + "," +
		strconv.Itoa(tcp.Port&0xff)
}

// secure starts TLS on a data connection.
func (c *client) secure(conn net.Conn) net.Conn { return tls.Client(conn, c.site.tls) }

// protect starts TLS on a data connection if the client protects its data.
func (c *client) protect(conn net.Conn) net.Conn {
	if c.TLS == nil {
		return conn
	}
	return c.secure(conn)
}

// shutdown shuts down the server and waits until all sessions have ended.
func (s *site) shutdown() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		s.t.Fatalf("shut down: %v", err)
	}
}
