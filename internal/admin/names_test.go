package admin

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Every kind of login names the administrator: a password, a cookie, and the subject of a certificate.
func TestNames(t *testing.T) {
	files, roots := underTLS(t)
	authority := must.NewAuthority(t, "administrators")
	files.ClientCAFile = filepath.Join(t.TempDir(), "ca.pem")
	must.WriteFile(t, files.ClientCAFile, authority.Certificate)
	_, address := serve(t, config.Admin{Users: users(t, password), TLS: files},
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, administrator(r)) }))
	client := func(subject *pkix.Name) *http.Client {
		encryption := &tls.Config{RootCAs: roots}
		if subject != nil {
			pair, err := tls.X509KeyPair(pem(authority.Issue(&x509.Certificate{Subject: *subject})))
			must.OK(t, err)
			encryption.Certificates = []tls.Certificate{pair}
		}
		transport := &http.Transport{TLSClientConfig: encryption}
		t.Cleanup(transport.CloseIdleConnections)
		jar, _ := cookiejar.New(nil)
		return &http.Client{Transport: transport, Jar: jar}
	}
	base := "https://" + address
	browser := client(nil)
	sendPage(t, browser, http.MethodPost, base+"/login",
		url.Values{"user": {administratorName}, "password": {password}})
	for _, tc := range []struct {
		label   string
		client  *http.Client
		headers []string
		want    string
	}{
		{"password", client(nil), []string{basic(administratorName, password)}, administratorName},
		{"cookie", browser, nil, administratorName},
		{"certificate", client(&pkix.Name{CommonName: "bob", Organization: []string{"Acme"}}), nil, "bob"},
		{"certificate without a common name", client(&pkix.Name{Organization: []string{"Acme"}}), nil, "O=Acme"},
	} {
		got := sendPage(t, tc.client, http.MethodGet, base+Root+"/server", nil, tc.headers...)
		if got.status != 200 || got.body != tc.want {
			t.Errorf("%s: %d %q, want %q", tc.label, got.status, got.body, tc.want)
		}
	}
	// Browsers must not show their own password dialog.
	for header, want := range map[string]string{"Sec-Fetch-Site: same-origin": `Cookie realm="babelftp"`,
		"Accept: */*": `Basic realm="babelftp", charset="UTF-8"`} {
		got := sendPage(t, client(nil), http.MethodGet, base+Root+"/server", nil, header)
		if challenge := got.header.Get("WWW-Authenticate"); got.status != 401 || challenge != want {
			t.Errorf("%s: %d %q, want %q", header, got.status, challenge, want)
		}
	}
}
