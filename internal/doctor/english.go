package doctor

import (
	"regexp"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
)

// english has the texts of the findings that the catalogues do not have.
const english = `
doctor-nothing-found|Nothing wrong was found.
doctor-name-unresolved|The name {Host} has no address.
doctor-address-unreachable|No connection to {Address} is possible.
doctor-protocol-mismatch|Both sides expect different protocols on this port (FTP, implicit TLS or PROXY).
doctor-limit|A limit or a ban keeps the client out.
doctor-tls-old|TLS older than version 1.2 is in use, which is insecure.
doctor-certificate|The client does not trust the certificate.
doctor-certificate-name|The certificate is not valid for {Host}.
doctor-certificate-expired|The certificate has expired or will expire soon.
doctor-passive-address|PASV announces {Address}, which clients elsewhere cannot reach.
doctor-inspected|A device on the way breaks {Command}.
doctor-ports-unreachable|The passive ports {Ports} cannot be reached from {Address}.
doctor-data-elsewhere|Data connections do not reach the right server, or come from another address.
doctor-active-failed|The server cannot connect to the client in active mode.
doctor-idle-cut|An idle connection is cut after {Seconds} s.
doctor-command-refused|{Command} does not work.
doctor-changed|{Name} is changed on the way.
doctor-type-ascii|Binary files are transferred as text (TYPE A), which damages them.
doctor-client-stops|The client gives up when {Command} is refused.
doctor-replicas-differ|Several servers answer at this address and are not alike.
doctor-storage-slow|The storage is slow.
doctor-leftover|{Name} could not be deleted.
doctor-do-dns|Correct the name or its DNS records.
doctor-do-open|Start the server, and open its ports in the firewall, the NAT and the load balancer.
doctor-do-port|Use the port for this kind of TLS, and PROXY headers on both sides or on neither.
doctor-do-limit|Raise the limit or lift the ban that the server's log names.
doctor-do-certificate|Use a valid certificate with this name and all intermediate certificates, from an authority that clients trust.
doctor-do-encrypt|Set the client to explicit TLS with encrypted data connections (AUTH TLS, PROT P).
doctor-do-tls-old|Disable TLS 1.0 and 1.1, and update what needs them.
doctor-do-client|Update the client, or use one that works with this server.
doctor-do-user|Check the name, the password and the permissions of the user; the server's log has the reason.
doctor-do-passive-address|Set the public address for passive mode on the server.
doctor-do-inspection|Disable the inspection of FTP (ALG) in firewalls and routers, or use TLS.
doctor-do-balancer|Let the load balancer keep the client's address and send its connections to one server, or use PROXY headers.
doctor-do-passive|Use passive mode.
doctor-do-network|Check the network, and raise the time limits of firewalls, NAT and load balancers.
doctor-do-binary|Set the client to binary mode (TYPE I).
doctor-do-charset|Use UTF-8 on both sides, or set the client's charset on the server.
doctor-do-replicas|Give all servers the same version, configuration and certificate.
doctor-do-room|Delete files or raise the quota.
doctor-do-storage|Check the S3 server, its credentials and its policy; its log has the request ID.
doctor-do-drain|Give the server more time to stop.
doctor-do-delete|Delete it by hand.
`

var placeholder = regexp.MustCompile(`\{\w+\}`)

// English renders a text.
func English(id i18n.ID, args ...string) string {
	_, text, found := strings.Cut(english, "\n"+string(id)+"|")
	if !found {
		bundle, err := i18n.Load()
		if err != nil {
			return string(id)
		}
		return bundle.Localizer(language.English).Text(id, args...)
	}
	text, _, _ = strings.Cut(text, "\n")
	for _, arg := range args {
		if at := placeholder.FindStringIndex(text); at != nil {
			text = text[:at[0]] + arg + text[at[1]:]
		}
	}
	return text
}
