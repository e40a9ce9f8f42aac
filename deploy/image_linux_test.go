package deploy

import (
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// serviceUser is the user that runs babelftp in the image.
const serviceUser = 65532

// An image is the configuration that a container runtime uses to start a process.
type image struct {
	path            []string // from ENV
	entrypoint, cmd []string
	health          []string
	programs        map[string]string // names of our programs by path
}

// readImage parses a stage of the Dockerfile, given by its name or the name of its base stage.
func readImage(t *testing.T, stage string) image {
	t.Helper()
	text := must.ReadFile(t, "../Dockerfile")
	stages := map[string]image{}
	var current image
	var name string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		switch word {
		case "FROM":
			current, name = stages[fields[0]], fields[0]
			current.programs = maps.Clone(current.programs)
			if len(fields) == 3 { // FROM x AS y
				name = fields[2]
			}
		case "ENV":
			if value, ok := strings.CutPrefix(rest, "PATH="); ok {
				current.path = strings.Split(value, ":")
			}
		case "ENTRYPOINT":
			current.entrypoint = execForm(t, rest)
		case "CMD":
			current.cmd = execForm(t, rest)
		case "HEALTHCHECK":
			current.health = execForm(t, strings.TrimPrefix(rest, "CMD "))
		case "COPY":
			for _, source := range fields[:len(fields)-1] {
				name, at := path.Base(source), fields[len(fields)-1]
				if !slices.Contains([]string{"babelftp", "babelftp-kubernetes"}, name) {
					continue
				}
				if strings.HasSuffix(at, "/") {
					at += name
				}
				if current.programs == nil {
					current.programs = map[string]string{}
				}
				current.programs[at] = name
			}
		}
		if word != "" {
			stages[name] = current
		}
	}
	return stages[stage]
}

// execForm parses the words of an instruction such as CMD ["serve"].
func execForm(t *testing.T, text string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		t.Fatalf("%s is not in the exec form, and the image has no shell: %v", text, err)
	}
	return words
}

// unpack creates the file system of the image with the programs in the folder of babelftp.
func (i image) unpack(t *testing.T, babelftp string) (root string) {
	t.Helper()
	root = t.TempDir()
	for at, name := range i.programs {
		program, err := os.ReadFile(filepath.Join(filepath.Dir(babelftp), name))
		must.OK(t, err)
		at := filepath.Join(root, at)
		must.OK(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must.OK(t, os.WriteFile(at, program, 0o755))
	}
	return root
}

// command returns a process in a container of the image. Like a runtime, it looks up the program with PATH in
// the file system of the image.
func (i image) command(t *testing.T, root string, environ []string, words ...string) *exec.Cmd {
	t.Helper()
	program := words[0]
	if !strings.Contains(program, "/") {
		for _, dir := range i.path {
			if info, err := os.Stat(filepath.Join(root, dir, program)); err == nil && info.Mode()&0o111 != 0 {
				program = filepath.Join(dir, program)
				break
			}
		}
	}
	if !filepath.IsAbs(program) {
		t.Fatalf("exec: %q: executable file not found in $PATH (%q)", program, i.path)
	}
	cmd := exec.CommandContext(t.Context(), program, words[1:]...)
	cmd.Env = append([]string{"PATH=" + strings.Join(i.path, ":")}, environ...)
	confine(cmd, root, serviceUser)
	return cmd
}

// confine makes a command run as user with root as its root directory. Without root privileges, it uses a
// user namespace.
func confine(cmd *exec.Cmd, root string, user int) {
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: gid, Size: 1}}
		return
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
}

// give changes the owner of a directory tree to the user of the image.
func give(t *testing.T, folder string) {
	t.Helper()
	if os.Getuid() != 0 {
		return // a single user owns all files
	}
	if err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(name, serviceUser, serviceUser)
	}); err != nil {
		t.Fatal(err)
	}
}

// documented returns the commands on all pages that match a pattern, by location.
func documented(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	found := map[string][]string{}
	pages := []string{"../README.md", "../Dockerfile", "quickstart.yaml", filepath.Join(chart, "templates", "NOTES.txt")}
	for _, folder := range []string{"../docs", "."} {
		if err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(name, ".md") {
				pages = append(pages, name)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range pages {
		text := must.ReadFile(t, page)
		joined := regexp.MustCompile(`\\\n[# ]*`).ReplaceAllString(text, " ")
		for _, m := range re.FindAllStringSubmatch(joined, -1) {
			found[page] = append(found[page], m[1])
		}
	}
	if len(found) == 0 {
		t.Fatalf("no page has a command %s", pattern)
	}
	return found
}

// TestImage runs the documented commands in the file system of the image.
func TestImage(t *testing.T) {
	babelftp := binary(t)
	buildProgram(t, filepath.Dir(babelftp), "babelftp-kubernetes")
	t.Run("programs", func(t *testing.T) { testPrograms(t, babelftp) })
	t.Run("kubectl-exec", func(t *testing.T) { testExec(t, babelftp) })
	t.Run("docker-run", func(t *testing.T) { testDockerRun(t, babelftp) })
	t.Run("kubectl-logs", func(t *testing.T) { testLogs(t, babelftp) })
}

// testPrograms runs the programs of the images by name. The one of the demo has no custom resources.
func testPrograms(t *testing.T, babelftp string) {
	for stage, want := range map[string][]string{"base": {"babelftp", "babelftp-kubernetes"}, "demo": {"babelftp"}} {
		i := readImage(t, stage)
		if got := slices.Sorted(maps.Values(i.programs)); !slices.Equal(got, want) {
			t.Errorf("the image %s has the programs %q, want %q", stage, got, want)
		}
		root := i.unpack(t, babelftp)
		for _, name := range want {
			out, err := i.command(t, root, nil, name, "--version").CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), name+" ") {
				t.Errorf("%s --version: %v\n%s", name, err, out)
			}
		}
	}
}

// startImage starts the server of a pod in the file system of the image.
func startImage(t *testing.T, babelftp string, log io.Writer) (i image, root string, environ []string, address string) {
	t.Helper()
	i = readImage(t, "base")
	root = i.unpack(t, babelftp)
	r := render(t, filepath.Join(chart, "ci", "minimal-values.yaml"))
	environ, address, listeners := serverEnviron(t, r, mountFor(t, r, r.pod(), root, ""))
	give(t, root)
	words := slices.Concat(i.entrypoint, r.container().Args)
	startAndWait(t, i.command(t, root, environ, words...), address, listeners, log)
	return i, root, environ, address
}

// testExec runs the documented kubectl exec commands and Docker's health check in the file system of the
// image, next to the server of the pod. Programs are looked up with PATH, like in a runtime.
func testExec(t *testing.T, babelftp string) {
	i, root, environ, _ := startImage(t, babelftp, io.Discard)
	run := func(where string, words []string) {
		t.Helper()
		out, err := i.command(t, root, environ, words...).CombinedOutput()
		if err != nil && !strings.Contains(string(out), "S3 has not answered") { // there is no S3 server here
			t.Errorf("%s: %q: %v\n%s", where, words, err, out)
		}
	}
	run("HEALTHCHECK", i.health)
	const exec = `(?:kubectl [^\n` + "`" + `]*\bexec [^\n` + "`" + `]* --|docker exec \S+) ([^\n#|` + "`" + `]+)`
	for page, commands := range documented(t, exec) {
		for _, command := range commands {
			run(page, strings.Fields(command))
		}
	}
}

// testDockerRun checks that the image accepts the documented arguments of docker run.
func testDockerRun(t *testing.T, babelftp string) {
	images := map[string]image{"babelftp": readImage(t, "base"),
		"babelftp-demo": readImage(t, "demo")}
	name := regexp.MustCompile(`^(?:ghcr\.io/babelftp/|registry\.example\.com/)?(babelftp(?:-demo)?)(?:[:@]|$)`)
	for page, commands := range documented(t, `docker run ([^\n|>#`+"`"+`]+)`) {
		for _, command := range commands {
			words := strings.Fields(command)
			at := slices.IndexFunc(words, name.MatchString)
			if at < 0 {
				continue // another image
			}
			i := images[name.FindStringSubmatch(words[at])[1]]
			args := words[at+1:]
			if len(args) == 0 {
				args = i.cmd
			}
			root := i.unpack(t, babelftp)
			cmd := i.command(t, root, nil, slices.Concat(i.entrypoint, args, []string{"--help"})...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: docker run %s: %v\n%s", page, command, err, out)
			}
		}
	}
}

// testLogs runs the documented pipelines after kubectl logs with the log of a server after a failed login.
// With a selector, they must request more than the ten lines per pod that kubectl prints by default.
func testLogs(t *testing.T, babelftp string) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must.OK(t, err)
	defer log.Close()
	_, _, _, address := startImage(t, babelftp, log)
	client := ftptest.Dial(t, address+":2121")
	client.Command(331, "USER alice")
	client.Command(530, "PASS wrong")
	for page, commands := range documented(t, `(kubectl [^\n|]*\blogs --selector [^\n]*)`) {
		for _, command := range commands {
			kubectl, pipeline, piped := strings.Cut(command, "|")
			if !strings.Contains(kubectl, " --tail=-1 ") || !strings.Contains(kubectl, " --since=") {
				t.Errorf("%s: %s shows the last ten lines of each pod", page, kubectl)
			}
			pipeline = strings.ReplaceAll(pipeline, "192.0.2.7", "127.0.0.1")
			pipeline = strings.ReplaceAll(pipeline, " babelftp ", " "+babelftp+" ")
			switch {
			case !piped:
			case strings.Contains(pipeline, " audit "):
				const want = "/in/a.csv not found in the 0 lines about files"
				if out, err := pipe(t, log.Name(), pipeline); err == nil || !strings.Contains(out, want) {
					t.Errorf("%s: %s: %v\n%s\nwant %q, because no file came", page, pipeline, err, out, want)
				}
			default:
				waitForLine(t, page, log.Name(), pipeline)
			}
		}
	}
}

// pipe passes a log to a pipeline and returns its output.
func pipe(t *testing.T, log, pipeline string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "cat "+log+" | "+pipeline).CombinedOutput()
	return string(out), err
}

// waitForLine runs a pipeline on a log until it finds the failed login.
func waitForLine(t *testing.T, page, log, pipeline string) {
	t.Helper()
	again := time.NewTicker(time.Second / 10)
	defer again.Stop()
	for end := time.Now().Add(waitTimeout); ; <-again.C {
		out, err := pipe(t, log, pipeline)
		if strings.Contains(out, `"msg":"login refused`) {
			return // doctor exits with 1 if it finds a problem
		}
		if err != nil {
			t.Fatalf("%s: %s: %v\n%s", page, pipeline, err, out)
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s did not find the failed login in\n%s", page, pipeline, tool(t, "cat", log))
		}
	}
}
