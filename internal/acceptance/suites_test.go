package acceptance_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// An outsideSuite is a test suite written by the authors of a client or library. It runs with -clients.all.
type outsideSuite struct {
	name     string
	version  []string          // Command that prints the version.
	storage  string            // S3 server, "" for MinIO
	settings []string          // lines of the tenant, indented by four
	users    []suiteUser       // The first one is in the environment of the suite.
	files    map[string]string // initial files, by pathname without a leading slash
	ways     []way
	// run returns how to run the suite in one way. The tests find the server through the environment of
	// [byProgram], and its files in the folder of the invocation.
	run func(c *connection, s *site) invocation
	// results parses the outcome of each test from the output.
	results func(output string) map[string]bool
	// differs explains why tests fail, by test names separated with "|". The page shows the explanation. A test
	// that is listed here and passes is an error too.
	differs map[string]string
}

// A suiteUser is a user that a suite requires.
type suiteUser struct{ name, password string }

// suiteDir is the directory of a suite's files in the bucket.
const suiteDir = "suite/"

// outsideSuites lists all suites in the order of the table.
var outsideSuites = []outsideSuite{
	rcloneSuite, gitFTPSuite, goftpSuite, pyFilesystemSuite, commonsNetSuite, curlOptions,
}

// suiteAlice is the user of suites that accept any user.
var suiteAlice = suiteUser{"suite", oldPassword}

// keepsTimes holds the settings for clients that synchronize directories.
var keepsTimes = []string{"resume: keep", "objects: {listing_times: set}"}

// rcloneSuite runs the tests of rclone's FTP backend and rclone's tests for all remotes.
var rcloneSuite = outsideSuite{
	name: "rclone", version: moduleVersion("rclone", "github.com/rclone/rclone"), settings: keepsTimes,
	users: []suiteUser{suiteAlice}, ways: []way{{"passive", "explicit"}},
	run: func(c *connection, _ *site) invocation {
		const rclone = "github.com/rclone/rclone/"
		return goTest("rclone", []string{"RCLONE_CONFIG=" + rcloneConfig(c)}, "-timeout", "30m", rclone+"backend/ftp",
			rclone+"fs/operations", rclone+"fs/sync", "-remote", "acme:")
	},
	results: goResults,
}

// rcloneConfig writes a configuration file with a remote "acme:".
func rcloneConfig(c *connection) string {
	c.t.Helper()
	hidden := strings.TrimSpace(launchWith(c.t, c.password, command(c.t, "rclone"), "obscure", "-").succeed())
	return newFolder(c.t).write("rclone.conf", []byte(strings.Join([]string{
		"[acme]", "type = ftp", "host = " + c.host, "port = " + c.port, "user = " + c.user, "pass = " + hidden,
		"explicit_tls = true",
		"no_check_certificate = true", "encoding = Slash,Del,Ctl,RightSpace,Dot,InvalidUtf8", "",
	}, "\n")))
}

var gitFTPSuite = outsideSuite{
	name: "git-ftp", version: []string{"cat", "../../.tools/suites/git-ftp/.version"},
	users: []suiteUser{suiteAlice}, ways: []way{usual},
	run: func(c *connection, _ *site) invocation {
		tests := "../../.tools/suites/git-ftp/tests"
		file, err := filepath.Abs(tests + "/git-ftp-test.sh")
		must.OK(c.t, err)
		// The tests expect shUnit2 in this directory. They define assertContains themselves, so that the function of
		// Debian's version needs another name.
		dir := tests + "/shunit2-2.1.6/src"
		shunit := must.ReadFile(c.t, "/usr/share/shunit2/shunit2")
		must.OK(c.t, os.MkdirAll(dir, 0o700))
		folder{c.t, dir}.write("shunit2", []byte(strings.ReplaceAll(shunit, "assertContains() {", "ownAssertContains() {")))
		c.write(".lftprc", []byte("set ssl:ca-file "+c.ca+"\nset ssl:check-hostname no\n"))
		suites, err := filepath.Abs("suites")
		must.OK(c.t, err)
		return invocation{args: []string{"sh", file}, env: []string{
			"PATH=" + suites + ":" + os.Getenv("PATH"),
			"GIT_FTP_HOST=localhost", "GIT_FTP_PORT=:" + c.port, "GIT_FTP_ROOT=root", "GIT_FTP_USER=" + c.user,
			"GIT_FTP_PASSWD=" + c.password, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@example.com",
		}}
	},
	results: shunitResults,
	differs: map[string]string{
		"test_scopes_add": "it cannot read a warning of git-ftp that spans two lines.",
	},
}

// goftpSuite also checks the server's files, so its S3 server must store objects as files.
var goftpSuite = outsideSuite{
	name: "goftp", version: moduleVersion("goftp", "github.com/secsy/goftp"), storage: "versitygw",
	users: []suiteUser{{"goftp", "rocks"}, {"anonymous", "anonymous"}},
	files: map[string]string{
		"lorem.txt": "lorem ipsum", "email%40mail.com.txt": "email", "subdir/1234.bin": "\x01\x02\x03\x04",
		"git-ignored/": "",
	},
	ways: []way{usual},
	differs: map[string]string{
		"TestReadDir|TestStat": "it expects the fact UNIX.mode, but objects have no modes.",
		"TestStoreError":       "it expects an error, but the server creates missing directories.",
	},
	run: func(c *connection, s *site) invocation {
		dir, err := exec.CommandContext(c.t.Context(), "go", "list", "-modfile", "../../tools/goftp.mod", "-m", "-f",
			"{{.Dir}}", "github.com/secsy/goftp").Output()
		must.OK(c.t, err)
		own := must.ReadFile(c.t, "suites/goftp.go")
		module := newFolder(c.t)
		for _, err := range []error{
			os.CopyFS(module.path, os.DirFS(strings.TrimSpace(string(dir)))),
			os.RemoveAll(module.file("testroot")),
			os.Symlink(filepath.Join(s.storage.Folder, s.buckets[acme], suiteDir), module.file("testroot")),
			os.Remove(module.file("main_test.go")),
		} {
			must.OK(c.t, err)
		}
		module.write("main_test.go", []byte(own))
		// the module proxy generates this file for a module without one
		module.write("go.mod", []byte("module github.com/secsy/goftp\n"))
		return invocation{
			args: []string{"go", "-C", module.path, "test", "-tags", "goftp", "-count", "1", "-vet", "off", "-v"},
			env:  slices.Concat(os.Environ(), c.environment(), []string{"FTP_IMPLICIT=" + port(c.t, s.implicit)}),
		}
	},
	results: goResults,
}

var pyFilesystemSuite = outsideSuite{
	name: "PyFilesystem2", version: debianVersion("python3-fs"), settings: []string{"tls: {strict_data_eof: false}"},
	users: []suiteUser{suiteAlice}, ways: []way{usual, {"passive", "explicit"}},
	run: func(c *connection, _ *site) invocation {
		file, err := filepath.Abs("suites/python_fs.py")
		must.OK(c.t, err)
		return invocation{args: []string{"/usr/bin/python3", file}, env: c.environment()}
	},
	results: plainResults,
	differs: map[string]string{
		"test_copy|test_makedir|test_move|test_upload": "it expects an error, but the server creates missing directories.",
		"test_open_files": "it sends QUIT while an upload is open, and QUIT waits (RFC 959 4.1.1).",
	},
}

var commonsNetSuite = outsideSuite{
	name: "Commons Net", version: []string{"cat", "../../.tools/suites/libcommons-net-java/.version"},
	users: []suiteUser{{"test", "test"}}, files: map[string]string{"file.txt": "content"},
	ways: []way{
		{"passive", "explicit"}, {"active", "explicit"}, {"EPSV", "explicit"},
		{"passive", "implicit"}, {"active", "implicit"},
	},
	run: func(c *connection, _ *site) invocation {
		path, err := compileCommonsNetSuite()
		must.OK(c.t, err)
		return invocation{
			args: []string{"java", "-cp", path, "org.apache.commons.net.ftp.AbstractFtpsTest"}, env: c.environment(),
		}
	},
	results: plainResults,
	differs: map[string]string{"testOpenClose": "it expects FEAT to name MODE, and there is only stream mode."},
}

// curlOptions is not a suite by curl's authors, which needs their own server. It tries the options in their manual.
var curlOptions = outsideSuite{
	name: "curl's options", version: []string{"curl", "--version"},
	users: []suiteUser{suiteAlice}, ways: []way{{"passive", "explicit"}},
	run: func(c *connection, _ *site) invocation {
		file, err := filepath.Abs("suites/curl_options.sh")
		must.OK(c.t, err)
		return invocation{args: []string{"sh", file}, env: c.environment()}
	},
	results: plainResults,
	differs: map[string]string{"ftp-pret": "PRET is a command of distributed servers, in no RFC."},
}

// compileCommonsNetSuite compiles FTPSClientTest of Commons Net once and returns the class path.
var compileCommonsNetSuite = sync.OnceValues(func() (string, error) {
	const classes, jars = "../../.tools/suites/classes", "/usr/share/java/"
	dir, err := filepath.Abs(classes)
	if err != nil {
		return "", err
	}
	path := dir + ":" + jars + "commons-net.jar:" + jars + "junit4.jar:" + jars + "hamcrest-all.jar"
	const tests = "../../.tools/suites/libcommons-net-java/src/test/java/org/apache/commons/net/ftp/"
	out, err := exec.Command(
		"javac", "-d", dir, "-cp", path, "suites/AbstractFtpsTest.java", tests+"FTPSClientTest.java").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// moduleVersion prints the version of a module of tools.
func moduleVersion(tool, module string) []string {
	return []string{"go", "list", "-modfile", "../../tools/" + tool + ".mod", "-m", module}
}

// goTest runs the tests of modules listed in a file in tools.
func goTest(tool string, env []string, args ...string) invocation {
	dir, _ := os.Getwd()
	return invocation{
		args: append([]string{"go", "-C", dir, "test", "-modfile", "../../tools/" + tool + ".mod", "-count", "1", "-vet",
			"off", "-v"}, args...),
		env: append(os.Environ(), env...),
	}
}

// goResults parses the output of go test -v. Subtests count as part of their test.
func goResults(output string) map[string]bool {
	results := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+)`).FindAllStringSubmatch(output, -1) {
		results[m[2]] = m[1] == "PASS"
	}
	return results
}

// shunitResults parses the output of shUnit2: the name of each test and its failures.
func shunitResults(output string) map[string]bool {
	results := map[string]bool{}
	name := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "test_") && !strings.Contains(line, " "):
			name = line
			results[name] = true
		case strings.Contains(line, "ASSERT:"):
			results[name] = false
		}
	}
	return results
}

// plainResults parses the output of the scripts in the directory suites: "ok" or "not ok", and a name. A test that
// runs several times must pass every time.
func plainResults(output string) map[string]bool {
	results := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^(not )?ok (\S+)$`).FindAllStringSubmatch(output, -1) {
		before, again := results[m[2]]
		results[m[2]] = m[1] == "" && (before || !again)
	}
	return results
}

// suiteTimeout is the time after which a suite counts as stuck.
const suiteTimeout = 30 * time.Minute

// A suiteCount is the number of tests of a suite over all its ways, and how many of them passed.
type suiteCount struct{ passed, all int }

// suiteCounts holds the counts of all suites by name.
type suiteCounts struct {
	mu     sync.Mutex
	counts map[string]suiteCount
}

func (c *suiteCounts) add(name string, passed, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]suiteCount{}
	}
	before := c.counts[name]
	c.counts[name] = suiteCount{before.passed + passed, before.all + all}
}

func (c *suiteCounts) of(name string) suiteCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[name]
}

// test runs the suite in each way and checks the results.
func (o *outsideSuite) test(t *testing.T, tested *suiteCounts) {
	s := o.site(t)
	for _, w := range o.ways {
		t.Run(w.String(), func(t *testing.T) {
			c := connection{
				folder: newFolder(t), host: "127.0.0.1", port: port(t, s.address), user: o.users[0].name,
				password: o.users[0].password, ca: s.ca, tls: w.tls, data: w.data,
			}
			if w.tls == "implicit" {
				c.port = port(t, s.implicit)
			}
			ctx, cancel := context.WithTimeout(t.Context(), suiteTimeout)
			defer cancel()
			run := client{job: func(c *connection, _ string, _ ...string) invocation { return o.run(c, s) }}
			cmd, stdout, stderr := (&worker{folder: c.folder, client: run, connection: c}).command(ctx, "")
			err := cmd.Run()
			results := o.results(stdout.String())
			passed := o.check(t, results)
			tested.add(o.name, passed, len(results))
			if err != nil && passed == len(results) || len(results) == 0 {
				t.Errorf("%v: %v with %d results", cmd, err, len(results))
			}
			if t.Failed() {
				t.Logf("%s\n%s", tail(stdout), tail(stderr))
			}
		})
	}
}

// check checks that each test passes or fails for a known reason, and returns how many passed.
func (o *outsideSuite) check(t *testing.T, results map[string]bool) (passed int) {
	t.Helper()
	known, met := map[string]string{}, map[string]bool{}
	for names, reason := range o.differs {
		for name := range strings.SplitSeq(names, "|") {
			known[name] = reason
		}
	}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		base, _, _ := strings.Cut(name, "[") // without the parameters
		met[base] = true
		switch reason, ok := known[base], results[name]; {
		case ok && reason == "":
			passed++
		case ok:
			t.Errorf("%s passes; remove the known failure %q", name, reason)
		case reason == "":
			t.Errorf("%s failed", name)
		}
	}
	for name, reason := range known {
		if !met[name] {
			t.Errorf("unknown test %s with the known failure %q", name, reason)
		}
	}
	return passed
}

// tail returns the end of an output for error messages.
func tail(b *bytes.Buffer) []byte {
	const enough = 1 << 20
	return b.Bytes()[max(0, b.Len()-enough):]
}

// site starts a server with the users and files of the suite.
func (o *outsideSuite) site(t *testing.T) *site {
	t.Helper()
	storage := o.storage
	if storage == "" {
		storage = "minio"
	}
	lines := []string{"  suite:", "    bucket: BUCKET", "    prefix: " + suiteDir}
	for _, line := range o.settings {
		lines = append(lines, "    "+line)
	}
	lines = append(lines, "    users:")
	for _, u := range o.users {
		lines = append(lines, "      "+u.name+": {password_hash: "+strconv.Quote(passwordHash(t, u.password))+"}")
	}
	s := newSiteOn(t, "[::]", s3test.Start(t, storage), lines...)
	bucket := s.buckets[acme]
	for name, text := range o.files {
		key := suiteDir + name
		if _, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: strings.NewReader(text),
		}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
