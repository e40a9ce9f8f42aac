package acceptance_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// namespaceBinary is the environment variable with the path of babelftp in a test process that runs in its own
// network namespace.
const namespaceBinary = "BABELFTP_TEST_NAMESPACE_BINARY"

// inNetwork reruns the test in a process with its own network and returns true there. Without root it uses a user
// namespace.
func inNetwork(t *testing.T) bool {
	t.Helper()
	if program := os.Getenv(namespaceBinary); program != "" {
		built.once.Do(func() {
			if built.dir, built.err = os.MkdirTemp("", "babelftp-acceptance-"); built.err == nil {
				built.err = os.Symlink(program, filepath.Join(built.dir, filepath.Base(program)))
			}
		})
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), namespaceBinary+"="+binary(t))
	cmd.SysProcAttr = dieWithParent()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("in a separate network namespace: %v", err)
	}
	return false
}

// privateNetwork adds addresses of a private prefix (RFC 4193) to the loopback interface.
func privateNetwork(t *testing.T) clusterNetwork {
	t.Helper()
	n := clusterNetwork{
		host:   func(n int) string { return fmt.Sprintf("fd00:babe::%d", n+1) },
		client: func(n int) net.IP { return net.ParseIP(fmt.Sprintf("fd00:babe:0:%x::7", n+1)) },
	}
	commands := [][]string{{"link", "set", "lo", "up"}}
	for host := range clusterReplicas + 1 {
		commands = append(commands, []string{"address", "add", n.host(host) + "/128", "dev", "lo"})
	}
	for client := range clusterClients / 5 {
		commands = append(commands, []string{"address", "add", n.client(client).String() + "/128", "dev", "lo"})
	}
	for _, arguments := range commands {
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v\n%s", arguments, err, out)
		}
	}
	return n
}

// Three replicas, the load balancer and all clients have IPv6 addresses. Without PROXY headers the replicas see
// only the address of the balancer.
func TestClusterIPv6(t *testing.T) {
	t.Parallel()
	if !inNetwork(t) {
		return
	}
	network := privateNetwork(t)
	for version, name := range map[byte]string{0: "without-headers", 2: "headers-v2"} {
		t.Run(name, func(t *testing.T) {
			newClusterSiteIn(t, network, s3test.Start(t, "minio"), version).judge(t, 2)
		})
	}
}
