package acceptance_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// waitTimeout limits every wait. It is long enough for two busy cores.
const waitTimeout = 3 * time.Minute

// TestMain ends with s3test.Main, which exits the process.
func TestMain(m *testing.M) { s3test.Main(&suite{m}) }

// A suite is all tests of the process with their shared resources.
type suite struct{ *testing.M }

// Run runs the tests and removes the binary.
func (s *suite) Run() int {
	defer func() { _ = os.RemoveAll(built.dir) }()
	return s.M.Run()
}

// built holds the binary and password hashes that all tests of the process share. It is a package variable because
// the tests have nothing else in common, and building the binary for each test would take longer than the test.
var built struct {
	once sync.Once
	dir  string
	err  error

	kubernetes sync.Once // builds the second program, which most tests do not need

	hashing sync.Mutex
	hashes  map[string]string // password hashes by password
}

// binary returns the path of babelftp, built with the race detector if the tests are.
func binary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no program; this test needs babelftp")
	}
	built.once.Do(func() {
		// reading the sources makes go test rerun the tests when they change
		for _, source := range []string{"cmd", "driver", "i18n", "internal", "locales"} {
			if built.err = fs.WalkDir(os.DirFS("../.."), source, func(string, fs.DirEntry, error) error {
				return nil
			}); built.err != nil {
				return
			}
		}
		if built.dir, built.err = os.MkdirTemp("", "babelftp-acceptance-"); built.err != nil {
			return
		}
		built.err = build("babelftp")
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "babelftp")
}

// kubernetesBinary returns the path of babelftp-kubernetes, next to babelftp.
func kubernetesBinary(t *testing.T) string {
	t.Helper()
	binary(t)
	built.kubernetes.Do(func() { built.err = build("babelftp-kubernetes") })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "babelftp-kubernetes")
}

// build builds a program.
func build(name string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", fmt.Sprintf("-race=%t", raceDetector), "-o",
		filepath.Join(built.dir, name), "github.com/babelftp/babelftp/cmd/"+name)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	return nil
}

// A process is a program that runs during the test: babelftp or a client.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdin          io.WriteCloser
	stdout, stderr *output
	done           chan struct{} // closed when it has ended
}

// launch starts a process. At the end of the test it is killed if it still runs, and its error output is shown if the
// test failed.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(name, args...), stdout: newOutput(), stderr: newOutput(),
		done: make(chan struct{})}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = []string{"HOME=" + p.cmd.Dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + p.cmd.Dir, "LC_ALL=C.UTF-8",
		"TERM=dumb",
		"GORACE=atexit_sleep_ms=50"} // the default is a second for each process
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	p.cmd.SysProcAttr = dieWithParent()
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		// The kernel sends the signal of dieWithParent when the thread ends that started the process
		// (https://go.dev/issue/27505).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState has the outcome
			close(p.done)
		}
	}()
	must.OK(t, <-started)
	t.Cleanup(func() {
		p.kill()
		if text := p.stderr.tail(); t.Failed() && text != "" {
			t.Logf("%v: %v, standard error:\n%s", p, p.cmd.ProcessState, text)
		}
	})
	return p
}

// launchWith starts a process whose standard input is a text.
func launchWith(t *testing.T, input, name string, args ...string) *process {
	t.Helper()
	p := launch(t, name, args...)
	p.send(input)
	_ = p.stdin.Close()
	return p
}

// String returns the beginning of the command line.
func (p *process) String() string {
	const enough = 300
	line := filepath.Base(p.cmd.Path) + " " + strings.Join(p.cmd.Args[1:], " ")
	return line[:min(len(line), enough)]
}

// kill kills the process and waits until it has exited.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("kill %v: %v", p, err)
	}
	<-p.done
}

// signal sends a signal.
func (p *process) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.t.Fatalf("send %v to %v: %v", signal, p, err)
	}
}

// ended reports whether the process has exited.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until the process exits and returns the exit code, or -1 after a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waitTimeout):
		p.t.Fatalf("%v is still running", p)
		return -1
	}
}

// succeed waits for exit code 0 and returns the standard output.
func (p *process) succeed() string {
	p.t.Helper()
	if code := p.wait(); code != 0 {
		p.t.Fatalf("%v: exit code %d\n%s\n%s", p, code, p.stdout.tail(), p.stderr.tail())
	}
	return p.stdout.String()
}

// send writes text to the standard input.
func (p *process) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, text); err != nil {
		p.t.Fatalf("write to %v: %v", p, err)
	}
}

// expect waits for output that matches the pattern and returns the match and its groups.
func (p *process) expect(o *output, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(waitTimeout)
	for {
		text, grown := o.snapshot()
		if match := re.FindStringSubmatch(text); match != nil {
			return match
		}
		select {
		case <-grown:
		case <-p.done:
			if match := re.FindStringSubmatch(o.String()); match != nil {
				return match
			}
			p.t.Fatalf("%v ended (%v) without output that matches %s", p, p.cmd.ProcessState, pattern)
		case <-deadline:
			p.t.Fatalf("%v wrote nothing that matches %s:\n%s", p, pattern, o.tail())
		}
	}
}

// An output collects what a process writes.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{} // closed at the next write
}

func newOutput() *output { return &output{grown: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.grown)
	o.grown = make(chan struct{})
	return o.text.Write(p)
}

// snapshot returns the output so far, and a channel that is closed when there is more.
func (o *output) snapshot() (text string, grown <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.grown
}

func (o *output) String() string {
	text, _ := o.snapshot()
	return text
}

// tail returns the end of the output for error messages.
func (o *output) tail() string {
	const enough = 8 << 10
	text := o.String()
	return text[max(0, len(text)-enough):]
}

// waitUntil polls until yes returns true, and calls never after waitTimeout.
func waitUntil(t *testing.T, yes func() bool, never func()) {
	t.Helper()
	const pause = 20 * time.Millisecond
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	deadline := time.After(waitTimeout)
	for !yes() {
		select {
		case <-ticker.C:
		case <-deadline:
			never()
			return
		}
	}
}
