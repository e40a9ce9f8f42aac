package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mholt/acmez/v3/acme"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// waitTimeout limits how long a test waits on a busy machine.
const waitTimeout = time.Minute

// A journal counts the results that an ACME observes.
type journal struct {
	mu      sync.Mutex
	log     bytes.Buffer
	count   map[bool]int // results by whether a certificate was issued
	changed chan struct{}
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log.Write(b)
}

func (j *journal) observe(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.count[err == nil]++
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log.String()
}

// listen opens an address like the server does.
func listen(ctx context.Context, _, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// results returns the numbers of issued and failed certificates.
func (j *journal) results() map[bool]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.count)
}

// issued returns the number of issued certificates.
func (j *journal) issued() int { return j.results()[true] }

// start starts an ACME that is stopped at the end of the test.
func start(t *testing.T, cfg config.ACME) (*ACME, *journal) {
	t.Helper()
	j := &journal{count: map[bool]int{}, changed: make(chan struct{}, 1)}
	m, err := NewACME(
		cfg, ACMEOptions{Observe: j.observe, Logger: slog.New(slog.NewTextHandler(j, nil)),
			CheckInterval: 50 * time.Millisecond})
	must.OK(t, err)
	t.Cleanup(func() {
		m.Stop()
		if t.Failed() {
			t.Log(j.text())
		}
	})
	must.OK(t, m.Start(t.Context(), listen))
	return m, j
}

// await waits for a certificate of a host that differs from before, and checks that the authority issued it for the
// host.
func await(t *testing.T, m *ACME, a *servicetest.Authority, host string, before *tls.Certificate) *tls.Certificate {
	t.Helper()
	deadline := time.After(waitTimeout)
	for {
		if c := m.Certificate(host); c != nil &&
			(before == nil || c.Leaf.SerialNumber.Cmp(before.Leaf.SerialNumber) != 0) {
			roots, between := x509.NewCertPool(), x509.NewCertPool()
			roots.AppendCertsFromPEM(a.Root(t))
			for _, der := range c.Certificate[1:] {
				if issuer, err := x509.ParseCertificate(der); err == nil {
					between.AddCert(issuer)
				}
			}
			if _, err := c.Leaf.Verify(
				x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between,
					CurrentTime: c.Leaf.NotBefore}); err != nil {
				t.Error(err)
			}
			return c
		}
		select {
		case <-deadline:
			t.Fatalf("missing certificate for %s", host)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// folder returns a folder for certificates. Background jobs of certmagic may still write to it shortly after
// [ACME.Stop], so errors when it is removed are ignored.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "acme")
	must.OK(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// configOf returns a configuration for an authority that uses one challenge. Each test needs its own host names,
// because certmagic keys challenges by host in the whole process.
func configOf(t *testing.T, a *servicetest.Authority, hosts ...string) config.ACME {
	return config.ACME{Hosts: hosts, Directory: a.Directory,
		CAFile: a.CAFile, Folder: folder(t)}
}

// Certificates are obtained by each challenge. A second server with the same folder does not request new ones.
func TestObtain(t *testing.T) {
	t.Parallel()
	for name, listens := range map[string]func(*config.ACME, *servicetest.Authority){
		"http-01":     func(c *config.ACME, a *servicetest.Authority) { c.HTTPListen = a.HTTPAddress },
		"tls-alpn-01": func(c *config.ACME, a *servicetest.Authority) { c.TLSListen = a.TLSAddress },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			acme, umbrella := name+".acme.example", name+".umbrella.example"
			a := servicetest.StartAuthority(t, time.Hour)
			cfg := configOf(t, a, acme, umbrella)
			listens(&cfg, a)
			m, j := start(t, cfg)
			first := await(t, m, a, acme, nil)
			await(t, m, a, umbrella, nil)
			if m.Certificate("ftp.example") != nil {
				t.Error("got a certificate for another host")
			}
			if text := j.text(); !strings.Contains(
				text, `msg="ACME certificate obtained" host=`+acme+` renewal=false`) {
				t.Errorf("unexpected log %s", text)
			}

			cfg.HTTPListen, cfg.TLSListen = "127.0.0.1:0", ""
			other, j := start(t, cfg)
			if c := await(t, other, a, acme, nil); c.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) != 0 {
				t.Error("the second server has a different certificate")
			}
			if asked := j.results(); len(asked) != 0 {
				t.Errorf("the second server called the authority: %v", asked)
			}
		})
	}
}

// Servers that share a folder use the same account and certificate, even if they start at the same time, and answer
// each other's challenges.
func TestSharedFolder(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "shared.acme.example")
	var managers []*ACME
	var journals []*journal
	for _, address := range []string{a.HTTPAddress, "127.0.0.1:0"} { // the authority cannot reach the second one
		cfg.HTTPListen = address
		m, j := start(t, cfg)
		managers, journals = append(managers, m), append(journals, j)
	}
	first, second := await(t, managers[0], a, "shared.acme.example", nil),
		await(t, managers[1], a, "shared.acme.example", nil)
	if first.Leaf.SerialNumber.Cmp(second.Leaf.SerialNumber) != 0 {
		t.Error("the servers have two certificates")
	}
	if issued := journals[0].issued() + journals[1].issued(); issued != 1 {
		t.Errorf("the authority issued %d certificates", issued)
	}
}

// Check reports the stored certificates, and folders that cannot be used.
func TestCheck(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "check.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	m, _ := start(t, cfg)
	c := await(t, m, a, "check.acme.example", nil)
	cfg.Hosts = append(cfg.Hosts, "check.umbrella.example")
	checked, err := NewACME(cfg, ACMEOptions{})
	must.OK(t, err)
	defer checked.Stop()
	const missing = "tls.acme: no certificate for check.umbrella.example yet: the server obtains it when it runs"
	for name, tc := range map[string]struct {
		now                 time.Time
		notes, warning, err string
	}{
		"new": {c.Leaf.NotBefore, "for check.acme.example expires on " + c.Leaf.NotAfter.UTC().Format(time.DateOnly) +
			", in 0 days", "", ""},
		"overdue": {c.Leaf.NotAfter.Add(-time.Minute), "", "for check.acme.example expires on", ""},
		"ended":   {c.Leaf.NotAfter, "", "", "for check.acme.example expired on"},
	} {
		notes, warnings, err := checked.Check(t.Context(), tc.now)
		others := strings.Join(slices.DeleteFunc(slices.Clone(warnings), func(w string) bool {
			return w == missing || strings.HasPrefix(w, "tls.acme.folder: ") // depends on who runs the test
		}), "")
		if !slices.Contains(warnings, missing) || !mentions(strings.Join(notes, ""), tc.notes) ||
			!mentions(others, tc.warning) || !mentions(fmt.Sprint(err), cmp.Or(tc.err, "<nil>")) {
			t.Errorf("%s: %q, %q, %v", name, notes, warnings, err)
		}
	}
	if files, err := os.ReadDir(cfg.Folder); err != nil || slices.ContainsFunc(files, func(f os.DirEntry) bool {
		return strings.HasPrefix(f.Name(), "check")
	}) {
		t.Errorf("the folder has %v, %v", files, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	cfg.Folder = filepath.Join(file, "acme")
	broken, err := NewACME(cfg, ACMEOptions{})
	must.OK(t, err)
	defer broken.Stop()
	if _, _, err := broken.Check(t.Context(), time.Now()); !mentions(fmt.Sprint(err), "tls.acme.folder: ") {
		t.Errorf("folder below a file: %v", err)
	}
}

// Check does not create the folder, because it would belong to root if root checks the configuration of a service.
// The server creates it. A folder that belongs to root is reported.
func TestCheckCreatesNoFolder(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "folder.acme.example")
	cfg.HTTPListen, cfg.Folder = a.HTTPAddress, filepath.Join(cfg.Folder, "new", "acme")
	checked, err := NewACME(cfg, ACMEOptions{})
	must.OK(t, err)
	defer checked.Stop()
	_, warnings, err := checked.Check(t.Context(), time.Now())
	if err != nil || !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.HasPrefix(w, "tls.acme.folder: "+cfg.Folder+" does not exist yet")
	}) {
		t.Errorf("before the first start: got %q, %v", warnings, err)
	}
	if _, err := os.Stat(filepath.Dir(cfg.Folder)); !os.IsNotExist(err) {
		t.Errorf("the check created the folder: %v", err)
	}
	m, _ := start(t, cfg)
	await(t, m, a, "folder.acme.example", nil)
	_, warnings, err = checked.Check(t.Context(), time.Now())
	if ofRoot := slices.ContainsFunc(warnings, func(w string) bool {
		return strings.Contains(w, "belongs to root")
	}); err != nil || ofRoot != (os.Geteuid() == 0) {
		t.Errorf("after the server created it: got %q, %v", warnings, err)
	}
}

// mentions reports whether text contains part. An empty part requires an empty text.
func mentions(text, part string) bool {
	return strings.Contains(text, part) && (part != "" || text == "")
}

// An authority that requires an external account only issues certificates to accounts with its key.
func TestExternalAccountBinding(t *testing.T) {
	t.Parallel()
	const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
	a := servicetest.StartBoundAuthority(t, time.Hour, map[string]string{"customer-7": key})
	cfg := configOf(t, a, "bound.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	m, j := start(t, cfg)
	select {
	case <-j.changed:
	case <-time.After(waitTimeout):
		t.Fatal("no event was observed")
	}
	if !strings.Contains(j.text(), "externalAccountRequired") {
		t.Errorf("unexpected log without the key: %s", j.text())
	}
	m.Stop()
	cfg.EAB = value.NewSecret("customer-7:" + key)
	m, j = start(t, cfg)
	await(t, m, a, "bound.acme.example", nil)
	if strings.Contains(j.text(), key) {
		t.Error("the log has the key")
	}
}

// A server answers the challenges of another server with the same folder, because a load balancer may send the
// authority to any of them.
func TestChallengeOfAnotherServer(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "challenge.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	answering := cfg
	answering.Hosts = []string{"challenge.umbrella.example"}
	start(t, answering)
	cfg.HTTPListen = "127.0.0.1:0" // the authority cannot reach this one
	m, _ := start(t, cfg)
	await(t, m, a, "challenge.acme.example", nil)
}

// A certificate is renewed before it expires, without a restart.
func TestRenew(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, 15*time.Second)
	cfg := configOf(t, a, "renew.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	m, j := start(t, cfg)
	first := await(t, m, a, "renew.acme.example", nil)
	second := await(t, m, a, "renew.acme.example", first)
	if !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Error("the second certificate does not expire later")
	}
	if text := j.text(); !strings.Contains(text, `msg="ACME certificate obtained" host=renew.acme.example renewal=true`) {
		t.Errorf("unexpected log %s", text)
	}
}

// If the authority fails or cannot reach the server, the failure is logged and counted, and the previous certificate
// stays in use.
func TestFailure(t *testing.T) {
	t.Parallel()
	a := servicetest.StartAuthority(t, time.Hour)
	cfg := configOf(t, a, "failure.acme.example")
	cfg.HTTPListen = a.HTTPAddress
	m, _ := start(t, cfg)
	first := await(t, m, a, "failure.acme.example", nil)
	m.Stop()

	// where the authority does not connect
	cfg.Hosts, cfg.HTTPListen = append(cfg.Hosts, "failure.umbrella.example"), "127.0.0.1:0"
	m, j := start(t, cfg)
	select {
	case <-j.changed:
	case <-time.After(waitTimeout):
		t.Fatal("no event was observed")
	}
	if got := j.results(); got[true] != 0 || got[false] == 0 ||
		!strings.Contains(j.text(), `msg="ACME certificate not obtained; TLS fails until it is"`) ||
		!strings.Contains(j.text(), `hint="check that the host name resolves to this server`) {
		t.Errorf("got %v, log %s", got, j.text())
	}
	if c := m.Certificate("failure.acme.example"); c == nil || c.Leaf.SerialNumber.Cmp(first.Leaf.SerialNumber) != 0 {
		t.Error("the previous certificate is gone")
	}
}

// The hint depends on whether the authority cannot be reached, cannot reach the host, or refuses.
func TestHint(t *testing.T) {
	refused := fmt.Errorf("order: %w", acme.Problem{Type: acme.ProblemTypeNamespace + "rateLimited"})
	unreached := fmt.Errorf("challenge: %w", acme.Problem{Type: acme.ProblemTypeConnection})
	for err, want := range map[error]string{
		errors.New("x509: unknown authority"): "reach tls.acme.directory", unreached: "resolves to this server", refused: "",
	} {
		if got := hint(err); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("hint(%v) = %q, want %q", err, got, want)
		}
	}
}

// The listeners accept nothing but challenges.
func TestListeners(t *testing.T) {
	m, err := NewACME(config.ACME{
		Hosts: []string{"ftp.acme.example"}, Directory: "https://127.0.0.1:1/dir", Folder: folder(t),
		HTTPListen: "127.0.0.1:0", TLSListen: "127.0.0.1:0",
	}, ACMEOptions{})
	must.OK(t, err)
	defer m.Stop()
	var addresses []string
	remember := func(ctx context.Context, key, address string) (net.Listener, error) {
		l, err := listen(ctx, key, address)
		addresses = append(addresses, l.Addr().String())
		return l, err
	}
	must.OK(t, m.Start(t.Context(), remember))
	response, err := http.Get("http://" + addresses[0] + "/.well-known/acme-challenge/unknown")
	must.OK(t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); response.StatusCode != http.StatusNotFound {
		t.Errorf("HTTP response: %d %s", response.StatusCode, body)
	}
	for _, protocols := range [][]string{nil, {"h2"}, {protocol}, {protocol, "h2"}} {
		// no certificate may be presented
		conn, err := tls.Dial(
			"tcp", addresses[1], &tls.Config{ServerName: "ftp.acme.example", NextProtos: protocols,
				InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close()
			t.Errorf("client with %v: got a certificate", protocols)
		}
	}
	m.Stop()
	if _, err := net.Dial("tcp", addresses[0]); err == nil {
		t.Error("the listener is still open")
	}
}

// If a listener cannot be opened, Start fails and closes the other one.
func TestListenError(t *testing.T) {
	m, err := NewACME(
		config.ACME{Hosts: []string{"ftp.acme.example"}, Folder: t.TempDir(), HTTPListen: "127.0.0.1:0",
			TLSListen: "127.0.0.1:0"}, ACMEOptions{})
	must.OK(t, err)
	var first net.Listener
	err = m.Start(t.Context(), func(ctx context.Context, key, address string) (net.Listener, error) {
		if key == "tls.acme.tls_listen" {
			return nil, net.ErrClosed
		}
		first, err = listen(ctx, key, address)
		return first, err
	})
	if err == nil {
		t.Error("missing error")
	}
	if _, err := net.Dial("tcp", first.Addr().String()); err == nil {
		t.Error("the other listener is still open")
	}
	if _, err := NewACME(config.ACME{Hosts: []string{"ftp.acme.example"}, CAFile: "nowhere"}, ACMEOptions{}); err == nil {
		t.Error("accepted a missing CA file")
	}
}
