package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// A Level is the severity of a finding.
type Level string

const (
	// Wrong is a problem that keeps clients from working.
	Wrong Level = "wrong"
	// Note is a problem that only affects some clients, or that is over.
	Note Level = "note"
)

// An ID identifies a kind of finding, also in JSON.
type ID string

// IDs of findings that are used in code, with the arguments of their causes.
const (
	nameUnresolved       ID = "name-unresolved"     // host
	addressUnreachable   ID = "address-unreachable" // address
	protocolMismatch     ID = "protocol-mismatch"
	proxyHeader          ID = "proxy-header"
	noGreeting           ID = "no-greeting" // address
	slow                 ID = "slow"        // seconds
	limitReached         ID = "limit"
	addressRefused       ID = "address-refused"
	unavailable          ID = "unavailable"
	tlsRequired          ID = "tls-required"
	tlsNew               ID = "tls-new"
	clientCertificate    ID = "client-certificate"
	tlsMissing           ID = "tls-missing"
	tlsFailed            ID = "tls-failed"
	tlsOld               ID = "tls-old"
	tlsReuse             ID = "tls-reuse"
	certificateUntrusted ID = "certificate"
	certificateName      ID = "certificate-name" // host
	certificateExpired   ID = "certificate-expired"
	passwordKept         ID = "password-kept"
	protection           ID = "protection"
	loginRefused         ID = "login-refused"
	userDisabled         ID = "user-disabled"
	userExpired          ID = "user-expired"
	passiveAddress       ID = "passive-address"   // address
	passiveUnreached     ID = "passive-unreached" // client, address
	addressUnknown       ID = "passive-address-unknown"
	portsUsed            ID = "ports-used"
	inspected            ID = "inspected"         // command
	portsUnreachable     ID = "ports-unreachable" // address, ports
	dataElsewhere        ID = "data-elsewhere"
	activeFailed         ID = "active-failed"
	idleCut              ID = "idle-cut" // seconds
	transferCut          ID = "transfer-cut"
	commandRefused       ID = "command-refused" // command
	commandFailed        ID = "command-failed"  // command
	fileDiffers          ID = "file-differs"    // file
	typeASCII            ID = "type-ascii"
	namesChanged         ID = "names-changed"   // file
	featureMissing       ID = "feature-missing" // feature
	commandBroken        ID = "command-broken"  // command
	clientStops          ID = "client-stops"    // command
	replicasDiffer       ID = "replicas-differ"
	storageFull          ID = "storage-full"
	fileTooLarge         ID = "file-too-large"
	fileDenied           ID = "file-denied"
	contentRefused       ID = "content-refused"
	notJudged            ID = "not-judged"
	auditUnavailable     ID = "audit-unavailable"
	storageSlow          ID = "storage-slow"
	storageRefuses       ID = "storage-refuses"
	shuttingDown         ID = "shutting-down"
	leftover             ID = "leftover" // file
)

// alreadyNoted is the ID of a finding that was added before.
const alreadyNoted ID = ""

// A Kind is a row of the table of findings.
type Kind struct {
	ID    ID
	Level Level
	// Cause and Change are messages of the catalogs. If clients get a reply about the cause, Cause is the message
	// of that reply.
	Cause, Change i18n.ID
	// Keys are the configuration keys of babelftp to check if the server may be the cause.
	Keys []string
	// Server reports whether Examine can find it.
	Server bool
	// Log holds patterns for lines of a log, each as "key key=expression": a regular expression for the value of
	// one of these keys. An entry without a key only describes what code detects.
	Log []string
}

// Kinds returns the table of findings, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		{nameUnresolved, Wrong, "doctor-name-unresolved", "doctor-do-dns", nil,
			true, nil},
		{addressUnreachable, Wrong, "doctor-address-unreachable", "doctor-do-open", []string{"listen", "tls.implicit_listen"},
			true, nil},
		{protocolMismatch, Wrong, "doctor-protocol-mismatch", "doctor-do-port", []string{"listen", "tls.implicit_listen"},
			true,
			[]string{"protocol=^(TLS|HTTP)", "hint=explicit TLS"}},
		{proxyHeader, Wrong, "doctor-protocol-mismatch", "doctor-do-port", []string{"proxy_protocol.trusted"},
			true,
			[]string{"protocol=^PROXY", "msg=^connection without a PROXY header refused"}},
		{noGreeting, Wrong, "doctor-no-greeting", "doctor-do-greeting", []string{"proxy_protocol.trusted", "limits"},
			true, nil},
		{slow, Note, "doctor-slow", "doctor-do-server", nil,
			true, nil},
		{addressRefused, Wrong, i18n.AddressRefused, "doctor-do-limit",
			[]string{"limits.server.deny", "tenants.TENANT.limits", "tenants.TENANT.users.USER.limits"},
			true,
			[]string{"limit=^deny$"}},
		{limitReached, Wrong, "doctor-limit", "doctor-do-limit", []string{"limits", "tenants.TENANT.limits", "limits.bans"},
			true,
			[]string{"msg=^(refused by a limit|banned)"}},
		{unavailable, Wrong, i18n.LoginUnavailable, "doctor-do-log", []string{"limits.bans", "tenants.TENANT.bucket", "s3", "auth"},
			true,
			[]string{"msg=^login failed because of an error"}},
		{tlsMissing, Note, "doctor-tls-missing", "doctor-do-certificate", []string{"tls.cert_file", "tls.acme.hosts"},
			true, nil},
		{tlsRequired, Wrong, i18n.TLSRequired, "doctor-do-encrypt", []string{"tls.required", "tls.optional_networks", "tenants.TENANT.tls.required"},
			true,
			[]string{"err=TLS is required"}},
		{tlsFailed, Wrong, i18n.TLSFailed, "doctor-do-tls", []string{"tls.min_version", "tls.cipher_suites"},
			true,
			[]string{`err=unsupported versions: \[[0-9 ]*\b30[34]\b|no cipher suite supported`}},
		{tlsNew, Note, i18n.TLSFailed, "doctor-do-tls", []string{"tls.min_version"},
			true, nil},
		{clientCertificate, Wrong, i18n.ClientCertificateRequired, "doctor-do-certificate",
			[]string{"tls.client_certificates.required", "tenants.TENANT.tls.client_certificates"},
			true,
			[]string{"err=client certificate"}},
		{tlsOld, Wrong, "doctor-tls-old", "doctor-do-tls", []string{"tls.min_version"},
			true,
			[]string{`err=unsupported versions: \[(30[0-2] ?)+\]`}},
		{tlsReuse, Note, i18n.SessionReuseRequired, "doctor-do-client", []string{"tenants.TENANT.tls.require_session_reuse"},
			true,
			[]string{"connection err=did not resume the TLS session"}},
		{certificateUntrusted, Wrong, "doctor-certificate", "doctor-do-certificate", []string{"tls.cert_file", "tls.acme.hosts", "tenants.TENANT.tls.cert_file"},
			true,
			[]string{"hint=may not trust the certificate", "err=remote error: tls: (bad|unknown|unsupported) certificate"}},
		{certificateName, Wrong, "doctor-certificate-name", "doctor-do-certificate", []string{"tls.cert_file", "tls.acme.hosts", "tenants.TENANT.tls.cert_file", "tenants.TENANT.hosts"},
			true, nil},
		{certificateExpired, Wrong, "doctor-certificate-expired", "doctor-do-certificate", []string{"tls.cert_file", "tls.acme.hosts", "tenants.TENANT.tls.cert_file"},
			true,
			[]string{"msg=^certificate expired", "err=remote error: tls: expired certificate"}},
		{passwordKept, Wrong, "doctor-password-kept", "doctor-do-insecure", []string{"tls.cert_file", "tls.acme.hosts"},
			true, nil},
		{protection, Wrong, i18n.ProtectionRequired, "doctor-do-encrypt", []string{"tls.required", "tenants.TENANT.tls.required"},
			true,
			[]string{"code=^521$", "connection err=no TLS on the data connection"}},
		{"host-tenant", Wrong, i18n.LoginFailed, "doctor-do-tenant", []string{"tenants.TENANT.hosts"},
			false, []string{"err=which chose the tenant|several tenants have a user with this name"}},
		{"wrong-tenant", Wrong, "doctor-wrong-tenant", "doctor-do-tenant", []string{"auth", "tenants.TENANT.auth"},
			false,
			[]string{"err=no tenant for the user"}},
		{userDisabled, Wrong, i18n.UserDisabled, "doctor-do-user", []string{"tenants.TENANT.users.USER.disabled"},
			true,
			[]string{"err=the user is disabled"}},
		{userExpired, Wrong, i18n.UserExpired, "doctor-do-user", []string{"tenants.TENANT.users.USER.expires"},
			true,
			[]string{"err=the user expired on"}},
		{loginRefused, Wrong, i18n.LoginFailed, "doctor-do-user", []string{"tenants.TENANT.users", "tenants.TENANT.users_file"},
			true,
			[]string{"msg=^login refused"}},
		{passiveAddress, Wrong, "doctor-passive-address", "doctor-do-passive-address", []string{"passive.public_address", "passive.public_address_by_network"},
			true,
			[]string{
				"`data_address` of PASV is not `reached_address`, which is public",
				"`data_address` is private, and the client is not"}},
		{passiveUnreached, Wrong, "doctor-data-address", "doctor-do-data-address",
			[]string{"passive.public_address", "passive.public_address_by_network", "passive.ports"},
			true,
			[]string{"`data_address` of PASV is not `reached_address`, which is private: a NAT may have another address"}},
		{addressUnknown, Wrong, i18n.PassiveAddressUnknown, "doctor-do-passive-address", []string{"passive.public_address"},
			true,
			[]string{"msg=^no public address for PASV"}},
		{portsUsed, Wrong, i18n.PassivePortUnavailable, "doctor-do-limit", []string{"passive.ports"},
			true,
			[]string{`limit=^passive\.ports$`, "msg=^no free port for a passive data connection"}},
		{inspected, Wrong, "doctor-inspected", "doctor-do-inspection", nil,
			true, nil},
		{portsUnreachable, Wrong, "doctor-ports-unreachable", "doctor-do-open-ports", []string{"passive.ports"},
			true,
			[]string{"`the client did not connect to port` within a second or more, or the session then ends without a transfer"}},
		{dataElsewhere, Wrong, "doctor-data-elsewhere", "doctor-do-balancer", []string{"proxy_protocol.trusted", "cluster.peers"},
			true,
			[]string{"connection err=not the address of the control connection"}},
		{activeFailed, Note, "doctor-active-failed", "doctor-do-passive", nil,
			true,
			[]string{"connection=^(open the data connection: )?dial tcp", "msg=^refused a data connection to an address"}},
		{idleCut, Wrong, "doctor-idle-cut", "doctor-do-network", []string{"idle_timeout"},
			true, nil},
		{transferCut, Wrong, i18n.TransferInterrupted, "doctor-do-network", []string{"stall_timeout"},
			true,
			[]string{"connection=^the data connection (was lost|stalled)|^the command took|^the control connection has ended"}},
		{commandRefused, Wrong, "doctor-command-refused", "doctor-do-user", []string{"tenants.TENANT.users.USER.permissions", "tenants.TENANT.permissions"},
			true,
			[]string{"err storage=permission denied by the permissions"}},
		{commandFailed, Wrong, "doctor-command-refused", "doctor-do-server-log", []string{"s3", "tenants.TENANT.bucket"},
			true, nil},
		{fileDiffers, Wrong, "doctor-changed", "doctor-do-inspection", nil,
			true, nil},
		{typeASCII, Wrong, "doctor-type-ascii", "doctor-do-binary", nil,
			false,
			[]string{"`TYPE A` before a file whose name tells that it is binary (debug lines)"}},
		{namesChanged, Wrong, "doctor-changed", "doctor-do-charset", []string{"tenants.TENANT.compatibility.charset"},
			true, nil},
		{"charset", Wrong, i18n.NameNotUTF8, "doctor-do-charset", []string{"tenants.TENANT.compatibility.charset"},
			false,
			[]string{"err=the name is not in the encoding"}},
		{commandBroken, Wrong, "doctor-command-refused", "doctor-do-server", nil,
			true, nil},
		{featureMissing, Note, "doctor-command-refused", "doctor-do-server", nil,
			true, nil},
		{clientStops, Wrong, "doctor-client-stops", "doctor-do-client", nil,
			false,
			[]string{"the last reply of a session is 500, 501, 502 or 504 (debug lines)"}},
		{replicasDiffer, Note, "doctor-replicas-differ", "doctor-do-replicas", nil,
			true, nil},
		{storageFull, Wrong, "doctor-storage-full", "doctor-do-room", []string{"tenants.TENANT.quota", "tenants.TENANT.users.USER.quota"},
			true,
			[]string{"err storage=disk quota exceeded|no space left"}},
		{fileTooLarge, Note, i18n.FileTooLarge, "doctor-do-limit", []string{"tenants.TENANT.files.max_size", "part_size"},
			true,
			[]string{`err storage=file too large|larger than files\.max_size|more than the \d+ parts`}},
		{fileDenied, Note, i18n.FileNameDenied, "doctor-do-user", []string{"tenants.TENANT.files.deny"},
			true,
			[]string{`err storage=files\.deny in the configuration`}},
		{contentRefused, Wrong, i18n.FileRefused, "doctor-do-log", []string{"tenants.TENANT.inspect"},
			true,
			[]string{"err storage=the inspector rejected"}},
		{notJudged, Wrong, i18n.FileNotChecked, "doctor-do-log", []string{"tenants.TENANT.inspect"},
			true,
			[]string{"err storage=returned no verdict"}},
		{auditUnavailable, Wrong, i18n.AuditUnavailable, "doctor-do-log", []string{"audit.required"},
			true,
			[]string{`err storage=audit\.required refuses`}},
		{storageSlow, Wrong, "doctor-storage-slow", "doctor-do-storage", []string{"s3.endpoint"},
			false,
			[]string{
				"err storage=SlowDown|HTTP (429|503)|[A-Z][a-z]+[A-Z][A-Za-z]*[0-9]?: .*(i/o timeout|deadline exceeded|Client.Timeout)",
				"status=^(429|503)$",
				"`S3 request` of 5 seconds or more (debug lines)"}},
		{storageRefuses, Wrong, "doctor-storage-refuses", "doctor-do-storage", []string{"tenants.TENANT.bucket", "s3.endpoint", "s3.access_key_id"},
			true,
			[]string{"msg=^bucket cannot be used", "err storage=" +
				"AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|RequestTimeTooSkewed|NoSuchBucket|" +
				"IAM policy must allow|not from S3|" +
				"(cannot reach S3 |[A-Z][a-z]+[A-Z][A-Za-z]*[0-9]?: ).*(HTTP (401|403|413|500|502)|no route to host|no such host|" +
				"connection refused)"}},
		{shuttingDown, Note, "doctor-shutting-down", "doctor-do-drain", []string{"drain_timeout"},
			true,
			[]string{"msg=^(stopping|transfers aborted)"}},
		{leftover, Wrong, "doctor-leftover", "doctor-do-delete", nil,
			true, nil},
	}
}

// A Finding is one problem that was found.
type Finding struct {
	ID       ID       `json:"finding"`
	Level    Level    `json:"level"`
	Client   string   `json:"client,omitempty"` // address from the log
	User     string   `json:"user,omitempty"`   // from the log
	Times    int      `json:"times"`            // how often it was found
	Cause    string   `json:"cause"`            // Cause and Change are in the language of the reader
	Change   string   `json:"change"`
	Keys     []string `json:"keys,omitempty"` // configuration keys of babelftp
	Args     []string `json:"args,omitempty"` // arguments of Cause, such as an address and ports
	Evidence []string `json:"evidence"`       // what was sent or logged; only the first few

	ports    map[uint16]bool // ports of a finding portsUnreachable
	harmless bool            // the session or another address still works
}

// newFinding returns a finding that was seen once.
func newFinding(id ID, args []string, evidence ...string) *Finding {
	return &Finding{ID: id, Times: 1, Evidence: evidence, Args: args}
}

// seenBy sets the client and the user that were affected.
func (f *Finding) seenBy(client, user string) *Finding {
	f.Client, f.User = client, user
	return f
}

// missedPort returns a finding for a port that could not be reached from an address.
func missedPort(address string, port uint16, evidence string) *Finding {
	f := newFinding(portsUnreachable, []string{address}, evidence)
	f.ports = map[uint16]bool{port: true}
	return f
}

// Findings collects findings. The zero value is empty.
type Findings struct {
	Skipped int // number of lines that were too long

	all []*Finding
}

// Limits on what is kept from a log with many clients, and on what a reader wants to see.
const (
	maxFindings     = 1000
	maxEvidence     = 4
	maxEvidenceText = 400 // bytes
)

// add adds a finding, or merges it with an equal one.
func (fs *Findings) add(f *Finding) {
	at := slices.IndexFunc(fs.all, func(o *Finding) bool {
		return o.ID == f.ID && o.Client == f.Client && o.User == f.User && slices.Equal(o.Args, f.Args)
	})
	if at < 0 {
		if len(fs.all) == maxFindings {
			return
		}
		at = len(fs.all)
		fs.all = append(fs.all, &Finding{ID: f.ID, Client: f.Client, User: f.User, Evidence: []string{}, Args: f.Args,
			ports: f.ports})
	}
	seen := fs.all[at]
	for _, key := range f.Keys {
		if !slices.Contains(seen.Keys, key) {
			seen.Keys = append(seen.Keys, key)
		}
	}
	seen.Times += f.Times
	for port := range f.ports {
		seen.ports[port] = true
	}
	for _, text := range f.Evidence {
		text = strings.Join(strings.Fields(text), " ")
		if len(text) > maxEvidenceText {
			text = strings.ToValidUTF8(text[:maxEvidenceText], "") + " …"
		}
		if len(seen.Evidence) < maxEvidence && text != "" && !slices.Contains(seen.Evidence, text) {
			seen.Evidence = append(seen.Evidence, text)
		}
	}
}

// Shown returns the findings with their texts, sorted by level and then in the order of the table. text renders a
// message of the catalogs.
func (fs *Findings) Shown(text func(id i18n.ID, args ...string) string) []Finding {
	order := map[ID]int{}
	for i, k := range Kinds() {
		order[k.ID] = i
	}
	shown := make([]Finding, len(fs.all))
	for i, f := range fs.all {
		if shown[i] = *f; f.ID == portsUnreachable {
			shown[i].Args = append(slices.Clone(f.Args), portsText(f.ports))
		}
	}
	Render(shown, text)
	slices.SortStableFunc(shown, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), order[a.ID]-order[b.ID], b.Times-a.Times)
	})
	return shown
}

// insecure is the argument of doctor-do-insecure. Other texts of what to do have no placeholder.
const insecure = "--insecure"

// Render sets the texts of findings in another language. A finding that only a newer server knows keeps its texts.
func Render(found []Finding, text func(id i18n.ID, args ...string) string) {
	kinds := Kinds()
	for i := range found {
		f := &found[i]
		if at := slices.IndexFunc(kinds, func(k Kind) bool { return k.ID == f.ID }); at >= 0 {
			f.Level, f.Cause = kinds[at].Level, text(kinds[at].Cause, f.Args...)
			f.Change = text(kinds[at].Change, insecure)
			if len(f.Keys) == 0 {
				f.Keys = kinds[at].Keys
			}
		}
	}
}

// NothingFound is the message shown if there are no findings.
const NothingFound i18n.ID = "page-nothing-found"

// portsText formats ports as ranges: 30012-30025, 30040.
func portsText(ports map[uint16]bool) string {
	const enough = 8 // ranges
	var ranges []string
	for all := slices.Sorted(maps.Keys(ports)); len(all) > 0; {
		if len(ranges) == enough {
			return strings.Join(ranges, ", ") + ", …"
		}
		n := 1
		for n < len(all) && all[n] == all[n-1]+1 {
			n++
		}
		text := strconv.Itoa(int(all[0]))
		if n > 1 {
			text += fmt.Sprintf("-%d", all[n-1])
		}
		ranges, all = append(ranges, text), all[n:]
	}
	return strings.Join(ranges, ", ")
}

// isPrivate reports whether hosts elsewhere cannot reach an address.
func isPrivate(a netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // RFC 6598
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || shared.Contains(a)
}
