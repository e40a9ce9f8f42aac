package doctor_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// read returns the findings of a log as "id client user times cause".
func read(t *testing.T, log string) []string {
	t.Helper()
	found, err := doctor.ReadLog(t.Context(), strings.NewReader(log), doctor.Filter{})
	must.OK(t, err)
	var shown []string
	for _, f := range found.Shown(text) {
		if f.Cause == "" || f.Change == "" || len(f.Evidence) == 0 || strings.ContainsAny(f.Cause, "{}") {
			t.Errorf("incomplete: %+v", f)
		}
		shown = append(shown, fmt.Sprintf("%s %s %s %d", f.ID, f.Client, f.User, f.Times))
	}
	return shown
}

// text renders a message in English.
func text(id i18n.ID, args ...string) string { return english().Text(id, args...) }

var english = sync.OnceValue(func() *i18n.Localizer {
	bundle, err := i18n.Load()
	if err != nil {
		panic(err)
	}
	return bundle.Localizer(language.English)
})

const (
	logged  = `level=INFO msg=`
	scanner = ` session=5f2c remote=192.0.2.7:50123 tenant=acme user=scanner`
)

// debugged returns the debug lines of a session of the user scanner: commands and reply codes.
func debugged(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		command, code, _ := strings.Cut(l, " = ")
		fmt.Fprintf(&b, "level=DEBUG msg=command%s line=%q\n", scanner, command)
		if code != "" {
			fmt.Fprintf(&b, "level=DEBUG msg=reply%s command=%s code=%s text=\"\"\n", scanner, strings.Fields(command)[0], code)
		}
	}
	return b.String()
}

func TestReadLog(t *testing.T) {
	for _, test := range []struct {
		name, log string
		want      []string
	}{
		{"fine", logged + `"logged in"` + scanner + ` tls=true`, nil},
		{"ports-of-two-clients", logged + `transfer` + scanner + ` direction=listing command=LIST path=/ bytes=0 code=425 ` +
			`duration_ms=30002 tls=false data_address=203.0.113.9:30012 ` +
			`connection="the client did not connect to port 30012 within 30s"` + "\n" + logged +
			`"no data connection came"` + scanner + ` data_address=:30013 ` +
			`err="the client did not connect to port 30013 within 21.04s"` + "\n" +
			`{"time":"2026-11-28T03:00:00Z","level":"INFO","msg":"no data connection came","session":"77",` +
			`"remote":"[2001:db8::7]:50124","data_address":":30014","err":"the client did not connect to port 30014 within 2s"}`,
			[]string{"ports-unreachable 192.0.2.7 scanner 2", "ports-unreachable 2001:db8::7  1"}},
		{"asked-for-another-port", logged + `"no data connection came"` + scanner + ` data_address=:30013 ` +
			`err="the client did not connect to port 30013 within 12ms"` + "\n" + logged + `transfer` + scanner +
			` direction=listing command=LIST path=/ bytes=0 code=226`, nil},
		{"rejected-ports", logged + `"no data connection came"` + scanner + ` data_address=:30013 ` +
			`err="the client did not connect to port 30013 within 12ms"` + "\n" + logged + `"no data connection came"` + scanner +
			` data_address=203.0.113.9:30014 reached_address=10.0.0.7 ` +
			`err="the client did not connect to port 30014 within 9ms"` + "\n" + logged + `transfer session=another ` +
			`remote=192.0.2.7:50199 direction=listing command=LIST path=/ bytes=0 code=226`,
			[]string{"ports-unreachable 192.0.2.7 scanner 1"}},
		{"private-address", logged + `"no data connection came"` + scanner + ` data_address=10.0.0.7:30013 ` +
			`err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"passive-address 192.0.2.7 scanner 1"}},
		{"wrong-public-address", logged + `"no data connection came"` + scanner + ` data_address=203.0.113.9:30013 ` +
			`reached_address=198.51.100.4 err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"passive-address 192.0.2.7 scanner 1"}},
		{"wrong-public-address-without-a-route", logged + `"no data connection came"` + scanner +
			` data_address=203.0.113.9:30013 reached_address=198.51.100.4 ` +
			`err="the client did not connect to port 30013 within 193ms"`, []string{"passive-address 192.0.2.7 scanner 1"}},
		{"wrong-address-in-one-network", logged + `"no data connection came"` + strings.ReplaceAll(scanner, "192.0.2.7", "10.1.0.9") +
			` data_address=203.0.113.9:30013 reached_address=10.1.0.2 err="the client did not connect to port 30013 within 21s"`,
			[]string{"passive-unreached 10.1.0.9 scanner 1"}},
		{"address-of-carrier-grade-NAT", logged + `"no data connection came"` + scanner + ` data_address=100.64.3.4:30013 ` +
			`reached_address=100.64.3.4 err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"passive-address 192.0.2.7 scanner 1"}},
		{"right-address-and-closed-ports", logged + `"no data connection came"` + scanner + ` data_address=203.0.113.9:30013 ` +
			`reached_address=203.0.113.9 err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"ports-unreachable 192.0.2.7 scanner 1"}},
		{"behind-a-NAT", logged + `"no data connection came"` + scanner + ` data_address=203.0.113.9:30013 ` +
			`reached_address=10.0.0.7 err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"passive-unreached 192.0.2.7 scanner 1"}},
		{"EPSV-by-IPv6", logged + `"no data connection came" session=1 remote=[2001:db8::7]:1 data_address=:30013 ` +
			`reached_address=2001:db8::1 err="the client did not connect to port 30013 within 21.04s"`,
			[]string{"ports-unreachable 2001:db8::7  1"}},
		{"doctor-itself", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 software=babelftp-doctor err="tls: client offered only unsupported versions: [302 301]" ` +
			`hint="" more=0`, nil},
		{"host-of-another-tenant", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 err="unknown user: TLS (SNI) named the host ftp.acme.example, which chose the tenant \"acme\", ` +
			`and the name ends in @globex: let the client connect to a host of the tenant \"globex\"" more=0`,
			[]string{"host-tenant 192.0.2.7  1"}},
		{"name-of-several-tenants", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 err="unknown user: several tenants have a user with this name: log in as user@tenant" more=0`,
			[]string{"host-tenant 192.0.2.7  1"}},
		{"another-client", logged + `"no data connection came"` + scanner + ` data_address=:30013 err="the client did not ` +
			`connect to port 30013 within 21s; 10.1.1.1 did, which is not the address of the control connection"`,
			[]string{"data-elsewhere 192.0.2.7 scanner 1"}},
		{"behind-a-prefix", `Nov 28 03:00:00 ftp babelftp[812]: time=2026-11-28T03:00:00Z ` + logged +
			`"login refused; logged once a minute for each address and user" session=1 remote=192.0.2.7:1 ` +
			`err="user \"alice\" of tenant \"acme\": login refused" more=4`, []string{"login-refused 192.0.2.7 alice 5"}},
		{"tls-required", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 err="TLS is required (tls.required), and the client has not sent AUTH TLS" more=0`,
			[]string{"tls-required 192.0.2.7  1"}},
		{"wrong-tenant", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 err="user \"alice\": the password is right, but auth names the tenant \"old\", and the client ` +
			`requested \"acme\": no tenant for the user: login refused" more=0`, []string{"wrong-tenant 192.0.2.7 alice 1"}},
		{"certificate", logged + `"client disconnected after the TLS handshake, before logging in; logged once a minute for each ` +
			`address" session=1 remote=192.0.2.7:1 hint="the client may not trust the certificate, or the certificate may ` +
			`not have the name that the client connects to" more=2`, []string{"certificate 192.0.2.7  3"}},
		{"certificate-alert", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 err="remote error: tls: unknown certificate authority" hint="" more=0`,
			[]string{"certificate 192.0.2.7  1"}},
		{"certificate-expired", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 err="remote error: tls: expired certificate" hint="" more=0`,
			[]string{"certificate-expired 192.0.2.7  1"}},
		{"old-tls", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 err="tls: client offered only unsupported versions: [302 301]" hint="" more=0`,
			[]string{"tls-old 192.0.2.7  1"}},
		{"too-new-tls", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 err="tls: client offered only unsupported versions: [303 302 301]" hint="" more=0`,
			[]string{"tls-failed 192.0.2.7  1"}},
		{"explicit-tls-that-waits", logged + `"TLS handshake failed; logged once a minute for each address" session=1 ` +
			`remote=192.0.2.7:1 err="read tcp 10.0.0.7:990->192.0.2.7:1: i/o timeout" hint="" more=0`, nil},
		{"no-proxy-header", logged + `"connection without a PROXY header refused; let the load balancer send one, or remove its ` +
			`network from proxy_protocol.trusted" from=192.0.2.7 others=0 err="no PROXY header: read tcp ` +
			`10.0.0.7:21->192.0.2.7:1: i/o timeout"`, []string{"proxy-header 192.0.2.7  1"}},
		{"proxy-header-that-is-not-believed", logged + `"client used another protocol; logged once a minute for each ` +
			`address" session=1 remote=192.0.2.7:1 protocol=PROXY hint="" more=0` + "\n" + logged + `"TLS handshake failed; ` +
			`logged once a minute for each address" session=2 remote=192.0.2.7:2 err=EOF hint="the client may not trust the ` +
			`certificate, or the certificate may not have the name that the client connects to" more=0`,
			[]string{"proxy-header 192.0.2.7  1"}},
		{"disabled", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 tenant=acme err="user \"carl\" of tenant \"acme\": the password is right, but the user is ` +
			`disabled (disabled)" more=0`, []string{"user-disabled 192.0.2.7 carl 1"}},
		{"expired", logged + `"login refused; logged once a minute for each address and user" session=1 ` +
			`remote=192.0.2.7:1 tenant=acme err="user \"carl\" of tenant \"acme\": the password is right, but the user ` +
			`expired on 2020-01-01 (expires)" more=0`, []string{"user-expired 192.0.2.7 carl 1"}},
		{"denied", logged + `"refused by a limit; logged once a minute" session=1 remote=192.0.2.7:1 limit=deny ` +
			`limit_tenant=acme more=0`, []string{"address-refused 192.0.2.7  1"}},
		{"explicit-at-the-implicit-port", logged + `"TLS handshake failed; logged once a minute for each address" ` +
			`session=1 remote=192.0.2.7:1 err=EOF hint="the client may use explicit TLS, which begins in the clear: it ` +
			`needs the port of listen" more=0`, []string{"protocol-mismatch 192.0.2.7  1"}},
		{"charset", logged + `"command failed"` + scanner + ` command=STOR code=501 err="charset: the name is not in the ` +
			`encoding: \"M\\xfcller.txt\" is not UTF-8"`, []string{"charset 192.0.2.7 scanner 1"}},
		{"session-reuse", logged + `transfer` + scanner + ` command=LIST code=522 connection="the data connection did not ` +
			`resume the TLS session of the control connection"`, []string{"tls-reuse 192.0.2.7 scanner 1"}},
		{"active", logged + `transfer` + scanner + ` command=LIST code=425 ` +
			`connection="dial tcp 192.0.2.7:50000: connect: connection refused"`,
			[]string{"active-failed 192.0.2.7 scanner 1"}},
		{"cut", logged + `transfer` + scanner + ` command=STOR code=426 connection="the data connection was lost"`,
			[]string{"transfer-cut 192.0.2.7 scanner 1"}},
		{"quota", logged + `transfer` + scanner + ` command=STOR code=552 storage="disk quota exceeded: quota of 1024 bytes ` +
			`has no room"`, []string{"storage-full 192.0.2.7 scanner 1"}},
		{"storage-refuses", logged + `transfer` + scanner + ` command=STOR code=550 storage="permission denied: PutObject: the ` +
			`IAM policy must allow s3:PutObject on arn:aws:s3:::acme-data/*: AccessDenied: Access Denied (HTTP 403, request ` +
			`18EA8F94)"`, []string{"storage-refuses 192.0.2.7 scanner 1"}},
		{"storage-is-slow", logged + `transfer` + scanner + ` command=STOR code=451 storage="resource temporarily unavailable: ` +
			`PutObject: SlowDown: reduce your request rate (HTTP 503, request 18EA)"` + "\n" +
			`level=DEBUG msg="S3 request"` + scanner + ` operation=PutObject status=200 duration_ms=7204 s3_request_id=18EB`,
			[]string{"storage-slow 192.0.2.7 scanner 2"}},
		{"storage-of-the-server", `level=WARN msg="removing abandoned uploads failed; the next sweep retries" ` +
			`tenant=acme err="no such device or address: ListObjectsV2: NoSuchBucket: gone (HTTP 404, request 18EA)"` + "\n" +
			`level=WARN msg="interrupted upload could not be kept" tenant=acme user=scanner ` +
			`err="no such device or address: PutObject: NoSuchBucket: gone (HTTP 404, request 18EB)"`,
			[]string{"storage-refuses   2"}},
		{"passive-ports", logged + `"refused by a limit; logged once a minute"` + scanner + ` limit=passive.ports ` +
			`limit_tenant="" more=0`, []string{"ports-used 192.0.2.7 scanner 1"}},
		{"address-of-PASV", `level=ERROR msg="no public address for PASV; check passive.public_address"` + scanner +
			` err="lookup ftp.acme.invalid: no such host"`, []string{"passive-address-unknown 192.0.2.7 scanner 1"}},
		{"name-denied", logged + `transfer` + scanner + ` command=STOR code=553 storage="open /a.exe: permission denied: files.deny ` +
			`in the configuration matches the name"`, []string{"file-denied 192.0.2.7 scanner 1"}},
		{"too-large", logged + `transfer` + scanner + ` command=STOR code=552 storage="write /a.bin: file too large"`,
			[]string{"file-too-large 192.0.2.7 scanner 1"}},
		{"larger-than-max-size", logged + `transfer` + scanner + ` command=STOR code=552 storage="write /a.bin: the file is ` +
			`larger than files.max_size in the configuration, 1048576 bytes"`, []string{"file-too-large 192.0.2.7 scanner 1"}},
		{"too-many-parts", logged + `transfer` + scanner + ` command=STOR code=552 storage="write /a.bin: file needs more ` +
			`than the 1000 parts that S3 accepts: configure a part_size above 5242880 bytes"`,
			[]string{"file-too-large 192.0.2.7 scanner 1"}},
		{"virus", logged + `transfer` + scanner + ` command=STOR code=550 storage="close /a.bin: the inspector rejected the ` +
			`file: Eicar"`, []string{"content-refused 192.0.2.7 scanner 1"}},
		{"inspector-is-away", `level=ERROR msg="inspector failed" tenant=acme err="the inspector returned no verdict: ` +
			`dial tcp 127.0.0.1:3310: connect: connection refused"`, []string{"not-judged   1"}},
		{"directory-is-away", logged + `"login failed because of an error, not a wrong password; logged once a minute for each ` +
			`tenant" session=1 remote=192.0.2.7:1 tenant=acme err="ldap: dial tcp 10.0.0.3:636: connect: connection refused" more=0`,
			[]string{"unavailable 192.0.2.7  1"}},
		{"proxy-of-S3", logged + `transfer` + scanner + ` command=STOR code=550 storage="close /a.bin: PutObject: HTTP 413 from ` +
			`nginx, not from S3: allow request bodies of part_size"`, []string{"storage-refuses 192.0.2.7 scanner 1"}},
		{"limit", logged + `"refused by a limit; logged once a minute" session=1 remote=192.0.2.7:1 ` +
			`limit=address.sessions limit_tenant="" more=0`, []string{"limit 192.0.2.7  1"}},
		{"drain", logged + `stopping drain_timeout=25s`, []string{"shutting-down   1"}},
		{"a-picture-as-text", debugged("TYPE A = 200", "EPSV = 229", "STOR scan.JPG = 226", "TYPE I = 200",
			"STOR other.jpg = 226", "QUIT = 221"), []string{"type-ascii 192.0.2.7 scanner 1"}},
		{"a-text-as-text", debugged("TYPE A = 200", "EPSV = 229", "STOR scan.txt = 226", "QUIT = 221"), nil},
		{"quick-storage", `level=DEBUG msg="S3 request"` + scanner + ` operation=PutObject status=200 duration_ms=4999` + "\n" +
			logged + `transfer` + scanner + ` command=STOR code=226 duration_ms=99000`, nil},
		{"name-like-a-line", logged + `transfer` + scanner + ` path="/x\nmsg=banned\nlevel=INFO msg=banned" code=226`, nil},
		{"stops-at-500", debugged("SYST = 215", "XCRC a.txt = 500"), []string{"client-stops 192.0.2.7 scanner 1"}},
		{"goes-on-after-500", debugged("XCRC a.txt = 500", "PWD = 257"), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := read(t, test.log+"\n"); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if _, err := doctor.ReadLog(t.Context(), strings.NewReader("Nov 28 sshd[1]: hello\n"), doctor.Filter{}); !errors.Is(err, doctor.ErrNoLog) {
		t.Errorf("unrelated log: %v", err)
	}
}

// A line that is too long is skipped, and the following lines are read.
func TestLongLine(t *testing.T) {
	found, err := doctor.ReadLog(t.Context(), io.MultiReader(strings.NewReader(logged+"serving\n"+logged+`"`),
		strings.NewReader(strings.Repeat("x", 3<<20)), strings.NewReader("\"\n"+logged+"stopping"+scanner)), doctor.Filter{})
	must.OK(t, err)
	if all := found.Shown(text); found.Skipped != 1 || len(all) != 1 || all[0].ID != "shutting-down" {
		t.Errorf("got %d skipped lines, %+v", found.Skipped, all)
	}
}

// Ports that a client could not reach are one finding, shown as ranges.
func TestPorts(t *testing.T) {
	var log strings.Builder
	for _, port := range []int{30014, 30012, 30013, 30040, 30012} {
		fmt.Fprintf(&log, "%s\"no data connection came\"%s err=\"the client did not connect to port %d within 9s\"\n",
			logged, scanner, port)
	}
	found, err := doctor.ReadLog(t.Context(), strings.NewReader(log.String()), doctor.Filter{})
	must.OK(t, err)
	all := found.Shown(text)
	const want = "192.0.2.7 cannot reach the passive ports 30012-30014, 30040."
	if len(all) != 1 || all[0].Cause != want || all[0].Times != 5 {
		t.Errorf("got %+v, want %s", all, want)
	}
}

// Each row of the table has texts and is used by a check, and each message of doctor is in the table.
func TestKinds(t *testing.T) {
	used := []i18n.ID{doctor.NothingFound}
	seen := map[doctor.ID]bool{}
	for _, k := range doctor.Kinds() {
		if text(k.Cause) == "" || text(k.Change) == "" || !k.Server && len(k.Log) == 0 || seen[k.ID] {
			t.Errorf("got %+v", k)
		}
		seen[k.ID] = true
		used = append(used, k.Cause, k.Change)
	}
	bundle, err := i18n.Load()
	must.OK(t, err)
	for _, id := range bundle.IDs() {
		if strings.HasPrefix(string(id), "doctor-") && !slices.Contains(used, id) {
			t.Errorf("%s is not used", id)
		}
	}
}

// TestKeysOfLimits: the finding names the key of the limit in the log.
func TestKeysOfLimits(t *testing.T) {
	for line, want := range map[string]string{
		`limit=address.sessions limit_tenant=""`:  "limits.address.sessions",
		`limit=server.login_rate limit_tenant=""`: "limits.server.login_rate",
		`limit=tenant.sessions limit_tenant=acme`: "tenants.acme.limits.tenant.sessions",
		`limit=user.transfers limit_tenant=acme`:  "tenants.acme.limits.user.transfers, tenants.acme.users.USER.limits.transfers",
		`limit=deny limit_tenant=""`:              "limits.server.deny",
		`limit=bans limit_tenant=""`:              "limits.bans",
		`limit=descriptors limit_tenant=""`:       "limits, tenants.TENANT.limits, limits.bans",
	} {
		log := logged + `"refused by a limit; logged once a minute"` + scanner + " " + line + " more=0\n"
		found, err := doctor.ReadLog(t.Context(), strings.NewReader(log), doctor.Filter{})
		must.OK(t, err)
		if all := found.Shown(text); len(all) != 1 || strings.Join(all[0].Keys, ", ") != want {
			t.Errorf("%s: got %+v, want %s", line, all, want)
		}
	}
}
