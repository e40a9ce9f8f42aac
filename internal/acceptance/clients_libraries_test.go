package acceptance_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// byNode runs a script that uses a package from clients/package.json, which make installs into .tools/clients.
func byNode(file, pkg string) func(c *connection, verb string, names ...string) invocation {
	job := byScript(file, "node")
	return func(c *connection, verb string, names ...string) invocation {
		modules, err := filepath.Abs("../../.tools/clients/node_modules")
		must.OK(c.t, err)
		i := job(c, verb, names...)
		i.env = append(i.env, "NODE_PATH="+modules, "FTP_PACKAGE="+pkg)
		return i
	}
}

// nodeVersion prints the version of a package of clients/package.json.
func nodeVersion(pkg string) []string {
	return []string{"node", "-p", "require('./clients/package.json').dependencies['" + pkg + "']"}
}

// debianVersion prints the version of a Debian package.
func debianVersion(pkg string) []string { return []string{"dpkg-query", "-W", pkg} }

// buildGoClient builds the separate module clients/jlaffaye once.
var buildGoClient = sync.OnceValues(func() (string, error) {
	file, err := filepath.Abs("../../.tools/bin/client-jlaffaye")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-C", "clients/jlaffaye", "-o", file, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return file, nil
})

// compileJavaClient compiles clients/CommonsNet.java once and returns the class path.
var compileJavaClient = sync.OnceValues(func() (string, error) {
	classes, err := filepath.Abs("../../.tools/clients/java")
	if err != nil {
		return "", err
	}
	path := classes + ":/usr/share/java/commons-net.jar"
	if out, err := exec.Command(
		"javac", "-d", classes, "-cp", path, "clients/CommonsNet.java").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

// Reasons shared by several libraries.
const (
	noFunction = "the library has no function for it"
	noActive   = "it has no active mode"
	allAgain   = "it sends all files again"
)

// Tasks that several libraries lack.
var (
	trees        = []string{"tree up", "tree down"}
	inActiveMode = []string{"active", "active TLS", "IPv6 active"}
)

// stores explains what happens to the interrupted uploads of some libraries.
const stores = "it closes the data connection as if the file were complete, so the server stores what it has received."

var aioftpClient = client{
	name: "aioftp", version: debianVersion("python3-aioftp"), job: byScript("python_aioftp.py", "/usr/bin/python3"),
	lacks: lacking(noFunction, "time up", "time down", "explicit", "TLS 1.2", "TLS 1.3").and(allAgain, trees...).and(
		noActive, inActiveMode...).
		// A server negotiates TLS on the data connection after the command (RFC 4217, section 12).
		and("it waits for TLS on the data connection before it sends the command", "implicit"),
	fails: map[string]string{"abort": stores},
}

var fsspecClient = client{
	name: "fsspec", version: debianVersion("python3-fsspec"), job: byScript("python_fsspec.py", "/usr/bin/python3"),
	lacks: lacking(noFunction, "time up", "time down", "resume up").and(allAgain, trees...).and(
		noActive, inActiveMode...).and("it has no TLS", withTLS...),
	fails: map[string]string{
		"resume down": "it downloads a file in several transfers.",
		"abort":       "it uploads a file in several transfers, and the completed ones stay.",
		"quota":       "for the same reason.",
	},
}

var pyFilesystemClient = client{
	name: "PyFilesystem2", version: debianVersion("python3-fs"), job: byScript("python_fs.py", "/usr/bin/python3"),
	lacks: lacking(noFunction, "time up", "implicit", "TLS 1.2", "TLS 1.3").and(noActive, inActiveMode...),
	fails: map[string]string{"abort": stores},
}

var ftputilClient = client{
	name: "ftputil", version: debianVersion("python3-ftputil"), job: byScript("python_ftputil.py", "/usr/bin/python3"),
	lacks: lacking(noFunction, "time up", "time down", "resume up", "implicit").and(
		"it downloads again what is of the same minute", "tree down"),
	fails: map[string]string{"abort": stores},
}

var perlClient = client{
	name: "Perl Net::FTP", version: []string{"perl", "-MNet::FTP", "-e", "print $Net::FTP::VERSION"}, core: true,
	job: byScript("perl_netftp.pl", "perl"), lacks: lacking(noFunction, "time up").and(noFunction, trees...),
}

var rubyClient = client{
	name: "Ruby net-ftp", version: []string{"ruby", "-e", "require 'net/ftp'; print Net::FTP::VERSION"}, core: true,
	job: byScript("ruby_netftp.rb", "ruby"), lacks: lacking(noFunction, "time up", "implicit").and(noFunction, trees...),
}

var phpClient = client{
	name: "PHP FTP", version: []string{"php", "--version"}, job: byScript("php_ftp.php", "php"),
	lacks: lacking(noFunction, "time up", "implicit", "TLS 1.2", "TLS 1.3").and(noFunction, trees...),
}

var phpStreamsClient = client{
	name: "PHP streams", version: []string{"php", "--version"}, job: byScript("php_wrapper.php", "php"),
	lacks: lacking(noFunction, "time up", "implicit").and(noFunction, trees...).and(noActive, inActiveMode...),
	fails: map[string]string{"odd names": "it treats # and ? in a name as parts of the URL."},
}

var basicFTPClient = client{
	name: "basic-ftp", version: nodeVersion("basic-ftp"), job: byNode("node_basic_ftp.cjs", "basic-ftp"),
	lacks: lacking(noFunction, "time up").and(allAgain, trees...).and(noActive, inActiveMode...),
}

var nodeFTPClient = client{
	name: "ftp (npm)", version: nodeVersion("ftp"), job: byNode("node_ftp.cjs", "ftp"),
	lacks: lacking(noFunction, "time up", "IPv6").and(noFunction, trees...).and(noActive, inActiveMode...).
		and("under TLS it loses the beginning of some downloads", "explicit", "TLS 1.2", "TLS 1.3"),
	fails: map[string]string{
		"names":    "it reads listings as Latin-1.",
		"implicit": "it waits for a reply after the greeting, and never logs in.",
	},
}

var promiseFTPClient = client{
	name: "promise-ftp", version: nodeVersion("promise-ftp"), job: byNode("node_ftp.cjs", "promise-ftp"),
	lacks: lacking(noFunction, "time up").and(noFunction, trees...).and(noActive, inActiveMode...),
	fails: map[string]string{"implicit": "it sends files without TLS."},
}

var goClient = client{
	name: "jlaffaye/ftp", version: []string{"go", "-C", "clients/jlaffaye", "list", "-m", "github.com/jlaffaye/ftp"},
	core: true,
	job: func(c *connection, verb string, names ...string) invocation {
		file, err := buildGoClient()
		must.OK(c.t, err)
		return byProgram(file)(c, verb, names...)
	},
	lacks: lacking(noFunction, trees...).and(noActive, inActiveMode...),
}

var javaClient = client{
	name: "Commons Net", version: debianVersion("libcommons-net-java"),
	job: func(c *connection, verb string, names ...string) invocation {
		path, err := compileJavaClient()
		must.OK(c.t, err)
		return byProgram(
			"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", path, "CommonsNet")(c, verb,
			names...)
	},
	lacks: lacking(noFunction, trees...),
}
