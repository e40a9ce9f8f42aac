package acceptance_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A consoleReplica is one of several replicas with an admin listener.
type consoleReplica struct {
	*process
	address, admin string
}

// ask sends a GET request of an administrator and decodes the response.
func (r *consoleReplica) ask(t *testing.T, path string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.admin+"/api/v1"+path, nil)
	must.OK(t, err)
	request.SetBasicAuth("ann", "correct horse battery staple")
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s", path, response.Status)
	}
	must.OK(t, json.NewDecoder(response.Body).Decode(into))
}

// replicas returns the numbers of the replicas that respond.
func (r *consoleReplica) replicas(t *testing.T) (up string) {
	t.Helper()
	var all []struct {
		Replica int
		Up      bool
		Reason  string
		Server  *struct{ Replica int }
	}
	r.ask(t, "/replicas", &all)
	for _, other := range all {
		if other.Up && other.Server.Replica == other.Replica {
			up += strconv.Itoa(other.Replica)
		} else if other.Up || other.Reason == "" {
			t.Errorf("unexpected replica %+v", other)
		}
	}
	return up
}

// TestReplicasInConsole starts three replicas with shared state. Each of them shows all of them, and finds the lines in
// the audit logs of all of them, until one hangs and another one is killed.
func TestReplicasInConsole(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	bucket, dir := storage.Bucket(t), newFolder(t)
	hash, err := passwordhash.New("correct horse battery staple")
	must.OK(t, err)
	users := dir.write("administrators", []byte("ann:"+hash+"\n"))
	hosts := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}
	control := int(ftptest.FreePorts(t, 1+6*len(hosts), hosts...))
	admins := ftptest.FreeAddresses(t, len(hosts))
	var replicas []*consoleReplica
	for n, host := range hosts {
		file := dir.write(fmt.Sprint("replica-", n, ".yaml"), fmt.Appendf(nil, `
listen: %q
metrics_listen: ""
admin_socket: ""
admin: {listen: %q, users_file: %q}
audit: {file: %q}
passive: {ports: %d-%d}
cluster: {replica: %d, replicas: %d, peers: ["%s"]}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
state: {bucket: %s, keys: %q, folder: %q}
tenants:
  acme:
    bucket: %[14]s
    users: {alice: {password_hash: %[17]q}}
`, net.JoinHostPort(host, strconv.Itoa(control)), admins[n], users, dir.file(fmt.Sprint(n, ".log")), control+1,
			control+6*len(hosts), n, len(hosts), strings.Join(hosts, `", "`), storage.Endpoint, storage.Region,
			storage.AccessKeyID, storage.SecretAccessKey, bucket,
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))), dir.file(fmt.Sprint(n, "-state")),
			servicetest.PasswordHash().Reveal()))
		r := &consoleReplica{process: launch(t, binary(t), "serve", "--config", file), admin: admins[n]}
		r.address = r.expect(r.stderr, `msg=listening key=listen address=(\S+)`)[1]
		replicas = append(replicas, r)
	}
	for n, r := range replicas {
		waitUntil(t, func() bool { return r.replicas(t) == "012" }, func() { t.Errorf("replica %d does not see all", n) })
		c := ftptest.Dial(t, r.address)
		c.Login("alice", servicetest.Password)
		c.Command(257, fmt.Sprint("MKD dir-", n))
		c.Command(221, "QUIT")
	}
	var page struct {
		Events   []struct{ Path string }
		Complete bool
		Sources  []struct{ File, Reason string }
	}
	waitUntil(t, func() bool {
		replicas[1].ask(t, "/activity?event=mkdir", &page)
		return len(page.Events) == 3
	}, func() { t.Errorf("found %+v", page) })
	if page.Events[0].Path != "/dir-2" || page.Events[2].Path != "/dir-0" || !page.Complete || len(page.Sources) != 3 {
		t.Errorf("found %+v", page)
	}

	replicas[2].signal(syscall.SIGSTOP)
	t.Cleanup(func() { replicas[2].signal(syscall.SIGCONT) })
	waitUntil(t, func() bool { return replicas[0].replicas(t) == "01" },
		func() { t.Error("a replica that hangs is up") })
	replicas[1].signal(syscall.SIGKILL)
	waitUntil(t, func() bool { return replicas[0].replicas(t) == "0" }, func() { t.Error("a killed replica is up") })
	var problems []struct{ Kind, Subject, Text, Action string }
	replicas[0].ask(t, "/problems", &problems)
	if len(problems) < 2 || problems[0].Kind != "replica" || problems[1].Kind != "replica" {
		t.Errorf("the problems are %+v", problems)
	}
	replicas[2].signal(syscall.SIGCONT)
	waitUntil(t, func() bool { return replicas[0].replicas(t) == "02" }, func() { t.Error("a replica stays down") })
}
