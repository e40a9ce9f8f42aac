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

// ACME obtains certificates from an authority, and renews them (RFC 8555). It is for servers that nothing else gives
// certificates to.
type ACME struct {
	// Names to obtain a certificate for, each. The first is for clients that name no host to TLS.
	Hosts []string `yaml:"hosts" default:"those of all tenants without a certificate of their own"`
	// URL of the authority's directory.
	Directory string `yaml:"directory" default:"https://acme-v02.api.letsencrypt.org/directory"`
	// CAFile has authorities to trust in addition to those of the system. It is no key: it is that of the tenant or
	// server.
	CAFile string
	// Folder for account, keys and certificates, which several servers can share. A relative path is below
	// `/var/lib/babelftp`.
	Folder string `yaml:"folder" default:"/var/lib/babelftp/acme"`
	// Address of the challenge HTTP-01, host:port, which the authority reaches on port 80.
	HTTPListen string `yaml:"http_listen" default:"none"`
	// Address of the challenge TLS-ALPN-01 (RFC 8737), host:port, which the authority reaches on port 443.
	TLSListen string `yaml:"tls_listen" default:"none"`
	// Account at the authority (external account binding): the key's identifier, a colon, and the key in base64url.
	EAB value.Secret `yaml:"eab" default:"none"`
}

// ExternalAccount is `eab` in its two parts. ok is false where the text has no colon.
func (a *ACME) ExternalAccount() (keyID, hmacKey string, ok bool) {
	return strings.Cut(a.EAB.Reveal(), ":")
}

// stateFolder is where the server keeps what it must not lose. The systemd unit makes it (StateDirectory).
const stateFolder = "/var/lib/babelftp"

// normalizeFolder makes the folder an absolute path.
func (a *ACME) normalizeFolder() {
	if a.Given() {
		a.Folder = yamlconf.ResolvePath(stateFolder, cmp.Or(a.Folder, "acme"))
	}
}

// checkFolder takes a folder that does not exist, because the server makes it.
func (a *ACME) checkFolder(v *validator, p yamlconf.Path) {
	switch info, err := os.Stat(a.Folder); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		v.report(p.Child("folder"), "cannot read %s: %v", a.Folder, yamlconf.WithoutPath(err))
	case !info.IsDir():
		v.report(p.Child("folder"), "%s is not a folder: name one", a.Folder)
	}
}

// checkAccount does not show the text, because it holds a secret.
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

// Given reports whether the section says anything.
func (a *ACME) Given() bool { return !reflect.ValueOf(*a).IsZero() }

// check reports what is wrong with the section that p leads to.
func (a *ACME) check(v *validator, p yamlconf.Path) {
	if !a.Given() {
		return
	}
	if len(a.Hosts) == 0 {
		v.report(p.Child("hosts"),
			"there are none: write the names by which clients reach the server, here or as hosts of "+
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
			"%q is no URL of a directory: write it like "+
				"https://acme-v02.api.letsencrypt.org/directory", a.Directory)
	}
	a.checkFolder(v, p)
	a.checkAccount(v, p)
	if a.HTTPListen == "" && a.TLSListen == "" {
		v.report(p.Child("http_listen"), `is missing, and tls_listen too: write one of them, like http_listen: ":80"`)
	}
}
