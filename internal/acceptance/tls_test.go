package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// thereAndBack uploads files by a job with explicit TLS, and downloads them to files with ".back" behind their names.
func thereAndBack(
	t *testing.T, s *site,
	job func(c *connection, verb string, names ...string) invocation, version string, files []move,
) {
	t.Helper()
	w := &worker{folder: newFolder(t), client: client{job: job}, site: s, connection: s.connection(t)}
	w.connection.tls, w.connection.version = "explicit", version
	var back []move
	for _, f := range files {
		back = append(back, move{f.to, f.from + ".back"})
	}
	must.OK(t, errors.Join(w.run("upload", pairs(files)...), w.run("download", pairs(back)...)))
}

// pairs are moves as a command line has them.
func pairs(files []move) []string {
	var args []string
	for _, f := range files {
		args = append(args, f.from, f.to)
	}
	return args
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must.OK(t, err)
	return port
}

// TestSessionReuse lets clients upload that resume the TLS session of the control connection, where the tenant
// requires it.
func TestSessionReuse(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), "    tls: {require_session_reuse: true}")
	uploads := map[string]func(t *testing.T, version string, files ...move){
		"ruby": func(t *testing.T, version string, files ...move) {
			thereAndBack(t, s, rubyJob, version, files)
		},
		"curl": func(t *testing.T, version string, files ...move) {
			c := newCurl(t, s, way{"passive", "explicit"})
			c.args = append(c.args, "--tlsv"+version, "--tls-max", version)
			c.upload(files...)
		},
		"lftp": func(t *testing.T, version string, files ...move) {
			l := newLftp(t, s, way{"passive", "explicit"})
			l.setup = script("set ssl:priority NORMAL:-VERS-ALL:+VERS-TLS"+version) + l.setup
			l.upload(files...)
		},
	}
	for _, tt := range []struct {
		client, version string
		files           int
	}{
		{"lftp", "1.2", 3},
		{"lftp", "1.3", 3},
		{"ruby", "1.2", 3}, // under TLS 1.3 it takes a new ticket for each, which it gets by downloads only
		{"curl", "1.3", 1}, // the same; under TLS 1.2 it takes no tickets
	} {
		name := tt.client + "-" + tt.version
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			local := newFolder(t)
			data := content(smallSize)
			var files []move
			for i := range tt.files {
				remote := fmt.Sprintf("%s-%d", name, i)
				files = append(files, move{local.write(remote, data), "/" + remote})
			}
			uploads[tt.client](t, tt.version, files...)
			for _, f := range files {
				s.mustStore(t, f.to[1:], data)
			}
		})
	}
}

// TestLoginByCertificate lets clients log in without a password, and upload.
func TestLoginByCertificate(t *testing.T) {
	t.Parallel()
	local := newFolder(t)
	root := must.NewAuthority(t, "root")
	cert, key := root.Issue(&x509.Certificate{Subject: pkix.Name{CommonName: "till"}})
	till := local.write("till.pem", []byte(cert+key))
	s := newSite(t, s3test.Start(t, "minio"), `      till: {certificates: ["subject:CN=till"]}`,
		fmt.Sprintf("    tls: {client_certificates: {ca_file: %q}}", local.write("ca.crt", []byte(root.Certificate))))
	data := content(smallSize)
	file := local.write("file", data)
	clients := map[string]func(t *testing.T, version, name string){
		"curl": func(t *testing.T, version, name string) {
			c := newCurl(t, s, way{"passive", "explicit"})
			c.args = append(c.args, "--tlsv"+version, "--tls-max", version, "--user", "till@acme:", "--cert", till)
			c.upload(move{file, name})
		},
		"lftp": func(t *testing.T, version, name string) {
			l := newLftp(t, s, way{"passive", "explicit"})
			l.setup = script(
				"set ssl:priority NORMAL:-VERS-ALL:+VERS-TLS"+version, "set ssl:cert-file "+lftpQuote(till),
				"set ssl:key-file "+lftpQuote(till)) +
				strings.Replace(
					l.setup, "--user alice@acme --password "+lftpQuote(password), "--user till@acme --password none", 1)
			l.upload(move{file, name})
		},
	}
	for client, upload := range clients {
		for _, version := range []string{"1.2", "1.3"} {
			name := client + "-" + version
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				upload(t, version, "/"+name)
				s.mustStore(t, name, data)
			})
		}
	}
}

// TestLargeClientCertificates: a stranger who shows many certificates, or one with many names, gets no session that
// keeps them.
func TestLargeClientCertificates(t *testing.T) {
	t.Parallel()
	authority := must.NewAuthority(t, "stranger")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must.WriteFile(t, ca, must.NewAuthority(t, "ours").Certificate)
	s := newSite(t, s3test.Start(t, "minio"), "    tls: {client_certificates: {ca_file: "+strconv.Quote(ca)+"}}")
	links := make([]*url.URL, 1000)
	for i := range links {
		links[i] = &url.URL{Scheme: "a", Host: "b"}
	}
	for name, tc := range map[string]struct {
		template x509.Certificate
		between  int
		admitted bool
	}{
		"usual":      {x509.Certificate{}, 2, true},
		"many":       {x509.Certificate{}, 100, false},
		"many-names": {x509.Certificate{URIs: links}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			certificate, key := authority.Issue(&tc.template)
			pair, err := tls.X509KeyPair(
				[]byte(certificate+strings.Repeat(authority.Certificate, tc.between)), []byte(key))
			must.OK(t, err)
			// any server will do
			conn, err := tls.Dial(
				"tcp", s.implicit, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
			reply := ""
			if err == nil {
				defer conn.Close()
				reply, err = ftptest.NewConn(conn).Reply()
			}
			if admitted := err == nil && strings.HasPrefix(reply, "220"); admitted != tc.admitted {
				t.Errorf("the session begins with %q, %v", reply, err)
			}
		})
	}
}
