package servicetest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Credentials of the user on each old FTP server.
const (
	OldUser     = "bob"
	OldPassword = "old horse"
)

// oldHash is the crypt(3) hash of OldPassword.
const oldHash = "$6$oldserver$eTchRnBoW/g0YF9z43W3O.ZaWi6ZOpOEeHR0QeQAgp5llc0KuEEvtHk9tDH0MGAzVPGJQoiMpt3O9bInANG1h."

// An OldServer is an FTP server from Debian that requires TLS. It has one user, whose password hash was imported
// from an old system.
type OldServer struct {
	Address string
	CAFile  string // its certificate, which contains no host name
	stop    func()
}

// OldServers returns the programs for [StartOldServer].
func OldServers() []string { return []string{"vsftpd", "proftpd", "pure-ftpd"} }

// StartOldServer starts an old FTP server. It stops at the end of the test. The test is skipped with -short, and
// without root, which the servers need to switch users.
func StartOldServer(tb testing.TB, program string) *OldServer {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short starts no FTP server; this test needs " + program)
	}
	if os.Geteuid() != 0 {
		tb.Skip("an FTP server works as its users, so this test needs root")
	}
	root, err := s3test.Repository()
	must.OK(tb, err)
	unpacked := filepath.Join(root, ".tools", "ftp-servers")
	if _, err := os.Stat(filepath.Join(unpacked, "complete")); err != nil {
		tb.Fatalf("%s is missing; run: make packages", unpacked)
	}
	for range portAttempts { // another process may take the free port first
		var s *OldServer
		if s, err = tryOldServer(tb, program, unpacked); err == nil {
			return s
		}
	}
	tb.Fatal(err)
	return nil
}

// Stop stops the server.
func (s *OldServer) Stop() { s.stop() }

func tryOldServer(tb testing.TB, program, unpacked string) (*OldServer, error) {
	dir := tb.TempDir()
	cert, key := must.Certificate(tb, &x509.Certificate{})
	s := &OldServer{Address: ftptest.FreeAddresses(tb, 1)[0], CAFile: filepath.Join(dir, "cert.pem")}
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, err
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer("DIR", dir, "PORT", port, "UNPACKED", unpacked, "HASH", oldHash)
	for name, text := range map[string]string{
		"cert.pem": cert, "key.pem": key, "pure.pem": cert + key, "passwd": string(passwd) + "bob:x:1234:1234::/:/bin/sh\n",
		"shadow":          fill.Replace("bob:HASH:19000:0:99999:7:::\n"),
		"pam.d/babelftp":  "auth required pam_unix.so nodelay\naccount required pam_unix.so\n",
		"vsftpd.conf":     fill.Replace(vsftpdConf),
		"proftpd.conf":    fill.Replace(proftpdConf),
		"proftpd.passwd":  fill.Replace("bob:HASH:1234:1234::/:/bin/sh\n"),
		"pureftpd.passwd": fill.Replace("bob:HASH:1234:1234::/::::::::::::\n"),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(os.Chmod(filepath.Join(dir, "passwd"), 0o644),
		os.Mkdir(filepath.Join(dir, "empty"), 0o755)); err != nil {
		return nil, err
	}
	if err := s.run(tb, map[string]string{
		// vsftpd authenticates with PAM, so it gets its own copies of the system files.
		"vsftpd": "exec unshare --mount sh -c 'mount --bind DIR/pam.d /etc/pam.d && mount --bind DIR/passwd /etc/passwd && " +
			"mount --bind DIR/shadow /etc/shadow && exec UNPACKED/usr/sbin/vsftpd DIR/vsftpd.conf'",
		"proftpd": "exec UNPACKED/usr/sbin/proftpd -n -c DIR/proftpd.conf",
		"pure-ftpd": "UNPACKED/usr/bin/pure-pw mkdb DIR/pureftpd.pdb -f DIR/pureftpd.passwd && exec UNPACKED/usr/sbin/pure-ftpd " +
			"-S 127.0.0.1,PORT -l puredb:DIR/pureftpd.pdb -Y 2 -2 DIR/pure.pem -E -H -u 1 -g DIR/pureftpd.pid",
	}[program], fill, unpacked); err != nil {
		return nil, err
	}
	return s, s.greets()
}

// run starts the server with a shell command.
func (s *OldServer) run(tb testing.TB, command string, fill *strings.Replacer, unpacked string) error {
	libraries, err := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "*-linux-gnu*"))
	if err != nil {
		return err
	}
	// The outer shell kills the server when its input is closed. This happens even if the test process is killed.
	shell := exec.Command("sh", "-c", `sh -c "$1" & read -r end; kill -9 $!; wait`, "sh", fill.Replace(command))
	shell.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(libraries, ":"))
	shell.Stdout, shell.Stderr = tb.Output(), tb.Output()
	input, err := shell.StdinPipe()
	if err != nil {
		return err
	}
	if err := shell.Start(); err != nil {
		return err
	}
	s.stop = func() {
		_ = input.Close()
		_ = shell.Wait() // the process was killed
	}
	tb.Cleanup(s.stop)
	return nil
}

// greets waits for the greeting.
func (s *OldServer) greets() error {
	ended := time.After(startTimeout)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		c, err := textproto.Dial("tcp", s.Address)
		if err == nil {
			_, _, err = c.ReadResponse(220)
			_ = c.Close()
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("the old server is not ready: %w", err)
		case <-ticker.C:
		}
	}
}

const vsftpdConf = `
listen=YES
listen_address=127.0.0.1
listen_port=PORT
background=NO
anonymous_enable=NO
local_enable=YES
pam_service_name=babelftp
secure_chroot_dir=DIR/empty
seccomp_sandbox=NO
ssl_enable=YES
rsa_cert_file=DIR/cert.pem
rsa_private_key_file=DIR/key.pem
force_local_logins_ssl=YES
`

const proftpdConf = `
ServerType standalone
DefaultAddress 127.0.0.1
Port PORT
ModulePath UNPACKED/usr/lib/proftpd
LoadModule mod_tls.c
PidFile DIR/proftpd.pid
ScoreboardFile DIR/proftpd.scoreboard
DelayEngine off
WtmpLog off
User root
Group root
AuthOrder mod_auth_file.c
AuthUserFile DIR/proftpd.passwd
UseReverseDNS off
TLSEngine on
TLSRequired on
TLSECCertificateFile DIR/cert.pem
TLSECCertificateKeyFile DIR/key.pem
SystemLog DIR/proftpd.log
`
