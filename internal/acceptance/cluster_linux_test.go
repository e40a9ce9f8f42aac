package acceptance_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// clusterTransfers is split between the subtests of TestCluster.
var clusterTransfers = flag.Int(
	"cluster.transfers", 400, "how many transfers TestCluster makes behind its load balancer")

const (
	clusterReplicas = 3
	portsOfReplica  = 60
	clusterClients  = 50
)

// A clusterNetwork defines the addresses of the balancer (host 0), the replicas (the following hosts) and the
// clients.
type clusterNetwork struct {
	host   func(n int) string
	client func(n int) net.IP
	public string // configuration of the PASV address; empty for IPv6, which has no PASV
}

// loopback is the network that most tests use.
func loopback() clusterNetwork {
	return clusterNetwork{
		host:   func(n int) string { return fmt.Sprintf("127.0.0.%d", n+1) },
		client: func(n int) net.IP { return net.IPv4(127, 0, 1, byte(1+n)) },
		public: ", public_address: 127.0.0.1",
	}
}

// A clusterSite is several replicas behind a load balancer.
type clusterSite struct {
	replicas []*site
	balancer *balancer
	network  clusterNetwork
}

// newClusterSite starts replicas on 127.0.0.2 and the following addresses, and a balancer on 127.0.0.1 that sends
// PROXY headers of the given version. 0 means no headers.
func newClusterSite(t *testing.T, storage *s3test.Server, version byte) *clusterSite {
	t.Helper()
	return newClusterSiteIn(t, loopback(), storage, version)
}

// newClusterSiteIn is like newClusterSite in a given network.
func newClusterSiteIn(t *testing.T, network clusterNetwork, storage *s3test.Server, version byte) *clusterSite {
	t.Helper()
	const ports = clusterReplicas * portsOfReplica
	var hosts []string
	for n := range clusterReplicas + 1 {
		hosts = append(hosts, network.host(n))
	}
	control, peers := int(ftptest.FreePorts(t, 1+ports, hosts...)), hosts[1:]
	c := &clusterSite{
		network: network,
		balancer: &balancer{t: t, host: hosts[0], version: version, choose: func(int) int {
			return mathrand.IntN(clusterReplicas)
		}},
	}
	headers := ""
	if version > 0 {
		headers = fmt.Sprintf("proxy_protocol: {trusted: [%q]}\n", hosts[0])
	}
	buckets := map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}
	for n, host := range peers {
		s := &site{storage: storage, client: storage.Client(), buckets: buckets}
		file := s.configure(t, "    resume: discard")
		listen := fmt.Sprintf(
			"%slisten: %q\npassive: {ports: %d-%d%s}\ncluster: {replica: %d, replicas: %d, peers: [\"%s\"]}",
			headers, net.JoinHostPort(host, strconv.Itoa(control)), control+1, control+ports, network.public, n,
			clusterReplicas, strings.Join(peers, `", "`))
		replaceIn(t, file, `listen: "127.0.0.1:0"`, listen)
		s.start(t, file)
		c.replicas = append(c.replicas, s)
		c.balancer.hosts = append(c.balancer.hosts, host)
	}
	for port := control; port <= control+ports; port++ {
		c.balancer.listen(port)
	}
	return c
}

// relay sends all control connections to the first replica and all data connections to the second.
func (c *clusterSite) relay() {
	_, controlPort, _ := net.SplitHostPort(c.balancer.address)
	c.balancer.choose = func(port int) int {
		if strconv.Itoa(port) == controlPort {
			return 0
		}
		return 1
	}
}

// sum returns the sum of a metric over all replicas.
func (c *clusterSite) sum(metric string) (sum float64) {
	for _, s := range c.replicas {
		sum += s.metric(c.balancer.t, metric)
	}
	return sum
}

// A balancer sends each connection to a random replica.
type balancer struct {
	t       *testing.T
	host    string   // its own address
	hosts   []string // hosts of the replicas
	version byte     // version of the PROXY headers, 0 for none
	address string
	choose  func(port int) (replica int)
}

// listen accepts connections on a port. The first port is the control port.
func (b *balancer) listen(port int) {
	b.t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(b.host, strconv.Itoa(port)))
	must.OK(b.t, err)
	b.t.Cleanup(func() { _ = l.Close() })
	if b.address == "" {
		b.address = l.Addr().String()
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.pass(conn.(*net.TCPConn), port)
		}
	}()
}

// pass copies data between a client and a replica in both directions. It also passes on closed connections and
// resets.
func (b *balancer) pass(client *net.TCPConn, port int) {
	defer client.Close()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(b.host)}}
	conn, err := dialer.Dial("tcp", net.JoinHostPort(b.hosts[b.choose(port)], strconv.Itoa(port)))
	if err != nil {
		return
	}
	defer conn.Close()
	server := conn.(*net.TCPConn)
	if b.version > 0 {
		if _, err := proxyproto.HeaderProxyFromAddrs(b.version, client.RemoteAddr(), client.LocalAddr()).WriteTo(
			server); err != nil {
			return
		}
	}
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		both.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil {
				for _, conn := range way {
					_ = conn.SetLinger(0)
					_ = conn.Close()
				}
				return
			}
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}

// A clusterClient transfers files through the balancer.
type clusterClient struct {
	*ftptest.Conn
	number int
	tenant string
	pasv   bool // whether the server supports PASV
}

// connect logs in from an address that five clients share. Every second client uses TLS.
func (c *clusterSite) connect(number int) (*clusterClient, error) {
	client := &clusterClient{number: number, tenant: []string{acme, umbrella}[number/2%2], pasv: c.network.public != ""}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.network.client(number / 5)}}
	conn, err := dialer.Dial("tcp", c.balancer.address)
	if err != nil {
		return nil, err
	}
	client.Conn = ftptest.NewConn(conn)
	client.Timeout = waitTimeout
	lines := []string{"USER alice@" + client.tenant, "PASS " + password, "TYPE I"}
	if reply, err := client.Reply(); err != nil || !strings.HasPrefix(reply, "220") {
		return client, fmt.Errorf("the greeting is %q, %w", reply, err)
	}
	if number%2 == 1 {
		if reply, err := client.Send("AUTH TLS"); err != nil || !strings.HasPrefix(reply, "234") {
			return client, fmt.Errorf("AUTH TLS: %q, %w", reply, err)
		}
		// the certificate is for other tests
		cfg := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
		if err := client.StartTLS(cfg); err != nil {
			return client, err
		}
		client.TLS = cfg
		lines = append([]string{"PBSZ 0", "PROT P"}, lines...)
	}
	for _, line := range lines {
		if reply, err := client.Send(line); err != nil || reply[0] > '3' {
			return client, fmt.Errorf("%.4s: %q, %w", line, reply, err)
		}
	}
	return client, nil
}

// data opens a data connection with PASV, if supported, or EPSV.
func (c *clusterClient) data(n int) (net.Conn, error) {
	if n%2 == 0 || !c.pasv {
		return c.Data()
	}
	reply, err := c.Send("PASV")
	if err != nil {
		return nil, err
	}
	var high, low int
	_, numbers, _ := strings.Cut(reply, "(127,0,0,1,")
	if _, err := fmt.Sscanf(numbers, "%d,%d", &high, &low); err != nil {
		return nil, fmt.Errorf("PASV: %q", reply)
	}
	return c.DialData(net.JoinHostPort("127.0.0.1", strconv.Itoa(high<<8|low)))
}

// errBegun marks a transfer that failed after its 150 reply.
var errBegun = errors.New("the transfer had begun")

// transfer uploads content, or downloads if content is nil.
func (c *clusterClient) transfer(n int, line string, content []byte) ([]byte, error) {
	data, err := c.data(n)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	if reply, err := c.Send(line); err != nil || !strings.HasPrefix(reply, "150") {
		return nil, fmt.Errorf("%s: %q, %w", line, reply, err)
	}
	if content != nil {
		_, err = data.Write(content)
		_ = data.Close()
	} else {
		content, err = io.ReadAll(data)
	}
	reply, replyErr := c.Reply()
	if err != nil || replyErr != nil || !strings.HasPrefix(reply, "226") {
		return nil, fmt.Errorf("%w: %s: %q, %w, %w", errBegun, line, reply, err, replyErr)
	}
	return content, nil
}

// file returns unique content. One file in 16 has several parts.
func (c *clusterClient) file(n int) []byte {
	size := mathrand.IntN(200_000)
	switch mathrand.IntN(16) {
	case 0:
		size += 6 << 20
	case 1:
		size = 0
	}
	b := make([]byte, size)
	seed := fmt.Sprintf("%-32s", fmt.Sprintf("client %d, file %d", c.number, n))
	_, _ = mathrand.NewChaCha8([32]byte([]byte(seed))).Read(b)
	return b
}

// work stores files and reads them again in sessions on random replicas. It returns the number of transfers.
func (c *clusterSite) work(number, transfers int) (done int, err error) {
	var client *clusterClient
	defer func() {
		if client != nil && client.Conn != nil {
			_ = client.Close()
		}
	}()
	const ofSession = 5 // number of transfers before it reconnects
	for n := 0; done < transfers; n++ {
		var stored []byte
		for _, command := range []string{"STOR", "RETR"} {
			if done%ofSession == 0 {
				if client != nil {
					_, _ = client.Send("QUIT")
					_ = client.Close()
				}
				if client, err = c.connect(number); err != nil {
					return done, err
				}
			}
			line := fmt.Sprintf("%s %d-%d", command, number, n)
			if command == "STOR" {
				stored = client.file(n)
				_, err = client.transfer(mathrand.IntN(2), line, stored)
			} else {
				var back []byte
				if back, err = client.transfer(mathrand.IntN(2), line, nil); err == nil && !bytes.Equal(back, stored) {
					err = fmt.Errorf(
						"%s: %d bytes %.20x come back, want %d %.20x", line, len(back), back, len(stored), stored)
				}
			}
			if err != nil {
				return done, err
			}
			done++
		}
	}
	return done, nil
}

// The load balancer sends each connection to any of three replicas. 50 clients with ten addresses and two tenants
// store and read files, with and without TLS, with PASV and EPSV. Without PROXY headers they all have the same
// address. No transfer may fail, and no client may receive another client's data.
func TestCluster(t *testing.T) {
	t.Parallel()
	for version, name := range map[byte]string{0: "without-headers", 2: "headers-v2"} {
		t.Run(name, func(t *testing.T) {
			c := newClusterSite(t, s3test.Start(t, "minio"), version)
			c.judge(t, max(2, *clusterTransfers/2/clusterClients))
		})
	}
}

// judge lets every client make several transfers and checks that all succeed and that many of them are relayed.
func (c *clusterSite) judge(t *testing.T, each int) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	total := 0
	began := time.Now()
	for number := range clusterClients {
		clients.Go(func() {
			done, err := c.work(number, each)
			if err != nil {
				t.Errorf("client %d after %d transfers: %v", number, done, err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += done
		})
	}
	clients.Wait()
	waitUntil(t, func() bool { return c.sum("babelftp_relays") == 0 }, func() { t.Error("the relays did not end") })
	relayed := c.sum(`babelftp_relays_total{result="complete"}`)
	t.Logf("%d transfers, %.0f of them relayed, in %v", total, relayed, time.Since(began).Round(time.Second))
	if relayed < float64(total)/3 { // two thirds are expected
		t.Errorf("only %.0f of %d transfers were relayed", relayed, total)
	}
	for _, result := range []string{"failed", "unmatched", "unreachable"} {
		if n := c.sum(`babelftp_relays_total{result="` + result + `"}`); n > 0 {
			t.Errorf("got %.0f relays with result %s", n, result)
		}
	}
	for _, tenant := range []string{acme, umbrella} {
		for _, direction := range []string{"upload", "download"} {
			failed := fmt.Sprintf(`babelftp_transfers_total{direction=%q,result="failed",tenant=%q}`, direction, tenant)
			if n := c.sum(failed); n > 0 {
				t.Errorf("%s %.0f", failed, n)
			}
		}
	}
}
