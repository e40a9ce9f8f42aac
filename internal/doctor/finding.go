package doctor

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// A Level says how bad a finding is.
type Level string

const (
	// Wrong is what keeps clients from working.
	Wrong Level = "wrong"
	// Note is what only some clients meet, or what is over.
	Note Level = "note"
)

// An ID names a kind of finding, in JSON and in the catalogues.
type ID string

// The findings, in the order of [Kinds].
const (
	nameUnresolved       ID = "name-unresolved"     // host
	addressUnreachable   ID = "address-unreachable" // address
	protocolMismatch     ID = "protocol-mismatch"   //
	limitReached         ID = "limit"               //
	tlsMissing           ID = "tls-missing"         //
	tlsRequired          ID = "tls-required"        //
	tlsOld               ID = "tls-old"             //
	tlsReuse             ID = "tls-reuse"           //
	certificateUntrusted ID = "certificate"         //
	certificateName      ID = "certificate-name"    // host
	certificateExpired   ID = "certificate-expired" //
	protection           ID = "protection"          //
	loginRefused         ID = "login-refused"       //
	passiveAddress       ID = "passive-address"     // address
	inspected            ID = "inspected"           // command
	portsUnreachable     ID = "ports-unreachable"   // address, ports
	dataElsewhere        ID = "data-elsewhere"      //
	activeFailed         ID = "active-failed"       //
	idleCut              ID = "idle-cut"            // time
	transferCut          ID = "transfer-cut"        //
	commandRefused       ID = "command-refused"     // command
	fileDiffers          ID = "file-differs"        // file
	typeASCII            ID = "type-ascii"          //
	namesChanged         ID = "names-changed"       // file
	charset              ID = "charset"             //
	featureMissing       ID = "feature-missing"     // feature
	clientStops          ID = "client-stops"        // command
	replicasDiffer       ID = "replicas-differ"     //
	storageFull          ID = "storage-full"        //
	storageSlow          ID = "storage-slow"        //
	storageRefuses       ID = "storage-refuses"     //
	shuttingDown         ID = "shutting-down"       //
	leftover             ID = "leftover"            // file
)

// A Kind is a row of the table of findings.
type Kind struct {
	ID    ID
	Level Level
	// Cause and Change are messages of the catalogues. Where clients read of the cause in a reply, it is that message.
	Cause, Change i18n.ID
	// Server and Log are what shows the finding when doctor looks at a server, and in the lines of a log; empty where
	// it does not look there. They are for the page about troubleshooting.
	Server, Log string
}

// Kinds returns the table of findings, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{
		{nameUnresolved, Wrong, "doctor-name-unresolved", "doctor-do-dns", "DNS has no address of the name", ""},
		{addressUnreachable, Wrong, "doctor-address-unreachable", "doctor-do-open",
			"an address of the name refuses connections, or does not answer", ""},
		{protocolMismatch, Wrong, "doctor-protocol-mismatch", "doctor-do-port", "no greeting comes, or another protocol answers",
			"`client began with another protocol`, or a client without implicit TLS or without a PROXY header"},
		{limitReached, Wrong, "doctor-limit", "doctor-do-limit", "a greeting or login gets 421",
			"`refused by a limit`, or `banned`"},
		{tlsMissing, Note, i18n.TLSUnavailable, "doctor-do-certificate", "`AUTH TLS` is refused", ""},
		{tlsRequired, Wrong, i18n.TLSRequired, "doctor-do-encrypt", "", "`TLS is required`"},
		{tlsOld, Wrong, "doctor-tls-old", "doctor-do-tls", "the server accepts TLS 1.0 or 1.1, or only those",
			"`unsupported versions`"},
		{tlsReuse, Note, i18n.SessionReuseRequired, "doctor-do-client",
			"a data connection works only if it resumes the TLS session", "`did not resume the TLS session`"},
		{certificateUntrusted, Wrong, "doctor-certificate", "doctor-do-certificate",
			"no trusted authority has issued the certificate",
			"the client leaves after the TLS handshake, or sends an alert"},
		{certificateName, Wrong, "doctor-certificate-name", "doctor-do-certificate", "the certificate has other names", ""},
		{certificateExpired, Wrong, "doctor-certificate-expired", "doctor-do-certificate",
			"the certificate has expired, or will within two weeks",
			"`certificate has expired`, or the alert `expired certificate`"},
		{protection, Wrong, i18n.ProtectionRequired, "doctor-do-encrypt", "`PROT P` or TLS on a data connection fails",
			"replies 521 and 522"},
		{loginRefused, Wrong, i18n.LoginFailed, "doctor-do-user", "530", "`login refused`"},
		{passiveAddress, Wrong, "doctor-passive-address", "doctor-do-passive-address",
			"PASV shows another address than that of the control connection", "`data_address` is private, and the client is not"},
		{inspected, Wrong, "doctor-inspected", "doctor-do-inspection",
			"PASV works and EPSV does not, or the reverse, or nothing works after `EPSV ALL`", ""},
		{portsUnreachable, Wrong, "doctor-ports-unreachable", "doctor-do-open", "no connection to some or all passive ports",
			"`the client did not connect to port`"},
		{dataElsewhere, Wrong, "doctor-data-elsewhere", "doctor-do-balancer",
			"a passive port accepts the connection, and the transfer does not begin",
			"`which is not the address of the control connection`, or `connection without a PROXY header refused`"},
		{activeFailed, Note, "doctor-active-failed", "doctor-do-passive", "PORT or EPRT is refused, or the server does not connect",
			"`dial tcp` in `connection`, or a PORT with another address"},
		{idleCut, Wrong, "doctor-idle-cut", "doctor-do-network", "an idle control connection ends without 421", ""},
		{transferCut, Wrong, i18n.TransferInterrupted, "doctor-do-network", "a transfer gets 426, or ends early", "code 426"},
		{commandRefused, Wrong, "doctor-command-refused", "doctor-do-user", "a command about the files of the check fails",
			"550 to a permission"},
		{fileDiffers, Wrong, "doctor-changed", "doctor-do-inspection", "a file that comes back is another", ""},
		{typeASCII, Wrong, "doctor-type-ascii", "doctor-do-binary", "",
			"`TYPE A` before a file whose name tells that it is binary (debug lines)"},
		{namesChanged, Wrong, "doctor-changed", "doctor-do-charset",
			"a name in one of six scripts is refused, or listed in another way", ""},
		{charset, Wrong, i18n.NameNotUTF8, "doctor-do-charset", "", "`the name is not in the encoding`"},
		{featureMissing, Note, "doctor-command-refused", "doctor-do-client", "MLSD, REST, EPSV or UTF8 is missing", ""},
		{clientStops, Wrong, "doctor-client-stops", "doctor-do-client", "",
			"the last reply of a session is 500, 501, 502 or 504 (debug lines)"},
		{replicasDiffer, Note, "doctor-replicas-differ", "doctor-do-replicas",
			"logins get different greetings, features or certificates", ""},
		{storageFull, Wrong, "doctor-storage-full", "doctor-do-room", "452 or 552", "`disk quota exceeded`, or `no space left`"},
		{storageSlow, Wrong, "doctor-storage-slow", "doctor-do-storage", "",
			"503, a timeout, or a request that takes 5 seconds (debug lines)"},
		{storageRefuses, Wrong, "doctor-storage-refuses", "doctor-do-storage", "",
			"another answer of S3, or none, in `storage` or `err`"},
		{shuttingDown, Note, "doctor-shutting-down", "doctor-do-drain", "", "`stopping`, or transfers that the stop has ended"},
		{leftover, Wrong, "doctor-leftover", "doctor-do-delete", "a file of the check cannot be removed", ""},
	}
}

// A Finding is one thing that was found.
type Finding struct {
	ID       ID       `json:"finding"`
	Level    Level    `json:"level"`
	Client   string   `json:"client,omitempty"` // address, in the log
	User     string   `json:"user,omitempty"`   // in the log
	Times    int      `json:"times"`            // how often it was seen
	Cause    string   `json:"cause"`            // in the language of the reader, as is Change
	Change   string   `json:"change"`
	Evidence []string `json:"evidence"` // what was sent or logged; the first few

	args  []string        // of the cause
	ports map[uint16]bool // for portsUnreachable
}

// Enough evidence for a reader, and of each.
const (
	maxEvidence     = 4
	maxEvidenceText = 400 // bytes
)

// see adds what was seen.
func (f *Finding) see(times int, evidence ...string) {
	f.Times += times
	for _, text := range evidence {
		if text = strings.Join(strings.Fields(text), " "); len(f.Evidence) < maxEvidence && text != "" &&
			!slices.Contains(f.Evidence, text) {
			if len(text) > maxEvidenceText {
				text = strings.ToValidUTF8(text[:maxEvidenceText], "") + " …"
			}
			f.Evidence = append(f.Evidence, text)
		}
	}
}

// Findings are what was found. The zero value is ready.
type Findings struct {
	all   map[string]*Finding
	order []string
}

// maxFindings bounds the findings of a log that many clients have filled.
const maxFindings = 1000

// about returns the finding of a kind about a client and a user, with the arguments of its text. A finding with
// others is another one.
func (fs *Findings) about(id ID, client, user string, args ...string) *Finding {
	key := strings.Join(append([]string{string(id), client, user}, args...), "\x00")
	if fs.all == nil {
		fs.all = map[string]*Finding{}
	}
	f := fs.all[key]
	if f == nil {
		f = &Finding{ID: id, Client: client, User: user, args: args, Evidence: []string{}}
		if len(fs.order) < maxFindings {
			fs.all[key] = f
			fs.order = append(fs.order, key)
		}
	}
	return f
}

// missed notes ports that a client did not reach.
func (fs *Findings) missed(client, user, address string, times int, port uint16, evidence ...string) {
	f := fs.about(portsUnreachable, client, user)
	if f.ports == nil {
		f.ports = map[uint16]bool{}
	}
	f.ports[port] = true
	f.args = []string{address, portsText(f.ports)}
	f.see(times, evidence...)
}

// Shown returns the findings with their texts, in the order of the table. text renders a message of the catalogues.
func (fs *Findings) Shown(text func(id i18n.ID, args ...string) string) []Finding {
	shown := []Finding{}
	for _, k := range Kinds() {
		from := len(shown)
		for _, key := range fs.order {
			if f := *fs.all[key]; f.ID == k.ID {
				f.Level, f.Cause, f.Change = k.Level, text(k.Cause, f.args...), text(k.Change)
				shown = append(shown, f)
			}
		}
		slices.SortStableFunc(shown[from:], func(a, b Finding) int { return cmp.Compare(b.Times, a.Times) })
	}
	slices.SortStableFunc(shown, func(a, b Finding) int { return cmp.Compare(b.Level, a.Level) }) // wrong, note
	return shown
}

// NothingFound is the message that nothing wrong was found.
const NothingFound i18n.ID = "doctor-nothing-found"

// portsText writes ports as ranges: 30012-30025, 30040.
func portsText(ports map[uint16]bool) string {
	const enough = 8 // ranges
	var b strings.Builder
	ranges := 0
	sorted := make([]int, 0, len(ports))
	for port := range ports {
		sorted = append(sorted, int(port))
	}
	slices.Sort(sorted)
	for i := 0; i < len(sorted); ranges++ {
		last := i
		for last+1 < len(sorted) && sorted[last+1] == sorted[last]+1 {
			last++
		}
		if ranges > 0 {
			b.WriteString(", ")
		}
		if ranges == enough {
			return b.String() + "…"
		}
		b.WriteString(strconv.Itoa(sorted[i]))
		if last > i {
			fmt.Fprintf(&b, "-%d", sorted[last])
		}
		i = last + 1
	}
	return b.String()
}

// isPrivate tells whether hosts elsewhere cannot reach an address.
func isPrivate(a netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // RFC 6598
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || shared.Contains(a)
}
