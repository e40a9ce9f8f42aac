package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// resourcePath is the path of the custom resources.
const resourcePath = "/apis/babelftp.io/v1alpha1/namespaces/"

// A kubernetesReplica is one of two servers with the custom resources of an API server.
type kubernetesReplica struct {
	*process
	config, address, metrics string
}

// ready reports whether the replica is ready.
func (r *kubernetesReplica) ready(t *testing.T) bool {
	t.Helper()
	status, _ := servicetest.Get(t, "http://"+r.metrics+"/readyz")
	return status == http.StatusOK
}

// login returns the whole reply to a login, and the session. A login name may start with a host, as HOST/NAME.
func (r *kubernetesReplica) login(t *testing.T, name, password string) (string, *ftptest.Conn) {
	t.Helper()
	conn, err := ftptest.Open(r.address)
	must.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, _ = conn.Reply()
	if host, user, ok := strings.Cut(name, "/"); ok {
		_, _ = conn.Send("HOST " + host)
		name = user
	}
	_, _ = conn.Send("USER " + name)
	reply, _ := conn.Send("PASS " + password)
	return reply, conn
}

// A kubernetesSite is two replicas with the namespaces team-a and team-b, which may use one bucket each, and a tenant
// of their files.
type kubernetesSite struct {
	t        *testing.T
	api      *kubeapi.Server
	dir      folder
	storage  *s3test.Server
	bucket   map[string]string // by namespace, and of the files and the state
	ports    int
	replicas []*kubernetesReplica
}

func newKubernetesSite(t *testing.T) *kubernetesSite {
	s := &kubernetesSite{t: t, api: kubeapi.New(t), dir: newFolder(t), storage: s3test.Start(t, "minio"),
		bucket: map[string]string{}}
	for _, of := range []string{"team-a", "team-b", "files", "state"} {
		s.bucket[of] = s.storage.Bucket(t)
	}
	hosts := s.hosts()
	s.ports = int(ftptest.FreePorts(t, 2+4*len(hosts), hosts...))
	s.dir.write("kubeconfig", fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q}}]
contexts: [{name: test, context: {cluster: test}}]
`, s.api.Config().Host))
	certificate, key := must.Certificate(t, &x509.Certificate{DNSNames: []string{"ftp.example"}})
	s.dir.write("tls.crt", []byte(certificate))
	s.dir.write("tls.key", []byte(key))
	for n := range hosts {
		s.start(n, fmt.Sprint("folder-", n))
	}
	for _, r := range s.replicas {
		waitUntil(t, func() bool { return r.ready(t) }, func() { t.Fatal("a replica is not ready") })
	}
	return s
}

func (s *kubernetesSite) hosts() []string { return []string{"127.0.0.2", "127.0.0.3"} }

// start starts a replica whose kubernetes.folder has this name, instead of the one that ran before.
func (s *kubernetesSite) start(n int, name string) {
	s.t.Helper()
	host := s.hosts()[n]
	r := &kubernetesReplica{metrics: net.JoinHostPort(host, strconv.Itoa(s.ports+1))}
	r.config = s.dir.write(fmt.Sprint("replica-", n, ".yaml"), fmt.Appendf(nil, `
listen: %q
metrics_listen: %q
admin_socket: ""
tls: {cert_file: tls.crt, key_file: tls.key, required: false}
limits: {address: {sessions: 0}, bans: {address_score: 100000, user_score: 100000}}
passive: {ports: %d-%d}
cluster: {replica: %d, replicas: 2, peers: [%q, %q]}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
state: {bucket: %s, keys: %q, folder: %q}
kubernetes:
  folder: %q
  namespaces:
    team-a: {buckets: [%q], hosts: ["*.team-a.example"]}
    team-b: {buckets: [%q]}
tenants:
  files: {bucket: %s, users: {fred: {password_hash: %q}}}
`, net.JoinHostPort(host, strconv.Itoa(s.ports)), r.metrics, s.ports+2, s.ports+9, n, s.hosts()[0], s.hosts()[1],
		s.storage.Endpoint, s.storage.Region, s.storage.AccessKeyID, s.storage.SecretAccessKey, s.bucket["state"],
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))), s.dir.file(fmt.Sprint("state-", n)),
		s.dir.file(name), s.bucket["team-a"], s.bucket["team-b"], s.bucket["files"],
		servicetest.PasswordHash().Reveal()))
	r.process = launch(s.t, "env", fmt.Sprint("POD_NAME=ftp-", n), kubernetesBinary(s.t), "--config", r.config, "--kubeconfig", s.dir.file("kubeconfig"),
		"--namespace", "ftp")
	r.address = r.expect(r.stderr, `msg=listening key=listen address=(\S+)`)[1]
	if n == len(s.replicas) {
		s.replicas = append(s.replicas, r)
	} else {
		s.replicas[n] = r
	}
}

// apply applies an object in a namespace.
func (s *kubernetesSite) apply(version, kind, namespace, name, fields string) {
	s.t.Helper()
	s.api.Apply(fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {namespace: %s, name: %s}\n%s\n", version, kind, namespace,
		name, fields))
}

// resource applies a custom resource.
func (s *kubernetesSite) resource(kind, namespace, name, spec string) {
	s.t.Helper()
	s.apply("babelftp.io/v1alpha1", kind, namespace, name, "spec: "+spec)
}

// secret applies a Secret.
func (s *kubernetesSite) secret(namespace, name string, data map[string]string) {
	s.t.Helper()
	text := "data:\n"
	for key, value := range data {
		text += fmt.Sprintf("  %s: %s\n", key, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	s.apply("v1", "Secret", namespace, name, text)
}

// user applies a user and its Secret.
func (s *kubernetesSite) user(namespace, name, tenant, hash string) {
	s.t.Helper()
	s.secret(namespace, name, map[string]string{"password_hash": hash})
	s.resource("FTPUser", namespace, name, fmt.Sprintf("{tenant: %s, password_hash_secret: {name: %s}}", tenant, name))
}

// awaitLogin waits until a login gets a reply that begins with want on each replica, and returns how long it took.
func (s *kubernetesSite) awaitLogin(name, password, want string) time.Duration {
	s.t.Helper()
	begun := time.Now()
	for n, r := range s.replicas {
		got := ""
		waitUntil(s.t, func() bool {
			var conn *ftptest.Conn
			got, conn = r.login(s.t, name, password)
			_ = conn.Close()
			return strings.HasPrefix(got, want)
		}, func() { s.t.Fatalf("replica %d: the login of %s gives %q, want %s", n, name, got, want) })
	}
	return time.Since(begun)
}

// awaitStatus waits until a condition of a resource has a reason, and returns its message.
func (s *kubernetesSite) awaitStatus(plural, namespace, name, condition, reason string) (message string) {
	s.t.Helper()
	var status any
	waitUntil(s.t, func() bool {
		object, err := s.api.Get(resourcePath + namespace + "/" + plural + "/" + name)
		must.OK(s.t, err)
		status = object["status"]
		fields, _ := status.(map[string]any)
		conditions, _ := fields["conditions"].([]any)
		for _, c := range conditions {
			c := c.(map[string]any)
			if c["type"] == condition && c["reason"] == reason {
				message, _ = c["message"].(string)
				return true
			}
		}
		return false
	}, func() {
		s.t.Fatalf("%s %s/%s: %v, want %s with the reason %s", plural, namespace, name, status, condition, reason)
	})
	return message
}

// certificate returns the certificate for a host that a replica shows.
func (s *kubernetesSite) certificate(r *kubernetesReplica, host string) string {
	s.t.Helper()
	conn, err := ftptest.Open(r.address)
	must.OK(s.t, err)
	defer conn.Close()
	_, _ = conn.Reply()
	_, _ = conn.Send("AUTH TLS")
	must.OK(s.t, conn.StartTLS(&tls.Config{ServerName: host, InsecureSkipVerify: true}))
	return conn.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// inEffect is the time within which a change should be in effect on each replica. Most of a longer time on a busy
// machine is spent on hashes of passwords.
const inEffect = 2 * time.Second

// TestCustomResources starts two replicas with an API server. Tenants and users that are applied there can log in at
// both of them, are changed and deleted, and stay in use while the API server is down.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	s := newKubernetesSite(t)
	const password = servicetest.Password
	hash := servicetest.PasswordHash().Reveal()
	shop := fmt.Sprintf("bucket: %s, hosts: [shop.team-a.example]", s.bucket["team-a"])

	s.resource("FTPTenant", "team-a", "shop", "{"+shop+"}")
	s.user("team-a", "alice", "shop", hash)
	if took := s.awaitLogin("alice@team-a_shop", password, "230"); took > inEffect {
		t.Logf("a new user could log in at both replicas after %v, want at most %v on an idle machine", took, inEffect)
	}
	s.awaitLogin("shop.team-a.example/alice", password, "230")
	s.awaitLogin("fred", password, "230")
	_, alice := s.replicas[0].login(t, "alice@team-a_shop", password)
	if reply, err := alice.Upload("STOR file", "content"); err != nil || !strings.HasPrefix(reply, "226") {
		t.Errorf("STOR: %q, %v", reply, err)
	}
	s.awaitStatus("ftptenants", "team-a", "shop", "Accepted", "Accepted")
	s.awaitStatus("ftpusers", "team-a", "alice", "Accepted", "Accepted")

	t.Run("secret", func(t *testing.T) {
		changed, err := passwordhash.New("another password")
		must.OK(t, err)
		s.secret("team-a", "alice", map[string]string{"password_hash": changed})
		s.awaitLogin("alice@team-a_shop", "another password", "230")
		s.awaitLogin("alice@team-a_shop", password, "530")
		s.secret("team-a", "alice", map[string]string{"password_hash": hash})
		s.awaitLogin("alice@team-a_shop", password, "230")
	})
	t.Run("broken", func(t *testing.T) {
		s.resource("FTPTenant", "team-a", "shop", fmt.Sprintf("{bucket: %s}", s.bucket["team-b"]))
		message := s.awaitStatus("ftptenants", "team-a", "shop", "Accepted", "NotAllowed")
		if !strings.Contains(message, "is not one of the buckets of the namespace") {
			t.Errorf("the message is %q", message)
		}
		s.resource("FTPTenant", "team-b", "till", fmt.Sprintf("{bucket: %s}", s.bucket["team-b"]))
		s.user("team-b", "bob", "till", hash)
		s.awaitLogin("bob@team-b_till", password, "230")
		s.awaitLogin("alice@team-a_shop", password, "230")
		if content, _, err := alice.Download("RETR file"); content != "content" {
			t.Errorf("RETR: %q, %v", content, err)
		}
	})
	t.Run("greeting", func(t *testing.T) {
		s.apply("v1", "ConfigMap", "team-a", "texts", "data: {en: Welcome to the shop, fr: Bienvenue à la boutique}")
		s.resource("FTPTenant", "team-a", "shop", "{"+shop+", greeting_config_map: {name: texts}, default_language: fr}")
		s.awaitLogin("shop.team-a.example/alice", password, "230-Bienvenue à la boutique")
		s.apply("v1", "ConfigMap", "team-a", "texts", "data: {en: Welcome to the shop, fr: Bonjour}")
		s.awaitLogin("shop.team-a.example/alice", password, "230-Bonjour")
	})
	t.Run("certificate", func(t *testing.T) {
		s.resource("FTPTenant", "team-a", "shop", "{"+shop+", tls: {cert_secret: {name: tls}, key_secret: {name: tls}}}")
		s.awaitStatus("ftptenants", "team-a", "shop", "Accepted", "SecretNotFound")
		for range 2 { // the second one replaces the first one
			certificate, key := must.Certificate(t, &x509.Certificate{
				DNSNames: []string{"shop.team-a.example"}, NotBefore: time.Now(), NotAfter: time.Now().AddDate(1, 0, 0)})
			s.secret("team-a", "tls", map[string]string{"tls.crt": certificate, "tls.key": key})
			pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
			must.OK(t, err)
			want := pair.Leaf.SerialNumber.String()
			for _, r := range s.replicas {
				waitUntil(t, func() bool { return s.certificate(r, "shop.team-a.example") == want },
					func() { t.Fatal("the certificate is not in use") })
			}
		}
		s.awaitStatus("ftptenants", "team-a", "shop", "CertificateReady", "Ready")
	})
	t.Run("host", func(t *testing.T) {
		s.resource("FTPTenant", "team-b", "thief", fmt.Sprintf("{bucket: %s, prefix: thief/, hosts: [shop.team-a.example]}",
			s.bucket["team-b"]))
		message := s.awaitStatus("ftptenants", "team-b", "thief", "Accepted", "HostTaken")
		if !strings.Contains(message, "shop.team-a.example") {
			t.Errorf("the message is %q", message)
		}
		s.awaitLogin("shop.team-a.example/alice", password, "230")
	})
	t.Run("usage", func(t *testing.T) {
		s.user("team-a", "carol", "shop", hash)
		s.user("team-a", "dave", "shop", hash)
		s.awaitLogin("dave@team-a_shop", password, "230") // then carol is known, too
		for _, r := range s.replicas {
			if reply, _ := r.login(t, "carol@team-a_shop", password); !strings.HasPrefix(reply, "230") {
				t.Errorf("a new user gets %q", reply)
			}
		}
		var status map[string]any
		waitUntil(t, func() bool {
			object, err := s.api.Get(resourcePath + "team-a/ftpusers/carol")
			must.OK(t, err)
			status, _ = object["status"].(map[string]any)
			return status["sessions"] == 2.0
		}, func() { t.Fatalf("the status is %v", status) })
		at, err := time.Parse(time.RFC3339, fmt.Sprint(status["lastLogin"]))
		if err != nil || time.Since(at) > time.Hour || status["enabled"] != true || status["name"] != "carol@team-a_shop" {
			t.Errorf("the status is %v", status)
		}
	})
	t.Run("delete", func(t *testing.T) {
		_, bob := s.replicas[1].login(t, "bob@team-b_till", password)
		must.OK(t, s.api.Delete(resourcePath+"team-a/ftpusers/alice"))
		if reply, err := alice.Reply(); !strings.HasPrefix(reply, "421") {
			t.Errorf("the session of a deleted user gets %q, %v", reply, err)
		}
		s.awaitLogin("alice@team-a_shop", password, "530")
		if reply, _ := bob.Send("NOOP"); !strings.HasPrefix(reply, "200") {
			t.Errorf("NOOP of another user: %q", reply)
		}
		must.OK(t, s.api.Delete(resourcePath+"team-b/ftptenants/till"))
		if reply, err := bob.Reply(); !strings.HasPrefix(reply, "421") {
			t.Errorf("the session of a user of a deleted tenant gets %q, %v", reply, err)
		}
		s.awaitLogin("bob@team-b_till", password, "530")
		s.user("team-a", "alice", "shop", hash)
		s.awaitLogin("alice@team-a_shop", password, "230")
	})
	t.Run("outage", func(t *testing.T) {
		s.api.Stop()
		s.awaitLogin("alice@team-a_shop", password, "230")
		s.replicas[0].signal(syscall.SIGTERM)
		s.replicas[0].wait()
		s.start(0, "folder-0")
		waitUntil(t, func() bool { return s.replicas[0].ready(t) },
			func() { t.Fatal("a restarted replica is not ready") })
		s.awaitLogin("alice@team-a_shop", password, "230")

		s.replicas[1].signal(syscall.SIGTERM)
		s.replicas[1].wait()
		s.start(1, "empty")
		if reply, _ := s.replicas[1].login(t, "alice@team-a_shop", password); !strings.HasPrefix(reply, "421") {
			t.Errorf("a login at a replica that knows nothing gets %q", reply)
		}
		if reply, _ := s.replicas[1].login(t, "fred", password); !strings.HasPrefix(reply, "230") {
			t.Errorf("a login of a user of the files gets %q", reply)
		}
		if s.replicas[1].ready(t) {
			t.Error("a replica that knows nothing is ready")
		}
		s.api.Start()
		waitUntil(t, func() bool { return s.replicas[1].ready(t) }, func() { t.Fatal("a replica is not ready") })
		s.awaitLogin("alice@team-a_shop", password, "230")
	})
}
