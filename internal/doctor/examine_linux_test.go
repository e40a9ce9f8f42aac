package doctor_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// startTimeout limits the wait for a server on a busy machine.
const startTimeout = time.Minute

// A server is an FTP server from Debian.
type server struct {
	address string // control connection
	dir     string // directory of the anonymous user
	port    int    // first of ten passive ports
}

// run starts a server and waits for its greeting.
func run(t *testing.T, address, program string, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no server; this test needs " + program)
	}
	cmd := exec.Command(program, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if libraries, err := filepath.Glob("../../.tools/ftp-servers/usr/lib/*-linux-gnu*"); err == nil && len(libraries) > 0 {
		cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+libraries[0])
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // includes the processes of its sessions
	cmd.WaitDelay = startTimeout
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; run: make packages", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the output has the reason
		close(ended)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if <-ended; t.Failed() {
			t.Logf("%s: %s", program, &output)
		}
	})
	deadline := time.After(startTimeout)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s exited: %s", program, &output)
		case <-deadline:
			t.Fatalf("%s does not respond: %v", program, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// write writes a file and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.WriteFile(t, path, text)
	return path
}

// public creates a directory that any user of the system may write to.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "babelftp-doctor-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// vsftpd starts vsftpd with these settings.
func vsftpd(t *testing.T, settings ...string) server {
	t.Helper()
	const host = "127.0.0.1"
	s := server{dir: public(t), port: int(ftptest.FreePorts(t, 10, host))}
	control := int(ftptest.FreePorts(t, 1, host))
	s.address = fmt.Sprintf("%s:%d", host, control)
	empty := t.TempDir()
	conf := fmt.Sprintf("listen=YES\nlisten_address=%s\nlisten_port=%d\nanonymous_enable=YES\nlocal_enable=NO\n"+
		"write_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\nanon_other_write_enable=YES\n"+
		"anon_umask=022\nanon_root=%s\nallow_writeable_chroot=YES\npasv_min_port=%d\npasv_max_port=%d\nbackground=NO\n"+
		"run_as_launching_user=YES\nseccomp_sandbox=NO\nsecure_chroot_dir=%s\nftp_username=nobody\nxferlog_enable=NO\n%s\n",
		host, control, s.dir, s.port, s.port+9, empty, strings.Join(settings, "\n"))
	run(t, s.address, "/usr/sbin/vsftpd", write(t, "vsftpd.conf", conf))
	return s
}

// withTLS returns settings of vsftpd and the authority that a client needs.
func withTLS(t *testing.T, template *x509.Certificate) (settings []string, authorities *x509.CertPool) {
	t.Helper()
	if template.IPAddresses == nil {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().AddDate(0, 1, 0)
	}
	cert, key := must.Certificate(t, template)
	return []string{"ssl_enable=YES", "allow_anon_ssl=YES", "require_ssl_reuse=NO",
		"rsa_cert_file=" + write(t, "tls.crt", cert), "rsa_private_key_file=" + write(t, "tls.key", key)}, must.CertPool(cert)
}

// examine returns the IDs of the findings at an address, with "!" if they are wrong, and checks that nothing is
// left.
func examine(t *testing.T, address string, o doctor.Options) []string {
	t.Helper()
	if !strings.Contains(address, "://") {
		address = "ftp://" + address
	}
	target, err := doctor.ParseTarget(address)
	must.OK(t, err)
	if target.User != "anonymous" {
		target.Password = "secret"
	}
	o.Insecure = o.Authorities == nil
	o.Progress = func(step string) { t.Log(step) }
	if o.Samples == 0 {
		o.Samples, o.Logins = 4, 2
	}
	found, err := doctor.Examine(t.Context(), target, o)
	must.OK(t, err)
	return ids(t, found)
}

// ids returns the IDs of the findings, with "!" if they are wrong.
func ids(t *testing.T, found *doctor.Findings) []string {
	t.Helper()
	ids := []string{}
	for _, f := range found.Shown(text) {
		t.Logf("%s: %s %q", f.ID, f.Cause, f.Evidence)
		id := string(f.ID)
		if f.Level == doctor.Wrong {
			id = "!" + id
		}
		ids = append(ids, id)
	}
	return ids
}

// clean checks that the examination left nothing.
func (s server) clean(t *testing.T) {
	t.Helper()
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) > 0 {
		t.Errorf("unexpected files left: %v, %v", entries, err)
	}
}

// want compares findings, ignoring notes about features that the server lacks.
func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	got = slices.DeleteFunc(got, func(id string) bool { return id == "feature-missing" || id == "tls-missing" })
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// The FTP servers of Debian have no problems in their default configuration.
func TestServersOfDebian(t *testing.T) {
	t.Parallel()
	t.Run("vsftpd", func(t *testing.T) {
		s := vsftpd(t)
		want(t, examine(t, s.address, doctor.Options{Idle: time.Second}))
		s.clean(t)
	})
	t.Run("vsftpd-tls", func(t *testing.T) {
		settings, authorities := withTLS(t, &x509.Certificate{})
		s := vsftpd(t, settings...)
		want(t, examine(t, s.address, doctor.Options{Authorities: authorities}))
		s.clean(t)
	})
	t.Run("vsftpd-that-wants-TLS-sessions-resumed", func(t *testing.T) {
		settings, authorities := withTLS(t, &x509.Certificate{})
		s := vsftpd(t, append(settings, "require_ssl_reuse=YES")...)
		want(t, examine(t, s.address, doctor.Options{Authorities: authorities}), "tls-reuse")
		s.clean(t)
	})
	t.Run("vsftpd-without-MKD", func(t *testing.T) {
		s := vsftpd(t, "anon_mkdir_write_enable=NO")
		want(t, examine(t, s.address, doctor.Options{}))
		s.clean(t)
	})
	t.Run("localhost", func(t *testing.T) {
		s := vsftpd(t)
		want(t, examine(t, strings.Replace(s.address, "127.0.0.1", "localhost", 1), doctor.Options{}))
		s.clean(t)
	})
	t.Run("one-session-at-a-time", func(t *testing.T) {
		s := vsftpd(t, "max_per_ip=1")
		want(t, examine(t, s.address, doctor.Options{}))
		s.clean(t)
	})
	t.Run("proftpd", func(t *testing.T) {
		s := server{dir: public(t), port: int(ftptest.FreePorts(t, 10))}
		control := ftptest.FreePorts(t, 1)
		s.address = fmt.Sprintf("127.0.0.1:%d", control)
		run(t, s.address, "../../.tools/ftp-servers/usr/sbin/proftpd", "--nodaemon", "--config", write(t, "proftpd.conf",
			fmt.Sprintf("ServerType standalone\nDefaultAddress 127.0.0.1\nPort %d\nUseIPv6 off\nUser nobody\nGroup nogroup\n"+
				"PassivePorts %d %d\nScoreboardFile none\nWtmpLog off\nTransferLog none\nAllowStoreRestart on\n"+
				"AuthOrder mod_auth_unix.c\nPidFile %s\nDelayEngine off\nUseFtpUsers off\n"+
				"<Anonymous %s>\nUser nobody\nGroup nogroup\nUserAlias anonymous nobody\nRequireValidShell off\n"+
				"AllowOverwrite on\n</Anonymous>\n",
				control, s.port, s.port+9, filepath.Join(t.TempDir(), "pid"), s.dir)))
		want(t, examine(t, s.address, doctor.Options{}))
		s.clean(t)
	})
	t.Run("pure-ftpd", func(t *testing.T) {
		s := pureFTPd(t)
		want(t, examine(t, s.address, doctor.Options{}))
		s.clean(t)
	})
}

// Problems of a certificate are found, and then only anonymous users log in.
func TestCertificates(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name, user string
		template   x509.Certificate
		untrusted  bool
		want       []string
	}{
		{"expired", "", x509.Certificate{NotAfter: now.Add(-time.Minute)}, false,
			[]string{"!certificate-expired"}},
		{"expires-soon", "", x509.Certificate{NotAfter: now.Add(20 * time.Minute)}, false,
			[]string{"!certificate-expired"}},
		{"another-name", "", x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 9)}}, false,
			[]string{"!certificate-name"}},
		{"untrusted", "", x509.Certificate{}, true, []string{"!certificate"}},
		{"untrusted-and-a-password", "alice@", x509.Certificate{}, true, []string{"!certificate", "!password-kept"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings, authorities := withTLS(t, &test.template)
			if test.untrusted {
				authorities = x509.NewCertPool()
			}
			s := vsftpd(t, settings...)
			want(t, examine(t, test.user+s.address, doctor.Options{Authorities: authorities}), test.want...)
			s.clean(t)
		})
	}
}

// An examination that Ctrl-C interrupts leaves nothing, whatever it was doing.
func TestInterrupted(t *testing.T) {
	s := vsftpd(t)
	target, err := doctor.ParseTarget("ftp://" + s.address)
	must.OK(t, err)
	for _, step := range []string{"USER 1", "MKD", "PASV", "PORT", "STOR", "STOR doctor.bin", "RETR", "STOR doctor-", "MLSD",
		"RNTO", "DELE"} {
		t.Run(strings.ReplaceAll(step, " ", "-"), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			seen := false
			o := doctor.Options{Samples: 2, Logins: 1, Progress: func(s string) {
				if strings.HasPrefix(s, step) {
					seen = true
					cancel()
				}
			}}
			found, err := doctor.Examine(ctx, target, o)
			if cancel(); !seen || !errors.Is(err, context.Canceled) {
				t.Errorf("found: %t, %v", seen, err)
			}
			want(t, ids(t, found))
			s.clean(t)
		})
	}
}

// pureFTPd starts Pure-FTPd with the user bob.
func pureFTPd(t *testing.T) server {
	t.Helper()
	const tools = "../../.tools/ftp-servers/usr"
	s := server{dir: public(t), port: int(ftptest.FreePorts(t, 10))}
	control := ftptest.FreePorts(t, 1)
	s.address = fmt.Sprintf("bob@127.0.0.1:%d", control)
	users := t.TempDir()
	// The hash of "secret" is constant, because pure-pw hashes a password for half a second, and so does each login.
	const hash = "$6$doctor$pK1ALkegD7JzLx02HkLBUsHJJpgHgZox/9Us9xE83s6vOsoC3hk7/qsbpSYD0VLRciY1oEyCV3nj5ujO04NMe0"
	line := fmt.Sprintf("bob:%s:65534:65534::%s/::::::::::::\n", hash, s.dir)
	must.WriteFile(t, users+"/passwd", line)
	out, err := exec.Command(tools+"/bin/pure-pw", "mkdb", users+"/pdb", "-f", users+"/passwd").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s; run: make packages", err, out)
	}
	_, listen, _ := strings.Cut(s.address, "@")
	run(t, listen, tools+"/sbin/pure-ftpd", "-4", "-E", "-H", "-S", fmt.Sprintf("127.0.0.1,%d", control),
		"-p", fmt.Sprintf("%d:%d", s.port, s.port+9), "-l", "puredb:"+users+"/pdb", "-u", "1", "-g", users+"/pid")
	return s
}

// A device is between client and server, and changes or blocks lines.
type device struct {
	toServer, toClient func(line string) string // "" cuts the connection, "-" drops the line
}

// serve returns the address of the device in front of a server.
func (d device) serve(t *testing.T, server string) string {
	t.Helper()
	l := must.Listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	pass := func(from, to net.Conn, change func(string) string) {
		defer from.Close()
		defer to.Close()
		in := bufio.NewReader(from)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if change != nil {
				line = change(line)
			}
			if line == "" {
				return
			}
			if line == "-" {
				continue
			}
			if _, err := io.WriteString(to, line); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = client.Close(), back.Close() })
			go pass(client, back, d.toServer)
			go pass(back, client, d.toClient)
		}
	}()
	return l.Addr().String()
}

var passive = regexp.MustCompile(`^(EPSV|PASV)\r\n`)

var replyToPASV = regexp.MustCompile(`^227 .*\((\d+),(\d+),(\d+),(\d+),(\d+),(\d+)\)`)

// Devices between client and server break FTP in various ways.
func TestDevices(t *testing.T) {
	t.Parallel()
	starts := func(prefix, instead string) func(string) string {
		return func(line string) string {
			if strings.HasPrefix(line, prefix) {
				return instead
			}
			return line
		}
	}
	var all atomic.Bool
	var asked atomic.Int32
	for _, test := range []struct {
		name   string
		device device
		want   []string
	}{
		{"nothing", device{}, nil},
		{"NAT-that-rewrites-the-port-of-PASV", device{toClient: func(line string) string {
			return replyToPASV.ReplaceAllString(line, "227 Entering Passive Mode ($1,$2,$3,$4,0,1)")
		}}, []string{"!inspected"}},
		{"NAT-that-rewrites-the-address-of-PASV", device{toClient: func(line string) string {
			return replyToPASV.ReplaceAllString(line, "227 Entering Passive Mode (192,0,2,9,$5,$6)")
		}}, []string{"!passive-unreached"}},
		{"firewall-that-cuts-at-EPSV", device{toServer: starts("EPSV", "")}, []string{"!inspected"}},
		{"server-without-EPSV", device{toServer: starts("EPSV", "XXXX\r\n")}, nil},
		{"firewall-that-cuts-at-EPSV-ALL", device{toServer: starts("EPSV ALL", "")}, []string{"!inspected"}},
		{"firewall-that-fails-after-EPSV-ALL", device{toServer: func(line string) string {
			switch { // sessions are sequential, each in its own goroutine
			case strings.HasPrefix(line, "USER"):
				all.Store(false)
			case line == "EPSV ALL\r\n":
				all.Store(true)
			case line == "EPSV\r\n" && all.Load():
				return ""
			}
			return line
		}}, []string{"!inspected"}},
		{"firewall-that-lets-half-of-the-ports-through", device{toClient: func(line string) string {
			if strings.HasPrefix(line, "229") && asked.Add(1)%2 == 0 {
				return "229 Entering Extended Passive Mode (|||1|)\r\n"
			}
			return line
		}}, []string{"!ports-unreachable"}},
		{"PROXY-header-that-the-server-does-not-know",
			device{toServer: starts("AUTH", "PROXY TCP4 192.0.2.7 192.0.2.9 1024 21\r\nAUTH TLS\r\n")},
			[]string{"!proxy-header"}},
		{"home-is-not-there", device{toClient: starts("230", "421 Home directory not available - aborting\r\n")},
			[]string{"!unavailable"}},
		{"login-is-unavailable",
			device{toClient: starts("230", "421 Login temporarily unavailable. Please try again later.\r\n")},
			[]string{"!unavailable"}},
		{"login-is-unavailable-in-French",
			device{toClient: starts("230", "421 Connexion temporairement indisponible. Veuillez réessayer plus tard.\r\n")},
			[]string{"!unavailable"}},
		{"limit-of-another-server", device{toClient: starts("230", "421 Zu viele Verbindungen für diesen Benutzer\r\n")},
			[]string{"!unavailable"}},
		{"login-in-Japanese", device{toClient: starts("230", "530 ログインできません\r\n")}, []string{"!login-refused"}},
		{"disk", device{toClient: starts("226 Transfer", "451 Failure writing to local file.\r\n")},
			[]string{"!command-failed"}},
		{"disk-with-a-code-of-its-own", device{toClient: starts("226 Transfer", "550 No space left on device.\r\n")},
			[]string{"!storage-full"}},
		{"REST-of-FEAT-that-is-refused", device{toServer: starts("REST", "XXXX\r\n")}, []string{"!command-broken"}},
		{"REST-that-is-ignored", device{toServer: starts("REST", "NOOP\r\n"), toClient: starts("200 NOOP", "350 go on\r\n")},
			[]string{"!command-broken"}},
		{"no-passive-mode", device{toServer: func(line string) string {
			return passive.ReplaceAllString(line, "XXXX\r\n")
		}}, []string{"!command-broken", "!command-broken"}},
		{"another-protocol", device{toClient: starts("220", "SSH-2.0-OpenSSH_9.2\r\n")}, []string{"!protocol-mismatch"}},
		{"limit", device{toClient: starts("220", "421 There are too many connected users.\r\n")}, []string{"!unavailable"}},
		{"load-balancer-without-a-server", device{toClient: starts("220", "")}, []string{"!no-greeting"}},
		{"login", device{toClient: starts("230", "530 Login incorrect.\r\n")}, []string{"!login-refused"}},
		{"quota", device{toClient: starts("226 Transfer", "552 Quota exceeded.\r\n")}, []string{"!storage-full"}},
		{"text", device{toServer: starts("TYPE I", "TYPE A\r\n")}, []string{"!file-differs"}},
		{"names", device{toServer: func(line string) string {
			return strings.ReplaceAll(line, "Привет", "??????")
		}}, []string{"!names-changed"}},
		{"rename", device{toServer: starts("RNTO", "XXXX\r\n")}, []string{"!command-refused"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := vsftpd(t, "ascii_upload_enable=YES", "ascii_download_enable=YES")
			want(t, examine(t, test.device.serve(t, s.address), doctor.Options{}), test.want...)
		})
	}
}
