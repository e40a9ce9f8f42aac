package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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

func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must.OK(t, err)
	return port
}

// TestSessionReuse uploads with lftp, which resumes the TLS session of the control connection, to a tenant that
// requires it.
func TestSessionReuse(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), "    tls: {require_session_reuse: true}")
	for _, version := range []string{"1.2", "1.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			local := newFolder(t)
			data := content(smallSize)
			var files []move
			for i := range 3 {
				remote := fmt.Sprintf("%s-%d", version, i)
				files = append(files, move{local.write(remote, data), "/" + remote})
			}
			l := newLftp(t, s, way{"passive", "explicit"})
			l.setup = script("set ssl:priority NORMAL:-VERS-ALL:+VERS-TLS"+version) + l.setup
			l.upload(files...)
			for _, f := range files {
				s.mustStore(t, f.to[1:], data)
			}
		})
	}
}

// TestLoginByCertificate logs in with curl without a password and uploads a file.
func TestLoginByCertificate(t *testing.T) {
	t.Parallel()
	local := newFolder(t)
	root := must.NewAuthority(t, "root")
	cert, key := root.Issue(&x509.Certificate{Subject: pkix.Name{CommonName: "till"}})
	s := newSite(t, s3test.Start(t, "minio"), `      till: {certificates: ["subject:CN=till"]}`,
		fmt.Sprintf("    tls: {client_certificates: {ca_file: %q}}", local.write("ca.crt", []byte(root.Certificate))))
	data := content(smallSize)
	c := newCurl(t, s, way{"passive", "explicit"})
	c.args = append(c.args, "--user", "till@acme:", "--cert", local.write("till.pem", []byte(cert+key)))
	c.upload(move{local.write("file", data), "/by-certificate"})
	s.mustStore(t, "by-certificate", data)
}

// TestLargeClientCertificates: a client with many certificates, or with one that has many names, must not get a
// session that keeps them in memory.
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
				t.Errorf("got greeting %q, %v", reply, err)
			}
		})
	}
}
