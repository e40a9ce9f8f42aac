package config

import (
	"net"
	"time"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// OldServer is an FTP server from which users are migrated. Its users are stored in `users_file` or
// `users_store` at their first login.
type OldServer struct {
	// Address of an old FTP server from which users are migrated, host:port. Users are stored in `users_file` or
	// `users_store` at their first login.
	Address string `yaml:"address" default:"none"`
	// TLS for sending passwords: `required` uses AUTH TLS, `implicit` starts with TLS, and `none` sends passwords in
	// the clear.
	TLS OldServerTLS `yaml:"tls" default:"required"`
	// CAFile has CA certificates to trust in addition to the system's, or the certificate of the server itself. It is
	// not a key; it is set from ca_file of the tenant.
	CAFile string
	// Timeout limits a login to the old server. It is not a key; Load sets it.
	Timeout time.Duration
}

// OldServerTLS controls TLS for the connection to an [OldServer]. The zero value is RequiredOldTLS.
type OldServerTLS string

// The modes.
const (
	RequiredOldTLS OldServerTLS = "required" // AUTH TLS (RFC 4217)
	ImplicitOldTLS OldServerTLS = "implicit" // TLS from the first byte
	NoOldTLS       OldServerTLS = "none"     // no TLS
)

// Values implements [yamlconf.Enum].
func (OldServerTLS) Values() []string {
	return yamlconf.EnumValues(RequiredOldTLS, ImplicitOldTLS, NoOldTLS)
}

// maxOldServerTimeout is longer than the timeout of other services, because old servers look up the client in the DNS
// and delay replies to wrong passwords.
const maxOldServerTimeout = 15 * time.Second

func (o *OldServer) check(v *validator, p yamlconf.Path) {
	if host, port, err := net.SplitHostPort(o.Address); err != nil || host == "" || port == "" {
		v.report(p.Child("address"), "%q is not a server address: write it like old.example.com:21", o.Address)
	}
}
