//go:build kube

package deploy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMain(m *testing.M) { s3test.Main(m) }

const (
	// takesEffect is the time from a change of a resource until each replica uses it.
	takesEffect = 2 * time.Second
	// busyFactor multiplies the time that everything may take while other programs use the processors.
	busyFactor = 5
)

// The namespaces that sites watch.
const (
	teamA = "team-a"
	teamB = "team-b"
)

// A site is an API server with an installed chart, and an S3 server. Tests start replicas of the chart's pod.
type site struct {
	*kubeserver.Server
	t          *testing.T // of the running subtest
	whole      *testing.T // of newSite
	storage    *s3test.Server
	release    release
	kubeconfig string // with the service account of the pods
	token      string // of this account
	programs   string // folder with the built programs
	host       string // loopback network of the replicas, such as 127.4.5.
}

// newSite installs the chart, which watches namespaces: what each of them may use, in YAML.
func newSite(t *testing.T, namespaces map[string]string) *site {
	t.Helper()
	s := &site{
		Server: kubeserver.Start(t), t: t, whole: t, storage: s3test.Start(t, "minio"), programs: t.TempDir(),
		host: strings.TrimRight(loopback(), "0123456789"),
	}
	build := exec.CommandContext(
		t.Context(), "go", "build", "-o", s.programs, "../cmd/babelftp", "../cmd/babelftp-kubernetes")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	values := fmt.Sprintf(`
image: {repository: babelftp}
replicas: 2
maxReplicas: 2
passive: {ports: 30000-30039}
config:
  s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %s, secret_access_key: %s}
  tenant_defaults: {resume: discard}
customResources:
  enabled: true
  editors: {%s: [{kind: ServiceAccount, name: dev}]}
  namespaces:
`, s.storage.Endpoint, s.storage.Region, s.storage.AccessKeyID, s.storage.SecretAccessKey, teamA)
	s.namespace("ftp")
	s.namespace(teamA)
	s.namespace("elsewhere")
	for namespace, may := range namespaces {
		s.namespace(namespace)
		s.secret(namespace, "ftp-users", "password_hash", servicetest.PasswordHash().Reveal())
		values += fmt.Sprintf("    %s: %s\n", namespace, may)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, file, values)

	helms := strings.Fields(*helmReleases)
	run := runOneHelm(
		t, helms[len(helms)-1], "install", "babelftp", chart, "--no-hooks", "--values", file,
		"--kubeconfig", s.Kubeconfig("ftp"))
	if run.err != nil {
		t.Fatal(run)
	}
	manifest := runOneHelm(t, run.helm, "get", "manifest", "babelftp", "--kubeconfig", s.Kubeconfig("ftp"))
	if manifest.err != nil {
		t.Fatal(manifest)
	}
	s.release = parse(t, manifest.stdout)
	s.token = s.AccountToken("ftp", s.release.pod().ServiceAccountName)
	s.kubeconfig = s.As(s.token).Kubeconfig("ftp")
	s.WaitFor("/apis/babelftp.io/v1alpha1/ftptenants")
	s.WaitFor("/apis/babelftp.io/v1alpha1/ftpusers")
	return s
}

func (s *site) namespace(name string) {
	s.t.Helper()
	s.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n")
}

// in returns the site for a subtest.
func (s *site) in(t *testing.T) *site {
	copied := *s
	copied.t = t
	copied.Server = s.In(t)
	return &copied
}

// secret creates or replaces a Secret with one key.
func (s *site) secret(namespace, name, key, content string) {
	s.t.Helper()
	s.Apply(fmt.Sprintf(
		"apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {%q: %q}\n", name,
		namespace, key, content))
}

// tenant creates or replaces an FTPTenant of team-a. spec is in YAML's flow style, without braces.
func (s *site) tenant(name, spec string) {
	s.t.Helper()
	s.Apply(manifest("FTPTenant", teamA, name, spec))
}

// user creates or replaces an FTPUser of team-a with the usual password.
func (s *site) user(name, spec string) {
	s.t.Helper()
	s.Apply(manifest("FTPUser", teamA, name, "password_hash_secret: {name: ftp-users}, "+spec))
}

// A condition is a condition in the status of a resource.
type condition struct {
	Type, Status, Reason, Message string
	ObservedGeneration            int64
}

// conditions returns the conditions of a resource by type.
func (s *site) conditions(path string) map[string]condition {
	s.t.Helper()
	o, err := s.Get(path)
	must.OK(s.t, err)
	all := map[string]condition{}
	for _, c := range list(field(o, "status", "conditions")) {
		text := func(key string) string { v, _ := c[key].(string); return v }
		generation, _ := c["observedGeneration"].(float64)
		all[text("type")] = condition{text("type"), text("status"), text("reason"), text("message"), int64(generation)}
	}
	return all
}

// wait repeats try until it returns nil, and returns how long that took. It ends the test after limit.
func (s *site) wait(what string, limit time.Duration, try func() error) time.Duration {
	s.t.Helper()
	start := time.Now()
	for {
		err := try()
		took := time.Since(start)
		if err == nil {
			return took
		}
		if took > limit {
			s.t.Fatalf("%s took more than %v: %v", what, limit, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// waitFor waits until a condition has a status and a reason, and returns its message.
func (s *site) waitFor(path, kind, status, reason string) string {
	s.t.Helper()
	var c condition
	s.wait(fmt.Sprintf("%s: %s=%s (%s)", path, kind, status, reason), waitTimeout, func() error {
		c = s.conditions(path)[kind]
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("%+v", s.conditions(path))
		}
		return nil
	})
	return c.Message
}

// A replica is a running server of the site.
type replica struct {
	s       *site
	address string // of the control connection
	metrics string
	root    string // its files
	cmd     *exec.Cmd
	log     *servicetest.Log
}

// start starts the pod's program as a replica and waits until it is ready. root is the folder of an earlier replica
// whose container restarts, or "".
func (s *site) start(number int, root string) *replica {
	s.t.Helper()
	r := s.launch(number, root)
	s.wait("becoming ready", waitTimeout, r.ready)
	return r
}

// launch is like start, but does not wait.
func (s *site) launch(number int, root string) *replica {
	s.t.Helper()
	if root == "" {
		root = s.whole.TempDir()
	}
	r := &replica{
		s: s, root: root, log: &servicetest.Log{},
		address: fmt.Sprintf("%s%d:2121", s.host, number), metrics: fmt.Sprintf("%s%d:9121", s.host, number),
	}
	pod := s.release.container()
	environ := []string{"HOME=" + root, "KUBECONFIG=" + s.kubeconfig, "POD_NAMESPACE=ftp",
		fmt.Sprintf("POD_NAME=babelftp-%d", number)}
	for _, e := range mount(s.t, s.release, s.release.pod(), root) {
		key, value, _ := strings.Cut(e, "=")
		switch {
		case value == "": // a field of the pod
			continue
		case strings.HasSuffix(key, "LISTEN"):
			value = fmt.Sprintf("%s%d%s", s.host, number, value[strings.LastIndex(value, ":"):])
		case key == "BABELFTP_CLUSTER_PEERS":
			value = s.host + "{replica}"
		}
		environ = append(environ, key+"="+value)
	}
	environ = append(environ, "BABELFTP_CLUSTER_REPLICA="+fmt.Sprint(number))
	program := "babelftp"
	if len(pod.Command) > 0 {
		program = filepath.Base(pod.Command[0])
	}
	args := append([]string{}, pod.Args...)
	for i, arg := range args {
		if arg == configFile {
			args[i] = filepath.Join(root, configFile)
		}
	}
	r.cmd = exec.Command(filepath.Join(s.programs, program), args...)
	r.cmd.Env = environ
	r.cmd.Stdout, r.cmd.Stderr = io.Discard, r.log
	must.OK(s.t, r.cmd.Start())
	s.whole.Cleanup(func() {
		r.kill()
		if s.whole.Failed() {
			text := r.log.String()
			s.whole.Logf("replica %d:\n%s", number, text[max(0, len(text)-8000):])
		}
	})
	return r
}

// kill kills the server.
func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// ready returns an error unless /readyz responds with 200.
func (r *replica) ready() error {
	response, err := http.Get("http://" + r.metrics + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %d %s", response.StatusCode, text)
	}
	return nil
}

// memory returns the resident memory of the server in MiB.
func (r *replica) memory() int {
	r.s.t.Helper()
	status := must.ReadFile(r.s.t, fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	_, rest, _ := strings.Cut(status, "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		r.s.t.Fatal(err)
	}
	return kib >> 10
}

// connect opens a session from a new address, because failed logins delay later ones from the same address.
func (r *replica) connect() (*ftptest.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(loopback())}, Timeout: waitTimeout}
	conn, err := dialer.Dial("tcp", r.address)
	if err != nil {
		return nil, err
	}
	c := ftptest.NewConn(conn)
	if _, err := c.Reply(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// login logs in with the usual password.
func (r *replica) login(user string) (*ftptest.Conn, error) {
	c, err := r.connect()
	if err != nil {
		return nil, err
	}
	reply, err := c.Send("USER " + user)
	if err == nil && strings.HasPrefix(reply, "331") {
		reply, err = c.Send("PASS " + servicetest.Password)
	}
	if err == nil && !strings.HasPrefix(reply, "230") {
		err = fmt.Errorf("login as %s: %s", user, reply)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// mayLogin returns an error unless the user can log in and log out.
func (r *replica) mayLogin(user string) error {
	c, err := r.login(user)
	if err != nil {
		return err
	}
	return c.Close()
}

// mayNotLogin returns an error if the user can log in.
func (r *replica) mayNotLogin(user string) error {
	if err := r.mayLogin(user); err == nil {
		return fmt.Errorf("%s can log in", user)
	}
	return nil
}

// session logs in, or ends the test.
func (r *replica) session(user string) *ftptest.Client {
	r.s.t.Helper()
	c, err := r.login(user)
	must.OK(r.s.t, err)
	r.s.t.Cleanup(func() { _ = c.Close() })
	return ftptest.New(r.s.t, c.Conn)
}

// startsIn returns an error unless the sessions of a user start in a directory.
func (r *replica) startsIn(user, home string) error {
	c, err := r.login(user)
	if err != nil {
		return err
	}
	defer c.Close()
	reply, err := c.Send("PWD")
	if err == nil && !strings.Contains(reply, `"`+home+`"`) {
		err = fmt.Errorf("PWD: %s, want %s", reply, home)
	}
	return err
}

// keeps returns an error unless a file of the replica's copy of the resources contains text.
func (r *replica) keeps(text string) error {
	folder := filepath.Join(r.root, config.DefaultKubernetesFolder)
	found := false
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		found = found || strings.Contains(string(content), text)
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("no file below %s contains %s", folder, text)
	}
	return err
}

// manifest returns an FTPTenant or FTPUser. spec is in YAML's flow style, without braces.
func manifest(kind, namespace, name, spec string) string {
	return fmt.Sprintf(
		"apiVersion: babelftp.io/v1alpha1\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", kind, name,
		namespace, spec)
}

// resourcePath returns the path of a custom resource NAMESPACE/RESOURCE/NAME.
func resourcePath(id string) string { return "/apis/babelftp.io/v1alpha1/namespaces/" + id }
