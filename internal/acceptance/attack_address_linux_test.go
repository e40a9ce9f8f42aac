package acceptance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// withHosts gives the server a /etc/hosts of its own. Who is not root gets that by a namespace of users.
func withHosts(file string) (env []string) {
	namespace := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		namespace = append(namespace, "--map-root-user")
	}
	return append(namespace, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, file)
}

// TestFormerAddressOfAPeer moves a replica to another address, and then a client comes from the former one. Its data
// connections are not those of a replica for long.
func TestFormerAddressOfAPeer(t *testing.T) {
	t.Parallel()
	const own, former, next = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	hosts := filepath.Join(t.TempDir(), "hosts")
	resolve := func(address string) { // in place, because the mount is of this file
		t.Helper()
		if err := os.WriteFile(hosts, []byte(address+" peer.example\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolve(former)
	storage := s3test.Start(t, "minio")
	s := &site{
		env: withHosts(hosts), storage: storage, client: storage.Client(),
		buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)},
	}
	file := s.configure(t)
	const ports = 8
	control := int(ftptest.FreePorts(t, 1+ports, own))
	replaceIn(t, file, `listen: "127.0.0.1:0"`, fmt.Sprintf(
		"listen: \"%s:%d\"\npassive: {ports: %d-%d}\ncluster: {replica: 0, replicas: 2, peers: [%q, peer.example]}\ndata_timeout: 2s",
		own, control, control+1, control+ports, own))
	s.start(t, file)

	store := func() (reply string, err error) {
		_, conn, err := dialFrom(former, s.address)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		c := ftptest.NewConn(conn)
		c.Timeout = waitTimeout
		for _, line := range []string{"USER alice@acme", "PASS " + password} {
			if reply, err = c.Send(line); err != nil {
				return reply, err
			}
		}
		reply, err = c.Upload("STOR /file", "some data")
		return reply, err
	}
	if reply, err := store(); err == nil && reply[:1] == "2" {
		t.Errorf("a replica stores a file without a header: %q", reply)
	}
	resolve(next)
	var reply string
	var err error
	waitUntil(t, func() bool {
		reply, err = store()
		return err == nil && reply[:1] == "2"
	}, func() { t.Errorf("a client at the former address of a replica gets %q, %v", reply, err) })
}
