package doctor_test

import (
	"cmp"
	"crypto/x509"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/internal/doctor"
)

// TestBrokenVsftpd uses settings that break vsftpd in ways that operators report.
func TestBrokenVsftpd(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings []string
		tls      bool
		scheme   string // default: ftp
		want     []string
	}{
		{"another-address-for-PASV", []string{"pasv_address=192.0.2.9"}, false, "", []string{"!passive-unreached"}},
		{"no-passive-mode", []string{"pasv_enable=NO"}, false, "", []string{"!command-broken", "!command-broken"}},
		{"no-active-mode", []string{"port_enable=NO"}, false, "", []string{"active-failed"}},
		{"no-data-connections", []string{"pasv_enable=NO", "port_enable=NO"}, false, "",
			[]string{"!command-broken", "!command-broken", "active-failed"}},
		{"commands-denied", []string{"cmds_denied=EPSV,PASV,MKD"}, false, "", []string{"!command-broken", "!command-broken"}},
		{"uploads-denied", []string{"cmds_denied=STOR"}, false, "", []string{"!command-refused"}},
		{"read-only", []string{"write_enable=NO"}, false, "", []string{"!command-refused"}},
		{"no-listings", []string{"dirlist_enable=NO"}, false, "", []string{"!command-refused"}},
		{"no-downloads", []string{"download_enable=NO"}, false, "", []string{"!command-refused"}},
		{"files-that-nobody-may-read", []string{"anon_umask=077"}, false, "", []string{"!command-refused"}},
		{"no-anonymous-users", []string{"anonymous_enable=NO", "local_enable=YES"}, false, "", []string{"!login-refused"}},
		{"implicit-TLS", []string{"implicit_ssl=YES"}, true, "", []string{"!protocol-mismatch"}},
		{"implicit-TLS-for-its-client", []string{"implicit_ssl=YES"}, true, "ftps", nil},
		{"explicit-TLS-for-an-implicit-client", nil, true, "ftps", []string{"!protocol-mismatch"}},
		{"no-TLS-for-an-implicit-client", nil, false, "ftps", []string{"!protocol-mismatch"}},
		{"another-banner", []string{"ftpd_banner=Bienvenue"}, false, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var authorities *x509.CertPool
			if test.tls {
				var more []string
				more, authorities = withTLS(t, &x509.Certificate{})
				test.settings = append(more, test.settings...)
			}
			s := vsftpd(t, test.settings...)
			got := examine(t, cmp.Or(test.scheme, "ftp")+"://"+s.address, doctor.Options{Authorities: authorities})
			want(t, got, test.want...)
			if !slices.Contains(got, "!command-refused") {
				s.clean(t)
			}
		})
	}
}
