package acceptance_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A client is a widely used FTP client: a program, or a library with a script that uses it.
type client struct {
	name    string   // In the table of docs/conformance.md.
	version []string // Command that prints its version.
	core    bool     // Runs in every make test. The other clients need more packages.
	simple  bool     // Needs a user name without @ and a password of letters.
	// job returns the command that performs a verb with these names. Remote names are absolute pathnames.
	//
	//	list DIR                        prints the names in DIR by lines
	//	upload [LOCAL REMOTE]...        in one session
	//	download [REMOTE LOCAL]...      in one session
	//	resume-upload LOCAL REMOTE      REMOTE has the beginning of LOCAL
	//	resume-download REMOTE LOCAL    LOCAL has the beginning of REMOTE
	//	rename FROM TO
	//	delete NAME...
	//	mkdir NAME...
	//	rmdir NAME...
	//	put-tree LOCAL REMOTE           REMOTE gets what is new in the directory LOCAL
	//	get-tree REMOTE LOCAL           the other way round
	//	put-time LOCAL REMOTE           uploads a file and its time
	//	get-time REMOTE LOCAL           downloads a file and its time
	//	abort LOCAL REMOTE              begins an upload; SIGINT interrupts it
	job func(c *connection, verb string, names ...string) invocation
	// instead replaces a task with one that suits the client, by task name.
	instead map[string]func(w *worker) error
	// lacks explains why the client cannot perform a task, by task name.
	lacks map[string]string
	// fails explains what goes wrong in a task because of the client, by task name. The table shows the
	// explanation.
	fails map[string]string
}

// A connection describes how and as which user a client connects.
type connection struct {
	folder         // its own directory, which is also its home
	host, port     string
	user, password string
	ca             string // file with the certificates to trust
	tls            string // plain, explicit or implicit
	version        string // TLS version 1.2 or 1.3, or "" for the client's choice
	data           string // passive or active
}

// address returns host:port.
func (c *connection) address() string { return net.JoinHostPort(c.host, c.port) }

// An invocation describes how to run a program.
type invocation struct {
	args  []string
	env   []string // added
	stdin string
}

// byScript runs a script from the directory clients. The script gets the connection from the environment, and the
// verb and the names as arguments.
func byScript(file string, interpreter ...string) func(c *connection, verb string, names ...string) invocation {
	return func(c *connection, verb string, names ...string) invocation {
		file, err := filepath.Abs(filepath.Join("clients", file))
		must.OK(c.t, err)
		return byProgram(slices.Concat(interpreter, []string{file})...)(c, verb, names...)
	}
}

// byProgram runs a command line with the same environment and arguments as byScript.
func byProgram(args ...string) func(c *connection, verb string, names ...string) invocation {
	return func(c *connection, verb string, names ...string) invocation {
		return invocation{args: slices.Concat(args, []string{verb}, names), env: c.environment()}
	}
}

// environment returns the connection as environment variables.
func (c *connection) environment() []string {
	return []string{
		"FTP_HOST=" + c.host, "FTP_PORT=" + c.port, "FTP_USER=" + c.user, "FTP_PASSWORD=" + c.password,
		"FTP_CA=" + c.ca, "FTP_TLS=" + c.tls, "FTP_TLS_VERSION=" + c.version, "FTP_DATA=" + c.data,
	}
}

// clients lists all clients in the order of the table.
var clients = []client{
	curlClient, lftpClient, wgetClient, wget2Client, aria2Client, axelClient,
	ncftpClient, tnftpClient, inetutilsClient, yafcClient,
	fileZillaClient, rcloneClient, duplicityClient, gioClient,
	pythonClient, aioftpClient, fsspecClient, pyFilesystemClient, ftputilClient,
	perlClient, rubyClient, phpClient, phpStreamsClient,
	basicFTPClient, nodeFTPClient, promiseFTPClient, goClient, javaClient,
}

// clientTenants configures the tenants for client tests. Its first lines belong to acme, which is configured as
// docs/guides/clients.md recommends.
const clientTenants = `      till: {password_hash: SIMPLE}
    resume: keep
    objects: {listing_times: set}
  limited:
    hosts: [limited.example]
    bucket: BUCKET
    prefix: inbox/limited/
    quota: 1MiB
    users:
      alice: {password_hash: HASH}
      carol: {password_hash: SIMPLE}
`

// tenantsOfClients returns clientTenants with the hash of a password that every client can send.
func tenantsOfClients(t *testing.T) string {
	t.Helper()
	return strings.ReplaceAll(clientTenants, "SIMPLE", strconv.Quote(passwordHash(t, oldPassword)))
}

// TestClients performs the tasks with each client. Without -clients.all it tests only the core clients.
func TestClients(t *testing.T) {
	t.Parallel()
	var tested suiteCounts
	t.Cleanup(func() {
		if *allClients && *updateClients && !t.Failed() {
			writeClientsTable(t, &tested)
		}
	})
	storage := s3test.Start(t, "minio")
	if *allClients {
		for _, o := range outsideSuites {
			t.Run("tests of "+o.name, func(t *testing.T) {
				t.Parallel()
				o.test(t, &tested)
			})
		}
	}
	s := newSiteOn(t, "[::]", storage, tenantsOfClients(t))
	for _, c := range clients {
		if !c.core && !*allClients {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, k := range tasks() {
				if c.lacks[k.name] != "" {
					continue
				}
				t.Run(k.name, func(t *testing.T) {
					t.Parallel()
					w := &worker{folder: newFolder(t), client: c, site: s,
						dir: "/" + strings.ReplaceAll(c.name+"/"+k.name, " ", "-")}
					w.connection = s.connection(t)
					if c.simple {
						w.connection.user, w.connection.password = "till", oldPassword
					}
					run := k.run
					if own := c.instead[k.name]; own != nil {
						run = own
					}
					err := run(w)
					switch sentence := c.fails[k.name]; {
					case err != nil && sentence == "":
						t.Error(err)
					case err == nil && sentence != "":
						t.Errorf("the known failure %q no longer occurs", sentence)
					}
				})
			}
		})
	}
}

// connection returns the usual connection: passive, over IPv4, without TLS.
func (s *site) connection(t *testing.T) connection {
	t.Helper()
	return connection{
		folder: newFolder(t), host: "127.0.0.1", port: port(t, s.address), user: "alice@acme", password: password,
		ca:  s.ca,
		tls: "plain", data: "passive",
	}
}

// implicit changes the connection to implicit TLS.
func (w *worker) implicit() {
	w.connection.tls, w.connection.port = "implicit", port(w.t, w.site.implicit)
}

// A worker performs a task with a client in its own directory.
type worker struct {
	folder
	connection connection
	client     client
	site       *site
	dir        string // pathname
	errors     string // what the last command wrote to its standard error
}

// remote returns the absolute pathname of a name in the worker's directory.
func (w *worker) remote(name string) string { return path.Join(w.dir, name) }

// key returns the key of a name in the worker's directory, without the tenant's prefix.
func (w *worker) key(name string) string { return strings.TrimPrefix(w.remote(name), "/") }

// untilClosed runs a client in a process group with a watcher. The watcher kills the group when descriptor 3 is
// closed.
const untilClosed = `(read _ <&3; kill -KILL 0) </dev/null >/dev/null 2>&1 & exec 3<&-; exec "$@"`

// command prepares the command for a verb. Everything that the client starts, such as desktop daemons, is killed
// when ctx is done or the test process exits for any reason.
func (w *worker) command(
	ctx context.Context, verb string, names ...string,
) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	job := w.client.job(&w.connection, verb, names...)
	closed, open, err := os.Pipe()
	must.OK(w.t, err)
	context.AfterFunc(ctx, func() { _, _ = open.Close(), closed.Close() })
	cmd = exec.CommandContext(ctx, "sh", append([]string{"-c", untilClosed, "sh"}, job.args...)...)
	cmd.ExtraFiles = []*os.File{closed}
	cmd.Dir = w.connection.path
	cmd.Env = append([]string{
		"HOME=" + cmd.Dir, "TMPDIR=" + cmd.Dir, "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=dumb",
	}, job.env...)
	cmd.Stdin = strings.NewReader(job.stdin)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Setpgid = true // as in a terminal, so that child processes receive signals too
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = waitTimeout // reading the rest of the output may take long on a busy machine
	return cmd, stdout, stderr
}

// jobTimeout is the time after which a client counts as stuck. A tree takes a minute on two busy cores.
const jobTimeout = 5 * time.Minute

// do performs a verb with the client and returns the output.
func (w *worker) do(verb string, names ...string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), jobTimeout)
	defer cancel()
	cmd, stdout, stderr := w.command(ctx, verb, names...)
	if err := cmd.Run(); err != nil {
		const most = 2000
		return "", fmt.Errorf("%s %.100q: %w\n%.*s\n%.*s", verb, names, err, most, stdout, most, stderr)
	}
	w.errors = stderr.String()
	return stdout.String(), nil
}

// run performs a verb with the client.
func (w *worker) run(verb string, names ...string) error {
	_, err := w.do(verb, names...)
	return err
}
