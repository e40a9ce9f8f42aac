package deploy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
	// The import makes go test rerun cached tests when the program changes.
	_ "github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// waitTimeout limits how long a test waits for an event. It is long because two cores may be busy with other
// tests.
const waitTimeout = 60 * time.Second

// binary builds babelftp with flags of go build.
func binary(t *testing.T, flags ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no program; this test needs babelftp")
	}
	return buildProgram(t, t.TempDir(), "babelftp", flags...)
}

// buildProgram builds a program into a folder, and returns its path.
func buildProgram(t *testing.T, folder, name string, flags ...string) string {
	t.Helper()
	name, pkg := filepath.Join(folder, name), "../cmd/"+name
	args := append([]string{"build", "-o", name}, append(flags, pkg)...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // like the image
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// TestBinary runs the program of the image as the server and as the check before an installation.
func TestBinary(t *testing.T) {
	babelftp := binary(t, "-tags", "nodemo")
	t.Run("serve", func(t *testing.T) { testServer(t, babelftp) })
	t.Run("check", func(t *testing.T) { testCheck(t, babelftp) })
	t.Run("login", func(t *testing.T) { testLogin(t, babelftp) })
}

// testServer runs the pod's command with the pod's files and variables, and connects to the ports that its
// probes, Services and monitors use. Each server has its own loopback address, so it can use the ports of the
// pod.
func testServer(t *testing.T, babelftp string) {
	for _, values := range valueFiles(t) {
		t.Run(filepath.Base(values), func(t *testing.T) {
			r := render(t, values)
			address := startServer(t, babelftp, r)
			c := r.container()
			ports := map[string]int{}
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			at := func(port any) string {
				if name, named := port.(string); named {
					port = ports[name]
				}
				return fmt.Sprintf("%s:%v", address, port)
			}
			for _, p := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				waitUntilOK(t, at(p.HTTPGet.Port), p.HTTPGet.Path)
			}
			ftptest.Dial(t, at("ftp")).Command(221, "QUIT")
			replicas := loadConfig(t, r).Cluster.Replicas
			for _, o := range r.objects {
				if o.Kind != "Service" {
					continue
				}
				for _, port := range o.Spec.Ports {
					if strings.HasPrefix(port.Name, "passive-") && replicas <= 1 {
						continue // a single replica only opens them for sessions
					}
					conn, err := net.Dial("tcp", at(port.TargetPort))
					if err != nil {
						t.Errorf("the Service %s leads to port %v: %v", o.Metadata.Name, port.TargetPort, err)
						continue
					}
					conn.Close()
				}
			}
			if m := r.find("PodMonitor", r.statefulSet.Metadata.Name); m.Kind != "" {
				end := m.Spec.PodMetricsEndpoints[0]
				if code, body := get(t, at(end.Port), end.Path); code != http.StatusOK ||
					!strings.Contains(body, "\nbabelftp_sessions ") {
					t.Errorf("status of /metrics: %d: %.200s", code, body)
				}
			}
		})
	}
}

// startServer starts the server of the pod on a loopback address, which it returns. With custom resources, it starts
// babelftp-kubernetes and an API server.
func startServer(t *testing.T, babelftp string, r release) string {
	t.Helper()
	if len(r.container().Command) > 0 {
		return startWithResources(t, r, kubeapi.New(t).Kubeconfig("ftp"))
	}
	root := t.TempDir()
	environ, address, listeners := serverEnviron(t, r, mount(t, r, r.pod(), root))
	cmd := exec.CommandContext(t.Context(), babelftp, r.container().Args...)
	cmd.Args[3] = filepath.Join(root, configFile)
	cmd.Env = append(environ, "HOME="+root)
	startAndWait(t, cmd, address, listeners, io.Discard)
	return address
}

// startWithResources starts babelftp-kubernetes as the pod does, with a connection to an API server. It returns the
// address of the server.
func startWithResources(t *testing.T, r release, kubeconfig string) string {
	t.Helper()
	root := t.TempDir()
	program := filepath.Join(root, r.container().Command[0])
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/"+r.container().Command[0])
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	environ, address, listeners := serverEnviron(t, r, mount(t, r, r.pod(), root))
	cmd := exec.CommandContext(t.Context(), program, r.container().Args...)
	cmd.Args[2] = filepath.Join(root, configFile)
	cmd.Env = append(environ, "HOME="+root, "KUBECONFIG="+kubeconfig, "POD_NAMESPACE=ftp",
		"POD_NAME="+r.statefulSet.Metadata.Name+"-0")
	startAndWait(t, cmd, address, listeners, t.Output())
	return address
}

// serverEnviron returns the variables of the pod's server with a loopback address instead of the pod's
// address and without an S3 server, and the number of its listeners.
func serverEnviron(t *testing.T, r release, pod []string) (environ []string, address string, listeners int) {
	t.Helper()
	address = loopback()
	address = address[:strings.LastIndex(address, ".")+1] + "0" // the number of the replica
	for _, e := range pod {
		e = strings.Replace(e, "=127.0.0.1:", "=:", 1) // the admin listener
		if key, port, _ := strings.Cut(e, "=:"); strings.HasSuffix(key, "LISTEN") {
			e = fmt.Sprintf("%s=%s:%s", key, address, port)
			listeners++
		}
		environ = append(environ, e)
	}
	environ = append(environ, "AWS_REGION=eu-west-3", "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x",
		"AWS_ENDPOINT_URL=http://"+closedPort(t), "BABELFTP_LOG_FORMAT=json")
	if loadConfig(t, r).Cluster.IsSet() { // a pod is ready when its name resolves to its address
		environ = append(
			environ, "BABELFTP_CLUSTER_REPLICA=0",
			"BABELFTP_CLUSTER_PEERS="+strings.TrimSuffix(address, "0")+"{replica}")
	}
	return environ, address, listeners
}

// startAndWait starts a server and waits for its listeners on address. The log is copied to logged.
func startAndWait(t *testing.T, cmd *exec.Cmd, address string, listeners int, logged io.Writer) {
	t.Helper()
	log, err := cmd.StderrPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	waitForListeners(t, io.TeeReader(log, logged), address, listeners)
}

// waitForListeners reads a log until the server has this number of listeners on address.
func waitForListeners(t *testing.T, log io.Reader, address string, listeners int) {
	t.Helper()
	lines := bufio.NewScanner(log)
	var all strings.Builder
	for listeners > 0 && lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "listening") && strings.Contains(lines.Text(), address) {
			listeners--
		}
	}
	if listeners > 0 {
		t.Fatalf("the server exited:\n%s", all.String())
	}
	go func() { _, _ = io.Copy(io.Discard, log) }()
}

// loopback returns a random loopback address.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// TestQuickstart runs the containers of quickstart.yaml with only the mounted files, and stores a file.
func TestQuickstart(t *testing.T) {
	text := must.ReadFile(t, "quickstart.yaml")
	var deployment object
	for _, o := range parse(t, text).objects {
		if o.Kind == "Deployment" {
			deployment = o
		}
	}
	c := deployment.Spec.Template.Spec.Containers[0]
	root, address := t.TempDir(), loopback()
	args := slices.Clone(c.Args)
	for i, arg := range args {
		if port, ok := strings.CutPrefix(arg, ":"); ok && port == fmt.Sprint(c.Ports[0].ContainerPort) {
			args[i] = address + arg
		} else if strings.HasPrefix(arg, "/") {
			args[i] = root + arg
		}
	}
	for _, mount := range c.VolumeMounts {
		must.OK(t, os.Mkdir(root+mount.MountPath, 0o700))
	}
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = []string{"TMPDIR=" + root + "/tmp"}
	startAndWait(t, cmd, address, 1, io.Discard)
	client := ftptest.Dial(t, fmt.Sprintf("%s:%d", address, c.Ports[0].ContainerPort))
	client.Login("demo", "demo")
	client.Store("hello.txt", "bonjour")
	client.Want("bonjour", "RETR hello.txt")
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	return l.Addr().String()
}

// waitUntilOK requests a path until the status is 200, like Kubernetes.
func waitUntilOK(t *testing.T, address, path string) {
	t.Helper()
	for end := time.Now().Add(waitTimeout); ; {
		code, body := get(t, address, path)
		if code == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("GET %s: status %d: %s", path, code, body)
		}
	}
}

func get(t *testing.T, address, path string) (int, string) {
	t.Helper()
	return servicetest.Get(t, "http://"+address+path)
}

// testCheck runs the command of the check with valid configurations and with an invalid one.
func testCheck(t *testing.T, babelftp string) {
	for _, tt := range []struct {
		name, values, set, want string
		ok                      bool
	}{
		{"secrets", "loadbalancer", "preStopSeconds=1", "configuration ok: 1 tenant, 1 user", true},
		{"certificate-to-come", "gke", "preStopSeconds=1", "configuration ok: 1 tenant, 1 user", true},
		{"own-configuration", "openshift", "preStopSeconds=1", "configuration ok: 1 tenant, 1 user", true},
		{"custom-resources", "customresources", "config.tenants=null", "configuration ok: 0 tenants, 0 users", true},
		{"bad-border", "customresources", "customResources.namespaces.team-a.buckets={A}",
			"kubernetes.namespaces.team-a.buckets.0", false},
		{"bad-hash", "minimal", "config.tenants.acme.users.alice.password_hash=secret",
			"babelftp.yaml:9:24: tenants.acme.users.alice.password_hash", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := render(t, filepath.Join(chart, "ci", tt.values+"-values.yaml"), tt.set)
			out, err := runPod(t, babelftp, r, r.pods()["check"])
			if (err == nil) != tt.ok || !strings.Contains(out, tt.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// runPod runs the command of a pod with its files and variables until it exits.
func runPod(t *testing.T, babelftp string, r release, pod podSpec) (string, error) {
	t.Helper()
	root := t.TempDir()
	cmd := exec.CommandContext(t.Context(), babelftp, pod.Containers[0].Args...)
	cmd.Env = append(mount(t, r, pod, root), "HOME="+root, "PATH="+os.Getenv("PATH"))
	cmd.Args[3] = filepath.Join(root, configFile)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// testLogin runs curl like helm test. Helm prints the log of a failed test.
func testLogin(t *testing.T, babelftp string) {
	r := render(t, filepath.Join(chart, "ci", "minimal-values.yaml"), "tests.login.existingSecret=test-user")
	address := startServer(t, babelftp, r)
	pod := r.find("Pod", "test-babelftp-test-login").Spec.Pod.Containers[0]
	var args []string
	for _, arg := range slices.Concat(pod.Command, pod.Args) {
		arg = strings.NewReplacer("$(USERNAME)", "alice", "$(PASSWORD)", "correct horse battery",
			"test-babelftp.ftp.svc:21/", address+":2121/").Replace(arg)
		args = append(args, arg)
	}
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	if err == nil || strings.Contains(string(out), "correct horse") {
		t.Errorf("%q: %v\n%s", args, err, out)
	}
	if !strings.Contains(string(out), "curl: (67)") {
		t.Errorf("the output of helm test does not mention the refused login:\n%s", out)
	}
}
