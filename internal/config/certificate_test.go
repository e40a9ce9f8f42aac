package config

import (
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func TestCertificate(t *testing.T) {
	cert, key := must.Certificate(t, &x509.Certificate{})
	_, otherKey := must.Certificate(t, &x509.Certificate{})
	const pair = "cert_file: tls.crt, key_file: tls.key"
	for _, tc := range []struct {
		name, tls, cert, key string
		want                 string // expected in the problem
	}{
		{"pair", pair + ", required: true, min_version: 1.3", cert, key, ""},
		{"suites", pair + ", cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, " +
			"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA]", cert, key, ""},
		{"insecure-suite", pair + ", cipher_suites: [TLS_RSA_WITH_RC4_128_SHA]", cert, key,
			`:1:62: tls.cipher_suites.0: unknown value "TLS_RSA_WITH_RC4_128_SHA": `},
		{"key-of-another", pair, cert, otherKey, "tls.key: tls: private key does not match public key"},
		{"no-certificate", pair, "", key,
			"tls.key: tls: failed to find any PEM data in certificate input"},
		{"acme", `required: true, acme: {hosts: [FTP.acme.example], tls_listen: ":443", ` +
			`eab: "7:c2VjcmV0"}`, "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg, err := load(t, "tls: {"+tc.tls+"}"+minimal, map[string]string{"tls.crt": tc.cert, "tls.key": tc.key})
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want == "" && cfg.TLS.CertFile != "" && !filepath.IsAbs(cfg.TLS.CertFile):
				t.Errorf("%s is not relative to the folder of the configuration", cfg.TLS.CertFile)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestCertificateOfATenant(t *testing.T) {
	cert, key := must.Certificate(t, &x509.Certificate{})
	_, otherKey := must.Certificate(t, &x509.Certificate{})
	files := map[string]string{"tls.crt": cert, "tls.key": key, "acme.crt": cert, "acme.key": key,
		"other.key": otherKey}
	const (
		server = "tls: {cert_file: tls.crt, key_file: tls.key}"
		pair   = "    tls: {cert_file: acme.crt, key_file: acme.key}\n"
	)
	for _, tc := range []struct {
		name, server, tenant string
		want                 string // the problem without the position
	}{
		{"pair", server, "    hosts: [ftp.acme.example]\n" + pair, ""},
		{"none-of-its-own", "", "    tls: {strict_data_eof: false}\n", ""},
		{"without-hosts", server, pair, "tls: requires hosts: write the names"},
		{"with-an-address", server, "    hosts: [203.0.113.7]\n" + pair, "tls: requires hosts: write the names"},
		{"without-a-certificate-of-the-server", "", "    hosts: [ftp.acme.example]\n" + pair,
			"tls: requires a certificate of the server too"},
		{
			"key-of-another", server,
			"    hosts: [ftp.acme.example]\n    tls: {cert_file: acme.crt, key_file: other.key}\n",
			"tls.cert_file: cannot use the certificate in ",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(tc.server+minimal, "    bucket:", tc.tenant+"    bucket:", 1)
			cfg, err := load(t, text, files)
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.name == "none-of-its-own" && *cfg.Tenants["acme"].TLS.StrictDataEOF:
				t.Error("strict_data_eof is true")
			case tc.want == "" && strings.Contains(tc.tenant, "cert_file") &&
				!filepath.IsAbs(cfg.Tenants["acme"].TLS.CertFile):
				t.Errorf("%s is not relative to the folder of the configuration", cfg.Tenants["acme"].TLS.CertFile)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), ": tenants.acme."+tc.want)):
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestClientCertificates(t *testing.T) {
	cert, key := must.Certificate(t, &x509.Certificate{})
	root, other := must.NewAuthority(t, "root"), must.NewAuthority(t, "other")
	files := map[string]string{
		"tls.crt": cert, "tls.key": key, "ca.crt": root.Certificate, "ca.crl": root.Revoke(&x509.RevocationList{}),
		"other.crl": other.Revoke(&x509.RevocationList{}), "none.crt": "",
	}
	const (
		pair = "cert_file: tls.crt, key_file: tls.key"
		list = `      alice: {certificates: ["subject:CN=alice", "email:alice@acme.example"]}` + "\n"
	)
	for _, tc := range []struct {
		name, server, tenant, user string
		want                       string // the problem without the line
	}{
		{"server", pair + ", client_certificates: {ca_file: ca.crt, crl_file: ca.crl, required: true}", "", "", ""},
		{"user", pair + ", client_certificates: {ca_file: ca.crt}", "", list, ""},
		{"tenant", pair, "tls: {client_certificates: {ca_file: ca.crt, crl_file: ca.crl, required: true}}", list, ""},
		{"tenant-requires-those-of-the-server", pair + ", client_certificates: {ca_file: ca.crt}",
			"tls: {client_certificates: {required: true}}", "", ""},
		{"tls-is-missing", "client_certificates: {ca_file: ca.crt}", "", "",
			"tls.client_certificates: requires a certificate of the server"},
		{"authorities-are-missing", pair + ", client_certificates: {required: true}", "", "",
			"tls.client_certificates.required: requires ca_file"},
		{"tenant-has-no-authorities", pair, "tls: {client_certificates: {required: true}}", "",
			"tenants.acme.tls.client_certificates.required: requires ca_file"},
		{"list-without-authorities", pair + ", client_certificates: {crl_file: ca.crl}", "", "",
			"tls.client_certificates.crl_file: requires ca_file"},
		{"no-such-file", pair + ", client_certificates: {ca_file: nowhere}", "", "",
			"tls.client_certificates.ca_file: cannot be used: open "},
		{"empty-file", pair + ", client_certificates: {ca_file: none.crt}", "", "",
			"tls.client_certificates.ca_file: cannot be used: "},
		{"list-of-another", pair + ", client_certificates: {ca_file: ca.crt, crl_file: other.crl}", "", "",
			"tls.client_certificates.crl_file: cannot be used: "},
		{"user-without-authorities", pair, "", list,
			"tenants.acme.users.alice.certificates: requires tls.client_certificates.ca_file"},
		{"user-with-neither", pair, "", "      alice: {home: /}\n",
			"tenants.acme.users.alice.password_hash: is missing"},
		{"no-certificate", pair, "", `      alice: {certificates: [alice]}` + "\n",
			`tenants.acme.users.alice.certificates.0: "alice" does not select a certificate`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := "tls: {" + tc.server + "}" + minimal
			if tc.tenant != "" {
				text = strings.Replace(text, "    bucket:", "    "+tc.tenant+"\n    bucket:", 1)
			}
			if tc.user != "" {
				text = text[:strings.Index(text, "      alice:")] + tc.user
			}
			cfg, err := load(t, text, files)
			switch {
			case tc.want == "" && err != nil:
				t.Fatal(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), ": "+tc.want)):
				t.Errorf("got  %v\nwant %s", err, tc.want)
			case tc.name == "server" && !filepath.IsAbs(cfg.TLS.ClientCertificates.CRLFile):
				t.Errorf("%s is not relative to the folder of the configuration", cfg.TLS.ClientCertificates.CRLFile)
			}
		})
	}
}

// A relative folder of ACME is below the folder to which the systemd service can write, and not next to the
// configuration.
func TestFolderOfACME(t *testing.T) {
	for folder, want := range map[string]string{
		"":                   "/var/lib/babelftp/acme",
		"folder: .,":         "/var/lib/babelftp",
		"folder: keys,":      "/var/lib/babelftp/keys",
		"folder: /srv/acme,": "/srv/acme",
	} {
		cfg, err := load(t, `tls: {acme: {hosts: [ftp.acme.example], `+folder+` http_listen: ":80"}}`+minimal, nil)
		if err != nil {
			t.Errorf("%s: %v", folder, err)
		} else if got := cfg.TLS.ACME.Folder; got != want {
			t.Errorf("%s: got %s, want %s", folder, got, want)
		}
	}
}

// By default, ACME obtains certificates for the hosts of all tenants without their own certificate.
func TestHostsOfACME(t *testing.T) {
	const hash = "{password_hash: \"" + hash + "\"}}"
	cert, key := must.Certificate(t, &x509.Certificate{})
	cfg, err := load(t, `tls: {acme: {http_listen: ":80"}}
tenants:
  umbrella: {bucket: umbrella, hosts: [FTP.umbrella.example, 192.0.2.1, ftp2.umbrella.example], users: {ute: `+hash+`}
  acme: {bucket: acme, hosts: [ftp.acme.example], users: {alice: `+hash+`}
  zebra: {bucket: zebra, hosts: [ftp.zebra.example], tls: {cert_file: z.crt, key_file: z.key}, users: {zoe: `+hash+`}
`, map[string]string{"z.crt": cert, "z.key": key})
	must.OK(t, err)
	if got, want := strings.Join(cfg.TLS.ACME.Hosts, " "),
		"ftp.acme.example ftp.umbrella.example ftp2.umbrella.example"; got != want {
		t.Errorf("got hosts %s, want %s", got, want)
	}
}
