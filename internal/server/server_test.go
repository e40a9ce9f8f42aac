package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// password is that of every user, and passwordHash its hash.
const password = "correct horse"

func passwordHash(t *testing.T) config.Secret {
	t.Helper()
	hash, err := HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	return config.NewSecret(hash)
}

// awsOf is how an S3 server is reached, whatever the environment of the test says.
func awsOf(s *s3test.Server) *aws.Config {
	cfg := s.AWSConfig()
	return &cfg
}

// newConfig is a configuration with the tenant acme in a fresh bucket of an S3 server and the user alice.
func newConfig(t *testing.T, s *s3test.Server) *config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.MetricsListen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.S3 = config.S3{
		Endpoint: s.Endpoint, Region: s.Region, PathStyle: aws.Bool(true),
		AccessKeyID: s.AccessKeyID, SecretAccessKey: config.NewSecret(s.SecretAccessKey),
	}
	cfg.Tenants = map[string]*config.Tenant{"acme": {
		Hosts:    []string{"ftp.acme.example"},
		Bucket:   s.Bucket(t),
		Prefix:   "inbox/",
		Greeting: map[language.Tag]string{language.English: "Welcome to Acme"},
		Users:    map[string]*config.User{"alice": {PasswordHash: passwordHash(t), Home: "/alice"}},
	}}
	return cfg
}

// start starts a server, which serves until the end of the test.
func start(t *testing.T, cfg *config.Config, opts Options) *Server {
	t.Helper()
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	srv, err := New(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what runs is cut
		_ = srv.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return srv
}

// ftpClient speaks on a control connection.
type ftpClient struct {
	t *testing.T
	*textproto.Conn
}

func dial(t *testing.T, srv *Server) *ftpClient {
	t.Helper()
	conn, err := net.Dial("tcp", srv.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c := &ftpClient{t: t, Conn: textproto.NewConn(conn)}
	t.Cleanup(func() { _ = c.Close() })
	c.reply(220)
	return c
}

func (c *ftpClient) reply(code int) string {
	c.t.Helper()
	_, text, err := c.ReadResponse(code)
	if err != nil {
		c.t.Fatalf("reply %v, want %d", err, code)
	}
	return text
}

func (c *ftpClient) command(code int, line string) string {
	c.t.Helper()
	if err := c.PrintfLine("%s", line); err != nil {
		c.t.Fatal(err)
	}
	return c.reply(code)
}

func (c *ftpClient) login(user string) {
	c.t.Helper()
	c.command(331, "USER "+user)
	c.command(230, "PASS "+password)
}

// data opens a passive data connection.
func (c *ftpClient) data() net.Conn {
	c.t.Helper()
	text := c.command(229, "EPSV")
	_, port, _ := strings.Cut(text, "(|||")
	port, _, _ = strings.Cut(port, "|")
	if _, err := strconv.Atoi(port); err != nil {
		c.t.Fatalf("reply to EPSV: %s", text)
	}
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		c.t.Fatal(err)
	}
	return conn
}

func (c *ftpClient) store(name, content string) {
	c.t.Helper()
	conn := c.data()
	c.command(150, "STOR "+name)
	if _, err := io.WriteString(conn, content); err != nil {
		c.t.Fatal(err)
	}
	_ = conn.Close()
	c.reply(226)
}

func (c *ftpClient) list() string {
	c.t.Helper()
	conn := c.data()
	defer conn.Close()
	c.command(150, "NLST")
	content, err := io.ReadAll(conn)
	if err != nil {
		c.t.Fatal(err)
	}
	c.reply(226)
	return string(content)
}

// get asks the metrics listener.
func get(t *testing.T, srv *Server, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + srv.MetricsAddr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// A user who has nothing yet logs in, finds an empty home, and what is uploaded there is an object under the tenant's prefix.
func TestUploadToAnEmptyHome(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := newConfig(t, s)
		srv := start(t, cfg, Options{AWS: awsOf(s)})
		c := dial(t, srv)
		c.login("alice@acme")
		if got := c.command(257, "PWD"); !strings.HasPrefix(got, `"/alice"`) {
			t.Errorf("PWD: %s", got)
		}
		if got := c.list(); got != "" {
			t.Errorf("the empty home lists %q", got)
		}
		c.command(250, "CWD /")
		c.command(250, "CWD alice")
		c.store("été.txt", "bonjour")
		if got := c.list(); got != "été.txt\r\n" {
			t.Errorf("the home lists %q", got)
		}
		out, err := s.Client().GetObject(t.Context(), &s3.GetObjectInput{
			Bucket: &cfg.Tenants["acme"].Bucket, Key: aws.String("inbox/alice/été.txt"),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		if content, err := io.ReadAll(out.Body); err != nil || string(content) != "bonjour" {
			t.Errorf("object holds %q, %v", content, err)
		}
	})
}

func TestLoginReplies(t *testing.T) {
	s := s3test.Start(t, "embedded")
	srv := start(t, newConfig(t, s), Options{AWS: awsOf(s)})
	for _, tc := range []struct {
		name, host, user, password string
		code                       int
	}{
		{"plain-name", "", "alice", password, 230},
		{"qualified-name", "", "alice@acme", password, 230},
		{"with-a-host", "FTP.acme.example", "alice", password, 230},
		{"wrong-password", "", "alice", "wrong", 530},
		{"unknown-user", "", "bob", password, 530},
		{"unknown-tenant", "", "alice@umbrella", password, 530},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, srv)
			if tc.host != "" {
				if greeting := c.command(220, "HOST "+tc.host); !strings.Contains(greeting, "Welcome to Acme") {
					t.Errorf("greeting %q", greeting)
				}
			}
			c.command(331, "USER "+tc.user)
			c.command(tc.code, "PASS "+tc.password)
		})
	}
}

// A server that shuts down says goodbye to who is idle, and lets a running transfer end.
func TestShutdown(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := newConfig(t, s)
	srv := start(t, cfg, Options{AWS: awsOf(s)})
	idle, busy := dial(t, srv), dial(t, srv)
	idle.command(200, "LANG en")
	busy.login("alice")
	upload := busy.data()
	busy.command(150, "STOR late.txt")

	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(context.WithoutCancel(t.Context())) }()
	idle.reply(421)
	if status, body := get(t, srv, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
		t.Errorf("/readyz answers %d %s", status, body)
	}
	if _, err := net.Dial("tcp", srv.Addr().String()); err == nil {
		t.Error("a new connection is accepted")
	}
	if _, err := io.WriteString(upload, "complete"); err != nil {
		t.Fatal(err)
	}
	_ = upload.Close()
	busy.reply(226)
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	head, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{
		Bucket: &cfg.Tenants["acme"].Bucket, Key: aws.String("inbox/alice/late.txt"),
	})
	if err != nil || aws.ToInt64(head.ContentLength) != int64(len("complete")) {
		t.Errorf("the object of the upload: %v, %v", head, err)
	}
}

func TestListenErrors(t *testing.T) {
	s := s3test.Start(t, "embedded")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	cfg := newConfig(t, s)
	cfg.Listen = busy.Addr().String()
	srv, err := New(t.Context(), cfg, Options{AWS: awsOf(s)})
	if err != nil {
		t.Fatal(err)
	}
	want := "cannot listen on " + cfg.Listen + ": address already in use: choose another address with listen"
	if err := srv.Start(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := net.Dial("tcp", srv.MetricsAddr().String()); err == nil {
		t.Error("the metrics listener is still open")
	}
}
