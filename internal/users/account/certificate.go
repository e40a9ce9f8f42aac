package account

import (
	"crypto/x509"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/babelftp/babelftp/internal/base/clientcert"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
)

// certificates is the client certificate policy of the server or of a tenant.
type certificates struct {
	authorities *clientcert.Authorities // nil if clients are not asked for certificates
	required    bool
}

func newCertificates(cfg config.ClientCertificates, log *slog.Logger) (certificates, error) {
	c := certificates{required: cfg.Required}
	if cfg.CAFile == "" {
		return c, nil
	}
	var err error
	c.authorities, err = clientcert.Open(clientcert.Files{CA: cfg.CAFile, CRL: cfg.CRLFile}, log)
	return c, err
}

// verify returns an [ErrCertificate] if the client has presented an invalid certificate, or none although one is
// required.
func (c certificates) verify(shown []*x509.Certificate) error {
	var err error
	switch {
	case c.required && (len(shown) == 0 || c.authorities == nil):
		err = clientcert.ErrNone
	case len(shown) == 0 || c.authorities == nil:
		return nil
	default:
		err = c.authorities.Verify(shown)
	}
	if err != nil {
		return fmt.Errorf("%w: %s%w", ErrCertificate, describeCertificate(shown), err)
	}
	return nil
}

// describeCertificate returns the subject of the leaf as a prefix for log messages, or nothing if chain is empty.
func describeCertificate(shown []*x509.Certificate) string {
	if len(shown) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: ", value.CertificateSubject(shown[0]))
}

// subject returns the subject of a verified certificate, or nothing if the client presented none.
func (t *Tenant) subject(shown []*x509.Certificate) string {
	if t.authorities == nil || len(shown) == 0 {
		return ""
	}
	return value.CertificateSubject(shown[0])
}

// verify returns an [ErrCertificate] if the tenant does not accept the certificate, or if the user is restricted to
// certificates and the client has presented another one or none.
func (u *User) verify(shown []*x509.Certificate) error {
	if err := u.Tenant.verify(shown); err != nil || len(u.Certificates) == 0 {
		return err
	}
	switch {
	case len(shown) == 0 || u.Tenant.authorities == nil:
		return fmt.Errorf("%w: %w", ErrCertificate, clientcert.ErrNone)
	case !slices.ContainsFunc(u.Certificates, func(c value.ClientCertificate) bool { return c.Matches(shown[0]) }):
		return fmt.Errorf("%w: %sis not a certificate of the user", ErrCertificate, describeCertificate(shown))
	}
	return nil
}

// needsNoPassword reports whether the user logs in with a certificate alone.
func (u *User) needsNoPassword() bool {
	return u.PasswordHash.Reveal() == "" && len(u.Certificates) > 0
}

// NeedsNoPassword implements [Backend].
func (r *Registry) NeedsNoPassword(req *LoginRequest) bool {
	d := r.current.Load()
	u := d.find(netaddr.Of(req.RemoteAddr), req.Host, req.User)
	if u == nil || !u.needsNoPassword() {
		t, _ := d.requestedTenant(netaddr.Of(req.RemoteAddr), req.Host, req.User)
		_ = d.certificatesFor(t).verify(req.Certificates)
		return false
	}
	return u.verify(req.Certificates) == nil
}

// certificatesFor returns the policy that is used for unknown users of a tenant, or of no tenant (nil). Verifying a
// certificate takes time, so it is verified for unknown users too: otherwise the time of the reply would reveal which
// users exist.
func (d *tenantTable) certificatesFor(t *Tenant) certificates {
	if t != nil {
		return t.certificates
	}
	if d.certificates.authorities != nil {
		return d.certificates
	}
	for _, name := range slices.Sorted(maps.Keys(d.tenants)) {
		if d.tenants[name].authorities != nil {
			return d.tenants[name].certificates
		}
	}
	return certificates{}
}

// Admit implements [Backend]. A certificate that any tenant accepts is valid here.
func (r *Registry) Admit(shown []*x509.Certificate) error {
	d := r.current.Load()
	if !d.certificates.required {
		return nil
	}
	err := d.certificates.verify(shown)
	for _, t := range d.tenants {
		if err != nil && t.verify(shown) == nil {
			return nil
		}
	}
	return err
}
