package acceptance_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A demo is the running demo together with the command lines it prints, by label.
type demo struct {
	*process
	lines map[string]string
}

func startDemo(t *testing.T, data string) *demo {
	t.Helper()
	d := &demo{process: launch(t, binary(t), "demo", "--listen", "127.0.0.1:0", "--data", data),
		lines: map[string]string{}}
	d.expect(d.stdout, `marie.*\n`) // the last line
	section := ""
	for line := range strings.Lines(d.stdout.String()) {
		if line == "\n" {
			continue
		}
		if !strings.HasPrefix(line, "  ") {
			section, _, _ = strings.Cut(line, " ")
			continue
		}
		m := regexp.MustCompile(`^  (?:(\w+)  +)?(\S.*)\n$`).FindStringSubmatch(line)
		d.lines[strings.TrimSpace(section+" "+m[1])] = m[2]
	}
	return d
}

// run runs a command line printed by the demo with the given input.
func (d *demo) run(label, input string) (stdout, stderr string) {
	d.t.Helper()
	line, ok := d.lines[label]
	if !ok {
		d.t.Fatalf("missing %q among the command lines %q", label, d.lines)
	}
	p := launch(d.t, "sh", "-c", line)
	if input != "" {
		p.send(input)
	}
	_ = p.stdin.Close()
	return p.succeed(), p.stderr.String()
}

// stop presses Ctrl-C.
func (d *demo) stop() {
	d.t.Helper()
	d.signal(syscall.SIGINT)
	if code := d.wait(); code != 0 {
		d.t.Errorf("exit code %d after Ctrl-C", code)
	}
	d.mustBeClean()
}

// TestDemo runs every command line that the demo prints, and then restarts the demo with the same data.
func TestDemo(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	d := startDemo(t, data)
	d.run("Try upload", "")
	if listed, _ := d.run("Try list", ""); !strings.HasSuffix(listed, " hello.txt\n") {
		t.Errorf("listing: got %q", listed)
	}
	if listed, _ := d.run("Try encrypted", ""); !strings.HasSuffix(listed, " hello.txt\n") {
		t.Errorf("encrypted listing: got %q", listed)
	}
	if listed, _ := d.run("Try lftp", d.lines["Change lftp"]+"\ncat hello.txt\nquote PWD\n"); !strings.Contains(
		listed, "bonjour\n") ||
		!strings.Contains(listed, "現在のディレクトリ") {
		t.Errorf("lftp: %q", listed)
	}
	if _, replies := d.run("Change curl", ""); !strings.Contains(replies, "転送が完了しました") {
		t.Errorf("LANG ja: %s", replies)
	}
	if listed, replies := d.run("Another", ""); listed != "" || !strings.Contains(replies, "Bienvenue à l’atelier") {
		t.Errorf("other tenant: got %q, %s", listed, replies)
	}
	d.stop()

	d = startDemo(t, data)
	if text, _ := d.run("Try download", ""); text != "bonjour\n" {
		t.Errorf("after the second start: got %q", text)
	}
	d.stop()
}

// TestReadme runs the commands that the README suggests while the demo is running.
func TestReadme(t *testing.T) {
	t.Parallel()
	const usual = "127.0.0.1:2121" // address of the demo
	root, err := filepath.Abs("../..")
	must.OK(t, err)
	readme := must.ReadFile(t, filepath.Join(root, "README.md"))
	lines := regexp.MustCompile(`(?m)^(?:curl|lftp) .*`+regexp.QuoteMeta(usual)+`.*$`).FindAllString(readme, -1)
	if len(lines) < 3 {
		t.Fatalf("the README has only the commands %q", lines)
	}
	d := startDemo(t, filepath.Join(t.TempDir(), "data"))
	address := d.expect(d.stdout, `FTP on ([^,]+),`)[1]
	for _, line := range lines {
		p := launch(t, "sh", "-c", `cd "$0" && `+strings.ReplaceAll(line, usual, address), root)
		_ = p.stdin.Close()
		p.succeed()
	}
	d.stop()
}
