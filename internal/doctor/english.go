package doctor

import (
	"regexp"
	"strings"
)

// english has the texts of the findings.
const english = `
doctor-nothing-found|Nothing wrong was found.
doctor-name-unresolved|The name {Host} has no address.
doctor-address-unreachable|No connection to {Address} is possible.
doctor-protocol-mismatch|The two sides expect different protocols on this port: FTP, implicit TLS or a PROXY header.
doctor-limit|The server refuses because of a limit or a ban.
doctor-tls-missing|The server offers no TLS. Passwords and files can be read on the way.
doctor-tls-required|The server requires TLS, and the client does not begin it.
doctor-tls-old|TLS older than version 1.2 is in use. It is insecure.
doctor-tls-reuse|Data connections must resume the TLS session of the control connection. Some clients cannot do that.
doctor-certificate|The client does not trust the certificate.
doctor-certificate-name|The certificate does not have the name {Host}.
doctor-certificate-expired|The certificate has expired, or will soon.
doctor-protection|Data connections are not encrypted as the other side wants.
doctor-login-refused|The login is refused.
doctor-passive-private|PASV shows the private address {Address}, which clients elsewhere cannot reach.
doctor-passive-other|PASV shows {Address}, which is not the address of the server.
doctor-passive-changed|PASV fails and EPSV works: a device on the way changes the reply.
doctor-extended-blocked|EPSV fails and PASV works: a device on the way does not know EPSV.
doctor-extended-all|After EPSV ALL nothing works: a device on the way does not know the command.
doctor-ports-unreachable|The passive ports {Ports} do not reach the server from {Address}.
doctor-data-elsewhere|Data connections arrive at another server, or from another address than the control connection.
doctor-active-failed|The server cannot connect to the client in active mode.
doctor-idle-cut|A device on the way cuts an idle control connection after {Seconds} s.
doctor-transfer-cut|Transfers are cut before their end.
doctor-command-refused|{Command} does not work.
doctor-file-differs|A file is changed on the way.
doctor-type-ascii|Binary files are transferred as text (TYPE A), which damages them.
doctor-names-changed|Names with other letters than those of ASCII are refused or changed.
doctor-feature-missing|The server does not offer {Feature}.
doctor-client-stops|The client gives up when {Command} is refused.
doctor-replicas-differ|Several servers answer at this address, and they are not alike.
doctor-storage-full|The storage is full, or a quota is exceeded.
doctor-storage-slow|The storage is slow.
doctor-storage-refuses|The storage refuses requests, or cannot be reached.
doctor-shutting-down-server|The server was shutting down.
doctor-leftover|{File} of this test could not be deleted.
doctor-do-dns|Correct the name or its DNS records.
doctor-do-reach|Start the server, open the port in the firewall, or remove the address from DNS.
doctor-do-port|Use the port for this kind of TLS. Behind a load balancer, check where PROXY headers are sent and expected.
doctor-do-limit|Wait, raise the limit, or lift the ban. The log names it.
doctor-do-certificate-set|Give the server a certificate.
doctor-do-tls-begin|Set the client to explicit TLS (AUTH TLS).
doctor-do-tls-update|Update the older side, and disable TLS 1.0 and 1.1.
doctor-do-tls-reuse|Use a client that resumes TLS sessions, or remove the requirement on the server.
doctor-do-certificate-trust|Use a certificate of a public authority with all intermediate certificates, or make the client trust this one.
doctor-do-certificate-name|Connect to a name of the certificate, or obtain one with this name.
doctor-do-certificate-renew|Renew the certificate.
doctor-do-protection|Set the client to encrypt data connections as well (PROT P).
doctor-do-login|Check the name and the password. The log of the server has the reason.
doctor-do-passive-address|Set the public address for passive mode on the server, and check routers that change replies.
doctor-do-inspection|Disable the inspection of FTP (ALG) in the firewall or router, or use TLS.
doctor-do-ports|Open all passive ports in the firewall, the NAT and the load balancer.
doctor-do-balancer|Let the load balancer keep the address of the client and send its connections to one server, or use PROXY headers on all ports.
doctor-do-passive-mode|Use passive mode.
doctor-do-idle|Raise the time limit of the firewall, NAT or load balancer, or let the client send NOOP.
doctor-do-transfer|Check the network and the time limits of routers and load balancers.
doctor-do-permissions|Check the permissions of the user. The reply has the reason.
doctor-do-binary|Set the client to binary transfers (TYPE I), and disable the inspection of FTP on the way.
doctor-do-charset|Use UTF-8 on both sides, or tell the server the charset of the client.
doctor-do-feature|Clients that need it require another server or a newer version.
doctor-do-client|Update the client, or set it up to do without the command.
doctor-do-replicas|Give all servers the same version, configuration and certificate.
doctor-do-room|Delete files, or raise the quota.
doctor-do-storage|Check the S3 server, its address, the credentials and the policy. Its log has the request ID.
doctor-do-nothing|Connect again. A longer drain_timeout lets transfers end.
doctor-do-delete|Delete it by hand.
`

// English renders a text.
func English(id string, args ...string) string {
	_, text, _ := strings.Cut(english, "\n"+id+"|")
	text, _, _ = strings.Cut(text, "\n")
	for _, arg := range args {
		if at := regexp.MustCompile(`\{\w+\}`).FindStringIndex(text); at != nil {
			text = text[:at[0]] + arg + text[at[1]:]
		}
	}
	return text
}
