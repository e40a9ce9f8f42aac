package config

import (
	"net"
	"time"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// OldServer is an FTP server whose users move here: who logs in there with the password once is stored in
// `users_file`.
type OldServer struct {
	// Address of an old FTP server whose users keep their passwords, host:port. Who logs in there once is stored in
	// `users_file`.
	Address string `yaml:"address" default:"none"`
	// How the password goes there: `required` begins TLS by AUTH TLS, `implicit` at once, and `none` sends it in the clear.
	TLS OldServerTLS `yaml:"tls" default:"required"`
	// CAFile has authorities to trust in addition to those of the system, or the certificate of the server itself. It
	// is no key: it is that of the tenant.
	CAFile string
	// Timeout is the longest time of a login there. It is no key: Load sets it.
	Timeout time.Duration
}

// OldServerTLS is how the password goes to an [OldServer]. The zero value is RequiredOldTLS.
type OldServerTLS string

// The ways.
const (
	RequiredOldTLS OldServerTLS = "required" // AUTH TLS (RFC 4217)
	ImplicitOldTLS OldServerTLS = "implicit" // from the first byte
	NoOldTLS       OldServerTLS = "none"     // in the clear
)

// Values implements [yamlconf.Enum].
func (OldServerTLS) Values() []string {
	return yamlconf.EnumValues(RequiredOldTLS, ImplicitOldTLS, NoOldTLS)
}

// maxOldServerTimeout is longer than other services have. Old servers look up the name of the client in the DNS, and
// delay the reply to a wrong password.
const maxOldServerTimeout = 15 * time.Second

func (o *OldServer) check(v *validator, p yamlconf.Path) {
	if host, port, err := net.SplitHostPort(o.Address); err != nil || host == "" || port == "" {
		v.report(p.Child("address"), "%q is no address of a server: write it like old.example.com:21", o.Address)
	}
}
