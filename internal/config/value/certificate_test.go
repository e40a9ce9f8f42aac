package value

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestClientCertificate(t *testing.T) {
	uri, err := url.Parse("spiffe://acme.example/till-7")
	must.OK(t, err)
	text, _ := must.NewAuthority(t, "root").Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "alice, the first", Organization: []string{"Acme"},
			OrganizationalUnit: []string{"Tills"}},
		EmailAddresses: []string{"alice@acme.example"}, DNSNames: []string{"Till-7.acme.example"},
		URIs: []*url.URL{uri},
	})
	block, _ := pem.Decode([]byte(text))
	cert, err := x509.ParseCertificate(block.Bytes)
	must.OK(t, err)
	sum := sha256.Sum256(cert.Raw)
	digits := strings.ToUpper(hex.EncodeToString(sum[:]))
	var colons []string
	for i := 0; i < len(digits); i += 2 {
		colons = append(colons, digits[i:i+2])
	}
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"sha256:" + digits, true},
		{"sha256:" + strings.ToLower(digits), true},
		{"sha256:" + strings.Join(colons, ":"), true}, // as openssl x509 -fingerprint -sha256 writes it
		{"sha256:" + strings.Repeat("00", sha256.Size), false},
		{`subject:CN=alice\, the first,OU=Tills,O=Acme`, true},
		{`subject:CN=alice\, the first`, false},
		{"subject:O=Acme", false},
		{"email:alice@acme.example", true},
		{"email:bob@acme.example", false},
		{"dns:till-7.acme.example", true},
		{"dns:TILL-7.ACME.EXAMPLE", true},
		{"dns:acme.example", false},
		{"uri:spiffe://acme.example/till-7", true},
		{"uri:spiffe://acme.example/till", false},
	} {
		var c ClientCertificate
		if err := c.UnmarshalText([]byte(tt.text)); err != nil {
			t.Error(err)
		} else if got := c.Matches(cert); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.text, got, tt.want)
		}
	}
	for _, text := range []string{"", "alice", "CN=alice", "sha256:", "sha256:00",
		"sha256:" + strings.Repeat("zz", sha256.Size), "subject:alice", "subject:", "email:alice", "uri:till-7", "dns:",
		"sha1:00"} {
		if err := new(ClientCertificate).UnmarshalText([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), "does not select a certificate: write sha256:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if (ClientCertificate{}).Matches(cert) {
		t.Error("the zero value matches a certificate")
	}
}
