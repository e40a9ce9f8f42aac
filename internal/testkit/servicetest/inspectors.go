package servicetest

import (
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// BadFile is content that each inspector rejects with the signature BadSignature.
const (
	BadFile      = "this file is bad by a signature of the tests"
	BadSignature = "Test.Bad.UNOFFICIAL"
)

// MaxStream is the StreamMaxLength of [StartClamd] in bytes.
const MaxStream = 12 << 20

// StartClamd starts Debian's clamd with a single signature and returns the path of its socket. It stops at the end
// of the test.
func StartClamd(tb testing.TB) (socket string) {
	tb.Helper()
	dir := tb.TempDir()
	socket = filepath.Join(dir, "clamd.ctl")
	write(tb, filepath.Join(dir, "test.ndb"), "Test.Bad:0:*:"+hex.EncodeToString([]byte(BadFile))+"\n")
	write(tb, filepath.Join(dir, "clamd.conf"), strings.ReplaceAll(
		"LocalSocket DIR/clamd.ctl\nForeground yes\nDatabaseDirectory DIR\nTemporaryDirectory DIR\nStreamMaxLength 12M\n",
		"DIR", dir))
	startInspector(tb, "unix", socket, "/usr/sbin/clamd", "-c", filepath.Join(dir, "clamd.conf"))
	return socket
}

// StartCICAP starts Debian's c-icap and returns its address. It offers the services echo, which returns its input,
// and virus_scan, which uses clamd. It stops at the end of the test.
func StartCICAP(tb testing.TB, clamd string) (address string) {
	tb.Helper()
	dir := tb.TempDir()
	address = ftptest.FreeAddresses(tb, 1)[0]
	modules, err := filepath.Glob("/usr/lib/*/c_icap")
	if err != nil || len(modules) != 1 {
		tb.Fatal("c-icap is missing; run: make packages")
	}
	const conf = `PidFile DIR/pid
CommandsSocket DIR/ctl
Port ADDRESS
StartServers 1
MaxServers 1
ThreadsPerChild 4
TmpDir DIR
ModulesDir MODULES
ServicesDir MODULES
TemplateDir /usr/share/c_icap/templates/
LoadMagicFile /etc/c-icap/c-icap.magic
ServerLog DIR/server.log
AccessLog DIR/access.log
Service echo srv_echo.so
Module common clamd_mod.so
clamd_mod.ClamdSocket CLAMD
Service antivirus_module virus_scan.so
virus_scan.MaxObjectSize 20M
virus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE GIF JPEG MSOFFICE
`
	name := filepath.Join(dir, "c-icap.conf")
	write(tb, name, strings.NewReplacer(
		"DIR", dir, "ADDRESS", address, "MODULES", modules[0], "CLAMD", clamd).Replace(conf))
	startInspector(tb, "tcp", address, "/usr/bin/c-icap", "-N", "-f", name)
	return address
}

func write(tb testing.TB, name, text string) {
	tb.Helper()
	must.OK(tb, os.WriteFile(name, []byte(text), 0o600))
}

// startInspector runs a command until the test ends and waits until it listens. With -short the test is skipped.
func startInspector(tb testing.TB, network, address, command string, args ...string) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short starts no inspector; this test needs " + command)
	}
	// The shell kills the daemon when its input is closed. This happens even if the test process is killed.
	shell := exec.Command("sh", append([]string{"-c", `"$@" & read -r end; kill $!; wait`, "sh", command}, args...)...)
	shell.Stdout, shell.Stderr = tb.Output(), tb.Output()
	input, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	must.OK(tb, err)
	tb.Cleanup(func() {
		_ = input.Close()
		_ = shell.Wait() // the process was killed
	})
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for ended := time.After(startTimeout); ; {
		conn, err := net.Dial(network, address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			tb.Fatalf("%s does not listen (is it missing? run: make packages): %v", command, err)
		case <-ticker.C:
		}
	}
}
