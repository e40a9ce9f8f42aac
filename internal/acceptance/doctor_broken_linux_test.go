package acceptance_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// Addresses of a client on the Internet and of servers.
const (
	clientAddress = "198.51.100.7"
	elsewhere     = "203.0.113.77" // where no server is
	// otherPrivateServer is the address of another server in the same private network.
	otherPrivateServer = "10.0.0.8"
	publicServerV6     = "2001:db8::9"
	brokenPorts        = "30000-30009"
)

// A broken is a server that is misconfigured or behind a broken network. A row without other fields is a working
// server behind a NAT.
type broken struct {
	name  string
	lines []string // lines of the configuration
	// change changes the configuration, or files next to it.
	change func(t *testing.T, s *site, file string)
	// start starts something next to the server. It returns nft rules that replace the NAT.
	start func(t *testing.T, s *site, control string) (rules string)
	host  string   // address to listen on, if it is not the private one
	url   string   // for the doctor and the client; CONTROL and IMPLICIT are replaced with the ports
	args  []string // arguments of the doctor
	curl  []string // arguments of curl, for a client that fails without a finding
	// findings of the doctor at the URL with their configuration keys, such as "!ports-used passive.ports"; "!" marks a
	// problem
	found []string
	// logged lists the doctor's findings in the server's log after a client used PASV and EPSV.
	logged []string
}

// A clientSide is a network namespace with a client on the Internet.
type clientSide struct{ namespace string }

// launch starts a program in the namespace.
func (c clientSide) launch(t *testing.T, args ...string) *process {
	t.Helper()
	return launch(t, "nsenter", append([]string{"--net=" + c.namespace}, args...)...)
}

// internet creates a network for a client that is connected to the server's network.
func internet(t *testing.T) clientSide {
	t.Helper()
	holder := launch(t, "unshare", "--net", "sleep", "infinity")
	pid := holder.cmd.Process.Pid
	c := clientSide{fmt.Sprintf("/proc/%d/ns/net", pid)}
	own, err := os.Readlink("/proc/self/ns/net")
	must.OK(t, err)
	waitUntil(t, func() bool {
		other, err := os.Readlink(c.namespace)
		return err == nil && other != own
	}, func() { t.Fatal("there is no network namespace") })
	ip := func(args ...string) {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v\n%s", args, err, out)
		}
	}
	ip("link", "add", "server", "type", "veth", "peer", "name", "client", "netns", fmt.Sprint(pid))
	ip("link", "set", "lo", "up")
	for _, address := range []string{"198.51.100.1/24", publicServer + "/32", publicBalancer + "/32", "2001:db8::1/64", publicServerV6 + "/128"} {
		ip("address", "add", address, "dev", "server", "nodad")
	}
	ip("address", "add", privateServer+"/32", "dev", "lo")
	ip("address", "add", otherPrivateServer+"/32", "dev", "lo")
	ip("link", "set", "server", "up")
	for _, args := range []string{
		"link set lo up", "link set client up", "address add " + clientAddress + "/24 dev client",
		"route add default via 198.51.100.1", "route add unreachable 10.0.0.0/8", "route add unreachable " + elsewhere,
		"address add 2001:db8::7/64 dev client nodad",
	} {
		c.launch(t, append([]string{"ip"}, strings.Fields(args)...)...).succeed()
	}
	return c
}

// rules replaces the firewall and NAT rules. The server always reaches the Internet from its public address.
func rules(t *testing.T, text string) {
	t.Helper()
	text += fmt.Sprintf("table ip source {\n chain postrouting {\n  type nat hook postrouting priority 100;\n"+
		"  oifname server ip saddr 10.0.0.0/8 snat to %s\n }\n}\n", publicServer)
	nft := exec.Command("nft", "--file", "-")
	nft.Stdin = strings.NewReader("flush ruleset\n" + text)
	if out, err := nft.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, out)
	}
}

// nat forwards ports of the public address to the server.
func nat(ports ...string) string {
	return fmt.Sprintf("table ip nat {\n chain prerouting {\n  type nat hook prerouting priority -100;\n"+
		"  ip daddr %s tcp dport { %s } dnat to %s\n }\n}\n", publicServer, strings.Join(ports, ", "), privateServer)
}

// firewall drops or rejects connections to ports.
func firewall(verdict, ports string) string {
	return fmt.Sprintf("table inet filter {\n chain input {\n  type filter hook input priority 0;\n"+
		"  iifname server tcp dport { %s } %s\n }\n}\n", ports, verdict)
}

// haproxy starts a load balancer in front of the server. control and data are options for its control and data
// connections, such as send-proxy.
func haproxy(control, data string) func(t *testing.T, s *site, port string) string {
	return func(t *testing.T, s *site, port string) string {
		t.Helper()
		conf := fmt.Sprintf("defaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n"+
			"listen control\n bind %[1]s:%[2]s\n server s %[3]s:%[2]s %[4]s\n"+
			"listen data\n bind %[1]s:%[6]s\n server s %[3]s %[5]s\n",
			publicBalancer, port, privateServer, control, data, brokenPorts)
		launch(t, "haproxy", "-db", "-f", newFolder(t).write("haproxy.cfg", []byte(conf)))
		waitUntil(t, func() bool {
			conn, err := net.Dial("tcp", net.JoinHostPort(publicBalancer, port))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		}, func() { t.Fatal("haproxy does not listen") })
		return ""
	}
}

// bucketFails waits until the log reports an unusable bucket. Before that, logins fail because S3 has not responded
// yet.
func bucketFails(_ *testing.T, s *site, control string) string {
	s.server.expect(s.server.stderr, `bucket cannot be used`)
	return nat(control, brokenPorts)
}

// logins logs in once with each password from the private address and keeps the sessions.
func logins(user string, passwords ...string) func(t *testing.T, s *site, control string) string {
	return func(t *testing.T, s *site, control string) string {
		t.Helper()
		for _, p := range passwords {
			c := ftptest.New(t, ftptest.DialFrom(t, privateServer, s.address))
			c.Reply(220)
			c.Command(331, "USER "+user)
			c.Command(map[bool]int{true: 230, false: 530}[p == password], "PASS "+p)
		}
		return nat(control, brokenPorts)
	}
}

// otherServer starts a second server on the same buckets, and a load balancer that sends data connections there.
func otherServer(lines string) func(t *testing.T, s *site, control string) string {
	return func(t *testing.T, s *site, control string) string {
		t.Helper()
		other := &site{host: otherPrivateServer, storage: s.storage, client: s.client, buckets: s.buckets}
		file := other.configure(t, lines)
		for _, name := range []string{"tls.crt", "tls.key"} {
			text := must.ReadFile(t, filepath.Join(filepath.Dir(s.ca), name))
			must.WriteFile(t, filepath.Join(filepath.Dir(file), name), text)
		}
		replaceIn(t, file, `listen: "`+otherPrivateServer+`:0"`, `listen: "`+otherPrivateServer+`:`+control+`"`)
		other.start(t, file)
		return haproxy("", "backup\n server other "+otherPrivateServer)(t, s, control)
	}
}

// usePort takes the first passive port, as another program does.
func usePort(t *testing.T, _ *site, control string) string {
	t.Helper()
	l, err := net.Listen("tcp", privateServer+":30000")
	must.OK(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return nat(control, brokenPorts)
}

// keyed parses JSON findings into "finding keys". It omits the finding that the server has stopped.
func keyed(t *testing.T, text string) []string {
	t.Helper()
	var found []struct {
		Finding, Level, Cause, Change string
		Keys, Evidence                []string
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	var all []string
	for _, f := range found {
		t.Logf("%s %s: %s = %s @ %q > %q", f.Level, f.Finding, f.Cause, f.Change, f.Keys, f.Evidence)
		if f.Level == "wrong" {
			f.Finding = "!" + f.Finding
		}
		if f.Finding != "shutting-down" {
			all = append(all, strings.Join(append([]string{f.Finding}, f.Keys...), " "))
		}
	}
	return slices.Compact(all)
}

// certified gives the server a certificate of an authority that the client trusts.
func certified(root *must.Authority, template x509.Certificate, chain ...string) func(*testing.T, *site, string) {
	return func(t *testing.T, s *site, file string) {
		t.Helper()
		issuer := root.Authority("intermediate")
		if template.IPAddresses == nil {
			for _, address := range []string{publicServer, publicBalancer, publicServerV6, privateServer} {
				template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
			}
		}
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		cert, key := issuer.Issue(&template)
		switch strings.Join(chain, "") {
		case "":
			cert += issuer.Certificate
		case "self-signed":
			cert, key = must.Certificate(t, &template)
		}
		dir := filepath.Dir(file)
		must.WriteFile(t, filepath.Join(dir, "tls.crt"), cert)
		must.WriteFile(t, filepath.Join(dir, "tls.key"), key)
		s.ca = filepath.Join(dir, "ca.crt")
		must.WriteFile(t, s.ca, root.Certificate)
	}
}

// brokenSites returns the table. To add a broken server, add a row.
func brokenSites(t *testing.T, storage *s3test.Server) []broken {
	root := must.NewAuthority(t, "root")
	now := time.Now()
	passive := func(more string) string { return "passive: {ports: " + brokenPorts + more + "}" }
	right, balanced := passive(", public_address: "+publicServer), passive(", public_address: "+publicBalancer)
	replaced := func(old, text string) func(*testing.T, *site, string) {
		return func(t *testing.T, s *site, file string) {
			certified(root, x509.Certificate{})(t, s, file)
			replaceIn(t, file, old, text)
		}
	}
	tls := func(text string) func(*testing.T, *site, string) { return replaced("required: false", text) }
	limits := func(text string) func(*testing.T, *site, string) {
		return replaced("limits: {address: {sessions: 0}", "limits: {address: {sessions: 0}, "+text)
	}
	blocked := func(verdict, ports string) func(*testing.T, *site, string) string {
		return func(_ *testing.T, _ *site, control string) string {
			return nat(control, brokenPorts) + firewall(verdict, strings.ReplaceAll(ports, "CONTROL", control))
		}
	}
	carl := func(more string) string { return "      carl: {password_hash: HASH, " + more + "}" }
	dave := func(more string) string {
		return "  lost:\n    bucket: BUCKET\n    s3: {endpoint: '" + storage.Endpoint + "', " + more + "}\n    users:\n      dave: {password_hash: HASH}"
	}
	const (
		asCarl, asDave = "ftp://carl%40acme@" + publicServer + ":CONTROL", "ftp://dave@" + publicServer + ":CONTROL"
		atBalancer     = "ftp://alice%40acme@" + publicBalancer + ":CONTROL"

		certificate = " tls.cert_file tls.acme.hosts tenants.TENANT.tls.cert_file"
		kept        = "!password-kept tls.cert_file tls.acme.hosts"
		address     = " passive.public_address passive.public_address_by_network"
		mismatch    = "!protocol-mismatch listen tls.implicit_listen"
		proxy       = "!proxy-header proxy_protocol.trusted"
		refused     = "!login-refused tenants.TENANT.users tenants.TENANT.users_file"
		unavailable = "!unavailable limits.bans tenants.TENANT.bucket s3 auth"
		limit       = "!limit limits tenants.TENANT.limits limits.bans"
		denied      = "!address-refused limits.server.deny tenants.TENANT.limits tenants.TENANT.users.USER.limits"
		ports       = "!ports-unreachable passive.ports"
		refuses     = "!storage-refuses tenants.TENANT.bucket s3.endpoint s3.access_key_id"
		denies      = "!command-refused tenants.TENANT.users.USER.permissions tenants.TENANT.permissions"
		silent      = "!no-greeting proxy_protocol.trusted limits"
	)
	return []broken{
		{name: "nothing", lines: []string{right}},

		{name: "private-address", lines: []string{passive("")}, found: []string{"!passive-address" + address},
			logged: []string{"!passive-address" + address}},
		{name: "another-public-address", lines: []string{passive(", public_address: " + elsewhere)},
			found: []string{"!passive-address" + address}, logged: []string{"!passive-unreached" + address + " passive.ports"}},
		{name: "another-public-address-without-NAT", host: publicServer, lines: []string{passive(", public_address: " + elsewhere)},
			start: func(*testing.T, *site, string) string { return "" },
			found: []string{"!passive-address" + address}, logged: []string{"!passive-address" + address}},
		{name: "ports-dropped", lines: []string{right}, start: blocked("drop", brokenPorts), args: []string{"--samples", "2"},
			found: []string{ports}, logged: []string{ports}},
		{name: "ports-rejected", lines: []string{right}, start: blocked("reject with tcp reset", brokenPorts), found: []string{ports},
			logged: []string{ports}},
		{name: "one-port-open", lines: []string{right}, start: blocked("reject with tcp reset", "30000-30008"), args: []string{"--samples", "20"},
			found: []string{ports}, curl: []string{"--ssl-reqd", "--head"}},
		{name: "ports-not-forwarded", lines: []string{right},
			start: func(_ *testing.T, _ *site, control string) string { return nat(control) },
			found: []string{ports}, logged: []string{ports}},
		{name: "ports-of-IPv6-dropped", host: "[" + publicServerV6 + "]", lines: []string{right}, args: []string{"--samples", "2"},
			url: "ftp://alice%40acme@[" + publicServerV6 + "]:CONTROL", start: blocked("drop", brokenPorts),
			found: []string{ports}, logged: []string{ports}},

		{name: "public-address-without-DNS", lines: []string{passive(", public_address: ftp.acme.invalid")},
			found:  []string{"!passive-address-unknown passive.public_address"},
			logged: []string{"!passive-address-unknown passive.public_address"}},
		{name: "ports-all-used", lines: []string{"passive: {ports: 30000-30000, public_address: " + publicServer + "}"},
			start: usePort, found: []string{"!ports-used passive.ports"}, logged: []string{"!ports-used passive.ports"}},

		{name: "certificate-expired", lines: []string{right},
			change: certified(root, x509.Certificate{NotBefore: now.AddDate(0, -3, 0), NotAfter: now.Add(-time.Hour)}),
			found:  []string{"!certificate-expired" + certificate, kept},
			logged: []string{"!certificate" + certificate, "!certificate-expired" + certificate}},
		{name: "certificate-of-another-host", lines: []string{right},
			change: certified(root, x509.Certificate{IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)}}),
			found:  []string{"!certificate-name" + certificate + " tenants.TENANT.hosts", kept},
			logged: []string{"!certificate" + certificate}},
		{name: "certificate-signed-by-itself", lines: []string{right}, change: certified(root, x509.Certificate{}, "self-signed"),
			found: []string{"!certificate" + certificate, kept}, logged: []string{"!certificate" + certificate}},
		{name: "certificate-without-the-intermediate-one", lines: []string{right}, change: certified(root, x509.Certificate{}, "incomplete"),
			found: []string{"!certificate" + certificate, kept}, logged: []string{"!certificate" + certificate}},

		{name: "implicit-TLS-at-the-explicit-port", lines: []string{right}, url: "ftps://alice%40acme@" + publicServer + ":CONTROL",
			found: []string{mismatch}, logged: []string{mismatch}},
		{name: "explicit-TLS-at-the-implicit-port", lines: []string{right}, url: "ftp://alice%40acme@" + publicServer + ":IMPLICIT",
			start: func(t *testing.T, s *site, control string) string { return nat(port(t, s.implicit), brokenPorts) },
			found: []string{mismatch}, logged: []string{mismatch}},
		{name: "TLS-required-and-a-client-without", lines: []string{right}, change: tls("required: true"), curl: []string{"--insecure"},
			logged: []string{"!tls-required tls.required tls.optional_networks tenants.TENANT.tls.required"}},
		{name: "TLS-1.3-and-a-client-of-TLS-1.2", lines: []string{right}, change: tls("required: false, min_version: '1.3'"),
			curl: []string{"--ssl-reqd", "--tls-max", "1.2"}, found: []string{"tls-new tls.min_version"},
			logged: []string{"!tls-failed tls.min_version tls.cipher_suites"}},
		{name: "client-certificates", lines: []string{right}, change: tls("client_certificates: {ca_file: ca.crt, required: true}"),
			found:  []string{"!client-certificate tls.client_certificates.required tenants.TENANT.tls.client_certificates"},
			logged: []string{"!client-certificate tls.client_certificates.required tenants.TENANT.tls.client_certificates"}},

		{name: "PROXY-required-and-a-direct-client", lines: []string{right, "proxy_protocol: {trusted: [198.51.100.0/24]}"},
			found: []string{silent}, logged: []string{proxy}},
		{name: "PROXY-required-and-a-balancer-without", url: atBalancer, start: haproxy("", ""),
			lines: []string{balanced, "proxy_protocol: {trusted: [" + privateServer + "/32]}"}, found: []string{silent}, logged: []string{proxy}},
		{name: "PROXY-not-believed", url: atBalancer, start: haproxy("send-proxy", "send-proxy"), lines: []string{balanced},
			found: []string{proxy}, logged: []string{proxy}},
		{name: "PROXY-on-the-control-connection-only", url: atBalancer, start: haproxy("send-proxy-v2", ""),
			lines: []string{balanced, "proxy_protocol: {trusted: [" + privateServer + "/32]}", "stall_timeout: 2s"},
			args:  []string{"--samples", "2"}, found: []string{"!data-elsewhere proxy_protocol.trusted cluster.peers"}, logged: []string{proxy}},
		{name: "two-servers-without-cluster", url: atBalancer, start: otherServer(balanced), lines: []string{balanced, "stall_timeout: 2s"},
			found:  []string{"!data-elsewhere proxy_protocol.trusted cluster.peers", "active-failed"},
			logged: []string{ports}},
		{name: "balancer-without-PROXY", url: atBalancer, start: haproxy("", ""), lines: []string{balanced},
			found: []string{"active-failed"}},

		{name: "unknown-user", lines: []string{right}, url: "ftp://bob%40acme@" + publicServer + ":CONTROL", found: []string{refused},
			logged: []string{refused}},
		{name: "user-of-two-tenants", lines: []string{right}, url: "ftp://alice@" + publicServer + ":CONTROL", found: []string{refused},
			logged: []string{"!host-tenant tenants.TENANT.hosts"}},
		{name: "wrong-password", lines: []string{fmt.Sprintf("      carl: {password_hash: %q}", passwordHash(t, oldPassword)), right},
			url: asCarl, found: []string{refused}, logged: []string{refused}},
		{name: "user-disabled", lines: []string{carl("disabled: true"), right}, url: asCarl,
			found:  []string{"!user-disabled tenants.TENANT.users.USER.disabled"},
			logged: []string{"!user-disabled tenants.TENANT.users.USER.disabled"}},
		{name: "user-expired", lines: []string{carl("expires: 2020-01-01"), right}, url: asCarl,
			found:  []string{"!user-expired tenants.TENANT.users.USER.expires"},
			logged: []string{"!user-expired tenants.TENANT.users.USER.expires"}},
		{name: "host-of-another-tenant", lines: []string{right}, logged: []string{"!host-tenant tenants.TENANT.hosts"},
			curl: []string{"--ssl-reqd", "--insecure", "--connect-to", "::" + publicServer + ":", "--url", "ftp://ftp.umbrella.example:CONTROL/"}},

		{name: "address-denied", lines: []string{right}, change: limits("server: {deny: [198.51.100.0/24]}"), found: []string{denied},
			logged: []string{"!address-refused limits.server.deny"}},
		{name: "address-denied-to-the-user", lines: []string{carl("limits: {deny: [198.51.100.0/24]}"), right}, url: asCarl,
			found: []string{denied}, logged: []string{
				"!address-refused tenants.acme.limits.tenant.deny tenants.acme.limits.user.deny tenants.acme.users.USER.limits.deny"}},
		{name: "user-banned", lines: []string{carl("quota: 1GiB"), right}, change: limits("bans: {user_score: 2}"), url: asCarl,
			start: logins("carl@acme", "wrong", "wrong"), found: []string{unavailable},
			logged: []string{"!limit limits.bans", refused}},
		{name: "sessions-of-the-user", lines: []string{carl("limits: {sessions: 1}"), right}, url: asCarl,
			start: logins("carl@acme", password), found: []string{limit},
			logged: []string{"!limit tenants.acme.limits.user.sessions tenants.acme.users.USER.limits.sessions"}},
		{name: "sessions-of-the-server", lines: []string{right}, change: limits("server: {sessions: 1}"),
			start: logins("alice@acme", password), found: []string{limit},
			logged: []string{"!limit limits.server.sessions"}},

		{name: "bucket-missing", url: asDave, start: bucketFails, found: []string{unavailable}, logged: []string{refuses},
			lines: []string{"  lost:\n    bucket: no-such-bucket\n    users:\n      dave: {password_hash: HASH}", right}},
		{name: "bucket-deleted", lines: []string{right}, found: []string{refuses}, logged: []string{refuses},
			start: func(t *testing.T, s *site, control string) string {
				bucket := s.buckets[acme]
				_, err := storage.Client().DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: &bucket})
				must.OK(t, err)
				return nat(control, brokenPorts)
			}},
		{name: "credentials-wrong", lines: []string{dave("access_key_id: nobody, secret_access_key: nothing-at-all"), right},
			url: asDave, start: bucketFails, found: []string{unavailable}, logged: []string{refuses}},
		{name: "S3-down", lines: []string{strings.ReplaceAll(dave("access_key_id: a, secret_access_key: b"), storage.Endpoint, "http://127.0.0.1:1"), right},
			url: asDave, start: bucketFails, found: []string{unavailable}, logged: []string{refuses}},
		{name: "read-only", lines: []string{carl("permissions: [list, read]"), right}, url: asCarl,
			found: []string{denies}},
		{name: "quota", lines: []string{carl("quota: 10B"), right}, url: asCarl,
			found: []string{"!storage-full tenants.TENANT.quota tenants.TENANT.users.USER.quota"}},
		{name: "files-too-large", lines: []string{"    files: {max_size: 1KiB}", right},
			found: []string{"file-too-large tenants.TENANT.files.max_size part_size"}},
		{name: "files-of-another-kind", lines: []string{"    files: {deny: ['*.bin']}", right},
			found: []string{"file-denied tenants.TENANT.files.deny"}},
		{name: "inspector-down", lines: []string{"    inspect: {clamd: 'tcp://127.0.0.1:1'}", right},
			found:  []string{"!not-judged tenants.TENANT.inspect"},
			logged: []string{"!not-judged tenants.TENANT.inspect"}},
		{name: "directory-down", lines: []string{"    auth: {hook: {url: 'http://127.0.0.1:1/'}}", right},
			url: "ftp://bob%40acme@" + publicServer + ":CONTROL", found: []string{unavailable}, logged: []string{unavailable}},
		{name: "drop-box", lines: []string{carl("permissions: [write]"), right}, url: asCarl, found: []string{denies},
			logged: []string{denies}},
		{name: "no-deletions", lines: []string{carl("permissions: [list, read, write]"), right}, url: asCarl,
			found: []string{denies, "!leftover"}},
		{name: "session-reuse", lines: []string{"    tls: {require_session_reuse: true}", right},
			found: []string{"tls-reuse tenants.TENANT.tls.require_session_reuse"}},

		{name: "no-such-name", lines: []string{right}, url: "ftp://alice%40acme@ftp.acme.invalid", found: []string{"!name-unresolved"}},
		{name: "nothing-listens", lines: []string{right}, url: "ftp://alice%40acme@" + publicServer + ":1",
			found: []string{"!address-unreachable listen tls.implicit_listen"}},
		{name: "control-port-dropped", lines: []string{right}, start: blocked("drop", "CONTROL"), args: []string{"--logins", "1"},
			found: []string{"!address-unreachable listen tls.implicit_listen"}},
	}
}

// TestDoctorBroken checks that babelftp doctor finds the fault from outside and in the log, names the configuration
// keys, and reports nothing else. The server has a public address through a NAT, and the client is on the Internet.
func TestDoctorBroken(t *testing.T) {
	t.Parallel()
	if !inNetwork(t) {
		return
	}
	client := internet(t)
	storage := s3test.Start(t, "minio")
	root := must.NewAuthority(t, "root")
	for _, test := range brokenSites(t, storage) {
		t.Run(test.name, func(t *testing.T) {
			s := &site{host: test.host, storage: storage, client: storage.Client(),
				buckets: map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}}
			if s.host == "" {
				s.host = privateServer
			}
			file := s.configure(t, test.lines...)
			if test.change == nil {
				test.change = certified(root, x509.Certificate{})
			}
			test.change(t, s, file)
			s.start(t, file)
			control := port(t, s.address)
			if test.start == nil {
				test.start = func(*testing.T, *site, string) string { return nat(control, brokenPorts) }
			}
			rules(t, test.start(t, s, control))
			t.Cleanup(func() { rules(t, "") })
			at := strings.NewReplacer("CONTROL", control, "IMPLICIT", port(t, s.implicit))
			if test.url == "" {
				test.url = "ftp://alice%40acme@" + publicServer + ":CONTROL"
			}
			test.examine(t, client, s, at.Replace(test.url))
			test.use(t, client, s, at)
			s.stop(t)
			d := launchWith(t, s.server.stderr.String(), binary(t), "doctor", "--json", "--log", "-")
			d.wait()
			if got := keyed(t, d.stdout.String()); !slices.Equal(got, test.logged) {
				t.Errorf("in the log: got %q, want %q", got, test.logged)
			}
		})
	}
}

// examine runs the doctor on the Internet.
func (b *broken) examine(t *testing.T, client clientSide, s *site, url string) {
	t.Helper()
	secret := newFolder(t).write("password", []byte(password+"\n"))
	p := client.launch(t, append([]string{binary(t), "doctor", url, "--json", "--ca-file", s.ca, "--password-file", secret,
		"--samples", "4", "--logins", "2", "--idle", "0"}, b.args...)...)
	p.wait()
	if got := keyed(t, p.stdout.String()); !slices.Equal(got, b.found) {
		t.Errorf("at %s: got %q, want %q: %s", url, got, b.found, p.stderr.String())
	}
}

// use lists the directory of the user with PASV and with EPSV.
func (b *broken) use(t *testing.T, client clientSide, s *site, at *strings.Replacer) {
	t.Helper()
	scheme, rest, _ := strings.Cut(at.Replace(b.url), "://")
	user, host, _ := strings.Cut(rest, "@")
	args := []string{"curl", "--silent", "--show-error", "--max-time", "8", "--connect-timeout", "3", "--cacert", s.ca, "--user",
		strings.ReplaceAll(user, "%40", "@") + ":" + password}
	if b.curl == nil {
		b.curl = []string{"--ssl-reqd"}
	}
	for _, arg := range b.curl {
		args = append(args, at.Replace(arg))
	}
	if !slices.Contains(b.curl, "--url") {
		args = append(args, scheme+"://"+host+"/")
	}
	for _, mode := range [][]string{{"--disable-epsv", "--no-ftp-skip-pasv-ip"}, {}} {
		c := client.launch(t, append(slices.Clone(args), mode...)...)
		c.wait()
		t.Logf("curl %q: %s", mode, c.stderr.String())
	}
}
