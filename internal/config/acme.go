package config

import (
	"cmp"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// ACME obtains and renews certificates from a certificate authority (RFC 8555). Use it if no other program provides
// the certificates.
type ACME struct {
	// Host names to obtain certificates for, one certificate each. Clients that send no server name get the
	// certificate of the first.
	Hosts []string `yaml:"hosts" default:"the hosts of all tenants without their own certificate"`
	// Directory URL of the certificate authority.
	Directory string `yaml:"directory" default:"https://acme-v02.api.letsencrypt.org/directory"`
	// CAFile has additional CA certificates to trust. It is not a key; it is set from ca_file of the server.
	CAFile string
	// Folder for the account, keys and certificates. Servers that share it use the same certificates. A relative path
	// starts in `/var/lib/babelftp`.
	Folder string `yaml:"folder" default:"the shared state, or /var/lib/babelftp/acme without state"`
	// Address for HTTP-01 challenges, host:port. The certificate authority must reach it on port 80.
	HTTPListen string `yaml:"http_listen" default:"none"`
	// Address for TLS-ALPN-01 challenges (RFC 8737), host:port. The certificate authority must reach it on port 443.
	TLSListen string `yaml:"tls_listen" default:"none"`
	// External account binding: the key identifier, a colon, and the HMAC key in base64url.
	EAB value.Secret `yaml:"eab" default:"none"`
}

// ExternalAccount returns the two parts of EAB. ok is false if it has no colon.
func (a *ACME) ExternalAccount() (keyID, hmacKey string, ok bool) {
	return strings.Cut(a.EAB.Reveal(), ":")
}

// stateFolder is the folder for the persistent state of the server. The systemd unit creates it (StateDirectory).
const stateFolder = "/var/lib/babelftp"

// normalizeFolder makes the folder an absolute path.
func (a *ACME) normalizeFolder() {
	if a.IsSet() {
		a.Folder = yamlconf.ResolvePath(stateFolder, cmp.Or(a.Folder, "acme"))
	}
}

// checkFolder accepts a missing folder, because the server creates it.
func (a *ACME) checkFolder(v *validator, p yamlconf.Path) {
	switch info, err := os.Stat(a.Folder); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		v.report(p.Child("folder"), "cannot read %s: %v", a.Folder, yamlconf.WithoutPath(err))
	case !info.IsDir():
		v.report(p.Child("folder"), "%s is not a folder: name one", a.Folder)
	}
}

// checkAccount validates EAB. Problems do not contain the value, because it is a secret.
func (a *ACME) checkAccount(v *validator, p yamlconf.Path) {
	if a.EAB.Empty() {
		return
	}
	keyID, hmacKey, ok := a.ExternalAccount()
	if key, err := base64.RawURLEncoding.DecodeString(hmacKey); !ok || keyID == "" || err != nil || len(key) == 0 {
		v.report(p.Child("eab"), "is not KEY_ID:HMAC_KEY: write both as the authority gives them, the key in base64url "+
			"without = at its end")
	}
}

// IsSet reports whether any key of the section is set.
func (a *ACME) IsSet() bool { return !reflect.ValueOf(*a).IsZero() }

// check validates the section at p.
func (a *ACME) check(v *validator, p yamlconf.Path) {
	if !a.IsSet() {
		return
	}
	if len(a.Hosts) == 0 {
		v.report(p.Child("hosts"),
			"is empty: write the host names by which clients reach the server, here or in hosts of "+
				"the tenants")
	}
	for i, host := range a.Hosts {
		_, notAddress := netip.ParseAddr(host)
		at := p.Child("hosts").Child(strconv.Itoa(i))
		if notAddress == nil || !strings.Contains(host, ".") || strings.ContainsAny(host, "*/:@ ") {
			v.report(at, "%q is not a host name: write it like ftp.example.com, without *", host)
		} else if slices.Contains(a.Hosts[:i], host) {
			v.report(at, "%s is written twice: remove one", host)
		}
	}
	if a.Directory != "" && !isURL(a.Directory, "https") {
		v.report(p.Child("directory"),
			"%q is not a directory URL: write it like "+
				"https://acme-v02.api.letsencrypt.org/directory", a.Directory)
	}
	a.checkFolder(v, p)
	a.checkAccount(v, p)
	if a.HTTPListen == "" && a.TLSListen == "" {
		v.report(p.Child("http_listen"), `is missing, and so is tls_listen: set one of them, like http_listen: ":80"`)
	}
}
