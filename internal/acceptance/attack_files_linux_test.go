package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/certtest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// withoutRoot lets the modes of files count for the server, also where root runs the tests.
func withoutRoot() (env []string) {
	if os.Geteuid() != 0 {
		return nil
	}
	return []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}
}

// TestKeyThatBecomesReadable renews a certificate whose key the server may not read at first. A change of the mode is
// enough, and other changes of the configuration count again.
func TestKeyThatBecomesReadable(t *testing.T) {
	t.Parallel()
	s := &reloadSite{t: t, site: &site{env: withoutRoot()}}
	s.open(t, s3test.Start(t, "minio"))
	dir := filepath.Dir(s.ca)
	s.file = filepath.Join(dir, "babelftp.yaml")
	serial := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", s.implicit, &tls.Config{InsecureSkipVerify: true}) // it looks at the serial number only
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	const renewed = 4711
	cert, key := certtest.New(t, &x509.Certificate{
		SerialNumber: big.NewInt(renewed), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	hidden := filepath.Join(dir, "tls.key")
	if err := os.WriteFile(hidden+".new", []byte(key), 0); err != nil {
		t.Fatal(err)
	}
	s.after(refused, func() {
		if err := os.Rename(hidden+".new", hidden); err != nil {
			t.Fatal(err)
		}
		certtest.Replace(t, filepath.Join(dir, "tls.crt"), cert)
	})
	if got := serial(); got == renewed {
		t.Error("a certificate is shown whose key cannot be read")
	}
	s.edit(refused, "Welcome to Acme", "Hello from Acme")
	s.after(reloaded, func() {
		if err := os.Chmod(hidden, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if got := serial(); got != renewed {
		t.Errorf("the certificate is %d, want %d", got, renewed)
	}
}
