package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	watch "github.com/babelftp/babelftp/internal/base/reload"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	"github.com/babelftp/babelftp/internal/users/account"
)

// files maps names of files to their contents.
type files map[string]string

// A volume is a directory as Kubernetes mounts it: each file is a symbolic link through ..data, which points to the
// directory of the current version.
type volume struct {
	dir     string
	version int
}

// mount replaces all files, and removes the previous version.
func (v *volume) mount(t *testing.T, content files) {
	t.Helper()
	before := fmt.Sprintf("..%d", v.version)
	v.version++
	version := fmt.Sprintf("..%d", v.version)
	in := func(name string) string { return filepath.Join(v.dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	for name, text := range content {
		must(os.MkdirAll(filepath.Dir(in(filepath.Join(version, name))), 0o700))
		must(os.WriteFile(in(filepath.Join(version, name)), []byte(text), 0o600))
		top, _, _ := strings.Cut(name, "/")
		must(os.Symlink(filepath.Join("..data", top), in(top)))
	}
	must(os.Symlink(version, in("..data_tmp")))
	must(os.Rename(in("..data_tmp"), in("..data")))
	must(os.RemoveAll(in(before)))
}

// A fileCase describes files of the configuration that change.
type fileCase struct {
	keys         []string // configuration keys with their types
	top, tenant  string   // lines of the configuration; VOLUME is replaced by the directory of the files
	before, next files
	restart      string // key in the log if the change needs a restart
	seen         func(*testing.T, *Server) bool
}

// pemOf returns the certificate of an HTTPS server.
func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// loginSucceeds reports whether a user of acme can log in.
func loginSucceeds(user, password string, shown ...*x509.Certificate) func(*testing.T, *Server) bool {
	return func(t *testing.T, srv *Server) bool {
		login, err := srv.tenants.Login(t.Context(), &account.LoginRequest{
			User: user + "@acme", Password: password, RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)},
			Certificates: shown,
		})
		if err == nil {
			login.End()
		}
		return err == nil
	}
}

// showsHost reports whether the server uses the certificate of the next version.
func showsHost(tenant string) func(*testing.T, *Server) bool {
	return func(_ *testing.T, srv *Server) bool {
		for _, c := range srv.certificates.Certificates() {
			if c.Tenant == tenant && c.Host == "next.example" {
				return true
			}
		}
		return false
	}
}

// fileCases returns a case for each key that names a file.
func fileCases(t *testing.T) []fileCase {
	wrong := must.NewAuthority(t, "wrong")
	pair := func(host string) files {
		cert, key := must.Certificate(t, &x509.Certificate{DNSNames: []string{host}})
		return files{"tls.crt": cert, "tls.key": key}
	}
	with := func(all files, name, text string) files {
		more := files{name: text}
		for name, text := range all {
			more[name] = text
		}
		return more
	}
	wrongCA := files{"ca.crt": wrong.Certificate}
	own := pair("ftp.example")

	clients := must.NewAuthority(t, "clients")
	cert, key := clients.Issue(&x509.Certificate{})
	client, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must.OK(t, err)
	shown, err := x509.ParseCertificate(client.Certificate[0])
	must.OK(t, err)
	revoked := clients.Revoke(&x509.RevocationList{}, shown.SerialNumber.Int64())

	var events atomic.Int64
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { events.Add(1) }))
	t.Cleanup(receiver.Close)
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"tenant": "acme", "user": {}}`)
	}))
	t.Cleanup(hook.Close)

	var provider *httptest.Server
	provider = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"issuer": %q, "authorization_endpoint": %[1]q, "token_endpoint": %[1]q, "jwks_uri": %[1]q}`,
			provider.URL)
	}))
	t.Cleanup(provider.Close)

	const secret = "secret: 0123456789abcdef"
	return []fileCase{
		{keys: []string{"Config/locales_dir"}, top: "locales_dir: VOLUME/texts", before: catalog("À demain."),
			next: catalog("Bonne route."), seen: saysGoodbye("Bonne route.")},
		{keys: []string{"TLS/cert_file", "TLS/key_file"},
			top: "tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key}", before: own, next: pair("next.example"),
			seen: showsHost("")},
		{
			keys:   []string{"TenantTLS/cert_file", "TenantTLS/key_file"},
			tenant: "tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key}",
			top:    "tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key}", // required by the server too
			before: own, next: pair("next.example"), seen: showsHost("acme"),
		},
		{
			keys: []string{"AdminTLS/cert_file", "AdminTLS/key_file"}, before: own, next: pair("next.example"),
			top: "admin: {listen: \"127.0.0.1:0\", users: \"ops:" + servicetest.PasswordHash().Reveal() +
				"\", tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key}}",
			seen: func(_ *testing.T, srv *Server) bool {
				host, _ := srv.admin.certificate()
				return host == "next.example"
			},
		},
		{
			keys: []string{"AdminTLS/client_ca_file"},
			top: "admin: {listen: \"127.0.0.1:0\", tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key, " +
				"client_ca_file: VOLUME/ca.crt}}",
			before: with(own, "ca.crt", wrong.Certificate), next: with(own, "ca.crt", clients.Certificate),
			seen: entersAdmin(client),
		},
		{
			keys: []string{"ClientCertificates/ca_file"}, before: with(own, "ca.crt", wrong.Certificate),
			next: with(own, "ca.crt", clients.Certificate),
			top: "tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key, client_certificates: {ca_file: " +
				"VOLUME/ca.crt, required: true}}",
			seen: loginSucceeds("alice", servicetest.Password, shown),
		},
		{
			keys:   []string{"ClientCertificates/crl_file"},
			top:    "tls: {cert_file: VOLUME/tls.crt, key_file: VOLUME/tls.key}",
			tenant: "tls: {client_certificates: {ca_file: VOLUME/ca.crt, crl_file: VOLUME/crl.pem, required: true}}",
			before: with(with(own, "ca.crt", clients.Certificate), "crl.pem", revoked),
			next:   with(with(own, "ca.crt", clients.Certificate), "crl.pem", clients.Revoke(&x509.RevocationList{})),
			seen:   loginSucceeds("alice", servicetest.Password, shown),
		},
		{
			keys: []string{"Config/ca_file"}, before: wrongCA, next: files{"ca.crt": clients.Certificate},
			restart: "ca_file",
			top: fmt.Sprintf(
				"ca_file: VOLUME/ca.crt\ntls: {acme: {hosts: [a.example], directory: \"https://127.0.0.1:1/\", folder: %q, "+
					"http_listen: \"127.0.0.1:0\"}}", t.TempDir()),
		},
		{
			keys: []string{"Config/ca_file"}, before: wrongCA, next: files{"ca.crt": clients.Certificate},
			restart: "ca_file",
			top:     "ca_file: VOLUME/ca.crt\naudit: {webhook: {url: \"https://127.0.0.1:1/\", " + secret + "}}",
		},
		{
			keys:   []string{"Tenant/ca_file"},
			tenant: fmt.Sprintf("ca_file: VOLUME/ca.crt\n    webhook: {url: %q, %s}", receiver.URL, secret),
			before: wrongCA, next: files{"ca.crt": pemOf(receiver)},
			seen: func(t *testing.T, srv *Server) bool {
				session(t, srv, "alice").Store("/file", "content")
				return events.Load() > 0
			},
		},
		{
			keys:   []string{"Tenant/ca_file"},
			tenant: fmt.Sprintf("ca_file: VOLUME/ca.crt\n    auth: {hook: {url: %q, %s}}", hook.URL, secret),
			before: wrongCA, next: files{"ca.crt": pemOf(hook)}, seen: loginSucceeds("bob", "any"),
		},
		{
			keys:   []string{"Config/ca_file"},
			top:    fmt.Sprintf("ca_file: VOLUME/ca.crt\nauth: {hook: {url: %q, %s}}", hook.URL, secret),
			before: wrongCA, next: files{"ca.crt": pemOf(hook)}, seen: loginSucceeds("bob", "any"),
		},
		{
			keys:   []string{"Config/ca_file"},
			before: wrongCA, next: files{"ca.crt": pemOf(provider)}, seen: knowsProvider(provider.URL),
			top: fmt.Sprintf("ca_file: VOLUME/ca.crt\nadmin: {listen: \"127.0.0.1:0\", oidc: {issuer: %q, client_id: x, "+
				"roles: {viewer: [x]}}}", provider.URL),
		},
		{
			keys: []string{"Tenant/users_file"}, tenant: "users_file: VOLUME/users.yaml",
			before: files{"users.yaml": "users: {}"},
			next: files{"users.yaml": fmt.Sprintf(
				"users: {bob: {password_hash: %q}}",
				servicetest.PasswordHash().Reveal())}, seen: loginSucceeds("bob", servicetest.Password),
		},
		{
			keys: []string{"Config/tenants_dir"}, top: "tenants_dir: VOLUME\ntenant_defaults: {auth: {hook: {url: " +
				hook.URL + "}}}",
			before: files{"umbrella.yaml": "bucket: umbrella-data"},
			next: files{"umbrella.yaml": "bucket: umbrella-data",
				"wayne.yaml": "{bucket: wayne-data, hosts: [ftp.wayne.example]}"},
			seen: func(_ *testing.T, srv *Server) bool {
				_, found := srv.tenants.Host("ftp.wayne.example")
				return found
			},
		},
		{ // any value from a file of its own
			keys: []string{"User/password_hash"}, tenant: "users: {bob: {password_hash_file: VOLUME/hash}}",
			before: files{"hash": strings.Replace(servicetest.PasswordHash().Reveal(), "+ksV", "+ksW", 1)},
			next:   files{"hash": servicetest.PasswordHash().Reveal()}, seen: loginSucceeds("bob", servicetest.Password),
		},
	}
}

func catalog(goodbye string) files {
	return files{"texts/fr/messages.gotext.json": fmt.Sprintf(
		`{"language": "fr", "messages": [{"id": "goodbye", "message": "Goodbye.", "translation": %q}]}`, goodbye)}
}

func saysGoodbye(want string) func(*testing.T, *Server) bool {
	return func(t *testing.T, srv *Server) bool {
		c := ftptest.Dial(t, srv.Addr().String())
		c.Command(200, "LANG fr")
		return c.Command(221, "QUIT") == want
	}
}

// entersAdmin reports whether the admin API accepts a client certificate.
func entersAdmin(client tls.Certificate) func(*testing.T, *Server) bool {
	return func(t *testing.T, srv *Server) bool {
		// Only the client's certificate is tested.
		conn, err := tls.Dial(
			"tcp", srv.AdminAddr().String(),
			&tls.Config{Certificates: []tls.Certificate{client}, InsecureSkipVerify: true})
		if err != nil {
			return false
		}
		defer conn.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1/api/v1/bans", nil)
		must.OK(t, err)
		if request.Write(conn) != nil {
			return false
		}
		response, err := http.ReadResponse(bufio.NewReader(conn), request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
}

// knowsProvider reports whether the admin listener trusts an OpenID Connect provider.
func knowsProvider(issuer string) func(*testing.T, *Server) bool {
	return func(t *testing.T, srv *Server) bool {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
		request, err := http.NewRequestWithContext(
			t.Context(), http.MethodGet, "http://"+srv.AdminAddr().String()+"/login/oidc", nil)
		must.OK(t, err)
		response, err := client.Do(request)
		must.OK(t, err)
		_ = response.Body.Close()
		return strings.HasPrefix(response.Header.Get("Location"), issuer+"?")
	}
}

// A change of any file in the configuration is noticed when Kubernetes replaces the mounted files, or the log reports
// that it needs a restart.
func TestReloadOfEachFile(t *testing.T) {
	t.Parallel()
	cases := fileCases(t)
	t.Run("all-keys", func(t *testing.T) {
		// The audit file is only written, so it has no case.
		tested := []string{"Audit/file"}
		for _, tc := range cases {
			tested = append(tested, tc.keys...)
		}
		found := fileKeys(reflect.TypeFor[config.Config]())
		for _, key := range found {
			if !slices.Contains(tested, key) {
				t.Errorf("no test case has %s", key)
			}
		}
		for _, key := range tested {
			if !slices.Contains(found, key) && key != "User/password_hash" {
				t.Errorf("missing %s", key)
			}
		}
	})
	for _, tc := range cases {
		t.Run(strings.NewReplacer("/", "-", " ", "-").Replace(tc.keys[0]), func(t *testing.T) { tc.test(t) })
	}
}

// The authorities of a directory change too. The test needs slapd.
func TestReloadOfDirectoryAuthorities(t *testing.T) {
	directory := servicetest.StartDirectory(t)
	ca := must.ReadFile(t, directory.CAFile)
	(&fileCase{
		tenant: fmt.Sprintf(
			"ca_file: VOLUME/ca.crt\n    auth: {ldap: {urls: [%q], base_dn: %q, bind_dn: %q, bind_password: %q}}",
			directory.LDAP, servicetest.BaseDN, servicetest.BindDN, servicetest.DirectoryPassword),
		before: files{"ca.crt": must.NewAuthority(t, "wrong").Certificate}, next: files{"ca.crt": ca},
		seen: loginSucceeds("bob", servicetest.DirectoryPassword),
	}).test(t)
}

// The certificate of an old FTP server changes too.
func TestReloadOfOldServerCertificate(t *testing.T) {
	old := servicetest.StartOldServer(t, "proftpd")
	cert := must.ReadFile(t, old.CAFile)
	with := func(ca string) files { return files{"ca.crt": ca, "users.yaml": "users: {}"} }
	(&fileCase{
		tenant: fmt.Sprintf(
			"users_file: VOLUME/users.yaml\n    ca_file: VOLUME/ca.crt\n    auth: {ftp: {address: %q}}", old.Address),
		before: with(must.NewAuthority(t, "wrong").Certificate), next: with(cert),
		seen: loginSucceeds(servicetest.OldUser, servicetest.OldPassword),
	}).test(t)
}

// fileKeys returns the keys in a configuration type that name files, prefixed with the names of their types.
func fileKeys(of reflect.Type) (keys []string) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
		return fileKeys(of.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	for field := range of.Fields() {
		key := field.Tag.Get("yaml")
		if strings.HasSuffix(key, "_file") || strings.HasSuffix(key, "_dir") || key == "file" {
			keys = append(keys, of.Name()+"/"+key)
		} else if key != "" || field.Anonymous {
			keys = append(keys, fileKeys(field.Type)...)
		}
	}
	return keys
}

func (tc *fileCase) test(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	v := &volume{dir: t.TempDir()}
	v.mount(t, tc.before)
	text := "listen: \"127.0.0.1:0\"\nmetrics_listen: \"\"\nadmin_socket: \"\"\ns3: {path_style: true}\n" + tc.top + "\n"
	if !strings.HasPrefix(tc.top, "limits:") {
		text += "limits: {address: {sessions: 0}, bans: {user_score: 0, address_score: 0}}\n"
	}
	text += fmt.Sprintf(
		"tenants:\n  acme:\n    hosts: [ftp.acme.example]\n    bucket: %s\n    %s\n", s.Bucket(t), tc.tenant)
	if !strings.HasPrefix(tc.tenant, "users:") {
		text += fmt.Sprintf("    users: {alice: {password_hash: %q}}\n", servicetest.PasswordHash().Reveal())
	}
	file := filepath.Join(t.TempDir(), "babelftp.yaml")
	must.WriteFile(t, file, strings.ReplaceAll(text, "VOLUME", v.dir))
	loader := config.NewLoader(file, nil)
	cfg, err := loader.Load()
	must.OK(t, err)
	log := &servicetest.Log{}
	srv := start(
		t, cfg, Options{AWS: s.AWSConfig(),
			Logger: slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watcher := &watch.Watcher{Files: loader.Files, Changed: loader.Changed, Reload: func(bool) error {
		return srv.Reload(ReloadFiles, loader.Load)
	}, Log: slog.New(slog.DiscardHandler)}
	watching.Go(func() { watcher.Run(ctx) })
	defer func() { cancel(); watching.Wait() }()
	seen := tc.seen
	if tc.restart != "" {
		seen = func(*testing.T, *Server) bool {
			return log.Has("a changed value or file needs a restart") && log.Has("key="+tc.restart+"\n")
		}
	}
	if seen(t, srv) {
		t.Fatal("the next content was read too early")
	}
	v.mount(t, tc.next)
	for range time.Tick(20 * time.Millisecond) {
		if seen(t, srv) {
			break
		}
	}
}
