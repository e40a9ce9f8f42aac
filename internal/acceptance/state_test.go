package acceptance_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A stateReplica is one of several servers with shared state.
type stateReplica struct {
	*process
	address, config, socket string
}

// A stateSite is several servers that share their state in a bucket.
type stateSite struct {
	t         *testing.T
	dir       folder
	proxy     *s3test.Proxy
	authority *servicetest.Authority
	buckets   [2]string // for files and for the state
	key       string
}

// configure writes the configuration of a replica, whose copy of the state is in a folder of its own.
func (s *stateSite) configure(name, challenges string) *stateReplica {
	storage := s.proxy.Server()
	r := &stateReplica{socket: s.dir.file(name + ".sock")}
	r.config = s.dir.write(name+".yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:0
metrics_listen: ""
admin_socket: %q
tls:
  required: false
  acme: {directory: %q, http_listen: %q}
ca_file: %q
limits: {bans: {address_score: 3, user_score: 100}}
s3: {endpoint: %q, region: %s, path_style: true, access_key_id: %q, secret_access_key: %q}
state: {bucket: %s, keys: %q, folder: %q}
tenants:
  acme:
    hosts: [ftp.acme.example]
    bucket: %s
    users: {alice: {password_hash: %q}}
`, r.socket, s.authority.Directory, challenges, s.authority.CAFile, storage.Endpoint, storage.Region, storage.AccessKeyID,
		storage.SecretAccessKey, s.buckets[1], s.key, s.dir.file(name+"-state"), s.buckets[0],
		servicetest.PasswordHash().Reveal()))
	return r
}

// start starts a configured replica.
func (s *stateSite) start(r *stateReplica) {
	r.process = launch(s.t, binary(s.t), "serve", "--config", r.config)
	r.address = r.expect(r.stderr, `msg=listening key=listen address=(\S+)`)[1]
}

// refuses reports whether the server refuses connections from an address.
func (r *stateReplica) refuses(t *testing.T, from string) bool {
	t.Helper()
	conn := ftptest.NewConn(ftptest.DialFrom(t, from, r.address))
	defer conn.Close()
	reply, _ := conn.Reply()
	return strings.HasPrefix(reply, "421")
}

// fail sends a wrong password from an address.
func (r *stateReplica) fail(t *testing.T, from string) {
	t.Helper()
	conn := ftptest.NewConn(ftptest.DialFrom(t, from, r.address))
	defer conn.Close()
	_, _ = conn.Reply()
	_, _ = conn.Send("USER alice@acme")
	_, _ = conn.Send("PASS wrong")
}

// resumes opens a session with TLS and reports whether it resumed an earlier one.
func (r *stateReplica) resumes(t *testing.T, cfg *tls.Config) bool {
	t.Helper()
	conn, err := ftptest.Open(r.address)
	must.OK(t, err)
	defer conn.Close()
	for _, line := range []string{"", "AUTH TLS"} {
		if line != "" {
			_, err = conn.Send(line)
		} else {
			_, err = conn.Reply()
		}
		must.OK(t, err)
	}
	must.OK(t, conn.StartTLS(cfg))
	_, err = conn.Send("NOOP") // reads the tickets of TLS 1.3
	must.OK(t, err)
	return conn.Conn.(*tls.Conn).ConnectionState().DidResume
}

// spread forwards each connection to the next of the given addresses.
func spread(t *testing.T, address string, to []string) {
	l, err := net.Listen("tcp", address)
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	var next atomic.Int64
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				var out net.Conn
				for out == nil { // until one of them runs
					out, _ = net.Dial("tcp", to[next.Add(1)%int64(len(to))])
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
}

// TestSharedState starts three replicas with an ACME authority behind a load balancer, so that challenges reach any
// of them. They share one certificate, resume the TLS sessions of each other, and share bans and failed logins. While
// S3 is down, a replica that is started again still has all of that.
func TestSharedState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"minio", "versitygw"} {
		t.Run(name, func(t *testing.T) {
			storage := s3test.Start(t, name)
			s := &stateSite{
				t: t, dir: newFolder(t), proxy: s3test.StartProxy(t, storage),
				authority: servicetest.StartAuthority(t, time.Hour),
				buckets:   [2]string{storage.Bucket(t), storage.Bucket(t)},
				key:       base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))),
			}
			challenges := ftptest.FreeAddresses(t, 3)
			var replicas []*stateReplica
			for n, address := range challenges {
				replicas = append(replicas, s.configure(fmt.Sprintf("replica-%d", n), address))
			}
			spread(t, s.authority.HTTPAddress, challenges)
			out := launch(t, binary(t), "check", "--probe", "--config", replicas[0].config).succeed()
			if want := "state s3://" + s.buckets[1] + "/.babelftp/state/: ok\n"; !strings.Contains(out, want) {
				t.Errorf("check --probe prints %q, want %q", out, want)
			}
			for _, r := range replicas {
				s.start(r)
			}

			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(s.authority.Root(t))
			client := &tls.Config{RootCAs: roots, ServerName: "ftp.acme.example", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
			trusts := func(r *stateReplica) {
				t.Helper()
				waitUntil(t, func() bool {
					conn, err := ftptest.Open(r.address)
					must.OK(t, err)
					defer conn.Close()
					_, _ = conn.Reply()
					_, _ = conn.Send("AUTH TLS")
					return conn.StartTLS(&tls.Config{RootCAs: roots, ServerName: "ftp.acme.example"}) == nil
				}, func() { t.Fatal("no certificate") })
			}
			orders := 0
			for _, r := range replicas {
				trusts(r)
			}
			for _, r := range replicas {
				orders += strings.Count(r.stderr.String(), `msg="ACME certificate obtained"`)
			}
			if orders != 1 {
				t.Errorf("%d certificates were ordered, want 1", orders)
			}

			waitUntil(t, func() bool { // the replicas have the same keys soon after the start
				client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
				replicas[0].resumes(t, client)
				return replicas[1].resumes(t, client) && replicas[2].resumes(t, client)
			}, func() { t.Error("TLS sessions are not resumed on other replicas") })

			launch(t, binary(t), "bans", "add", "127.0.0.8", "--socket", replicas[0].socket).succeed()
			for _, r := range replicas[1:] { // two failures at two replicas, and the third is below
				r.fail(t, "127.0.0.9")
			}
			banned := func(r *stateReplica) bool { return r.refuses(t, "127.0.0.8") && r.refuses(t, "127.0.0.9") }
			for _, r := range replicas {
				waitUntil(t, func() bool {
					if !replicas[0].refuses(t, "127.0.0.9") {
						replicas[0].fail(t, "127.0.0.9")
					}
					return banned(r)
				}, func() { t.Error("a ban is not shared") })
			}

			down := s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(503, "SlowDown")})
			replicas[2].signal(15)
			replicas[2].wait()
			s.start(replicas[2])
			if !banned(replicas[2]) {
				t.Error("a replica that was started again without S3 has no bans")
			}
			trusts(replicas[2])
			down.End()
			launch(t, binary(t), "bans", "remove", "127.0.0.8", "--socket", replicas[2].socket).succeed()
			waitUntil(t, func() bool { return !replicas[1].refuses(t, "127.0.0.8") },
				func() { t.Error("the removal of a ban is not shared") })
		})
	}
}
