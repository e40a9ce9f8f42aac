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

// certificates say which certificates clients may show, and must.
type certificates struct {
	authorities *clientcert.Authorities // nil if the server asks for no certificates
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

// accepts returns [ErrCertificate], wrapped, if the client has shown a certificate that is not valid, or
// lacks one.
func (c certificates) accepts(shown []*x509.Certificate) error {
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
		return fmt.Errorf("%w: %s%w", ErrCertificate, about(shown), err)
	}
	return nil
}

// about is the subject of a certificate, for the log.
func about(shown []*x509.Certificate) string {
	if len(shown) == 0 {
		return ""
	}
	return fmt.Sprintf("%q: ", value.CertificateSubject(shown[0]))
}

// subject is that of an accepted certificate, empty without one.
func (t *Tenant) subject(shown []*x509.Certificate) string {
	if t.authorities == nil || len(shown) == 0 {
		return ""
	}
	return value.CertificateSubject(shown[0])
}

// accepts is that of the tenant, and returns the same error if the user has certificates and the client has shown
// none of them.
func (u *User) accepts(shown []*x509.Certificate) error {
	if err := u.Tenant.accepts(shown); err != nil || len(u.Certificates) == 0 {
		return err
	}
	switch {
	case len(shown) == 0 || u.Tenant.authorities == nil:
		return fmt.Errorf("%w: %w", ErrCertificate, clientcert.ErrNone)
	case !slices.ContainsFunc(u.Certificates, func(c value.ClientCertificate) bool { return c.Matches(shown[0]) }):
		return fmt.Errorf("%w: %sis not one of the user's", ErrCertificate, about(shown))
	}
	return nil
}

// needsNoPassword tells whether certificates are all that the user has.
func (u *User) needsNoPassword() bool {
	return u.PasswordHash.Reveal() == "" && len(u.Certificates) > 0
}

// ByCertificate implements [Backend].
func (r *Registry) ByCertificate(req *LoginRequest) bool {
	d := r.current.Load()
	u := d.find(netaddr.Of(req.RemoteAddr), req.Host, req.User)
	if u == nil || !u.needsNoPassword() {
		t, _ := d.asked(netaddr.Of(req.RemoteAddr), req.Host, req.User)
		_ = d.certificatesOf(t).accepts(req.Certificates)
		return false
	}
	return u.accepts(req.Certificates) == nil
}

// certificatesOf are the rules for unknown users of a tenant, or of none. To verify what the client has shown takes
// time, also where it decides nothing. Otherwise that time would tell which users exist.
func (d *directory) certificatesOf(t *Tenant) certificates {
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

// Admit implements [Backend]. A certificate of any tenant's authorities is one that the server accepts.
func (r *Registry) Admit(shown []*x509.Certificate) error {
	d := r.current.Load()
	if !d.certificates.required {
		return nil
	}
	err := d.certificates.accepts(shown)
	for _, t := range d.tenants {
		if err != nil && t.accepts(shown) == nil {
			return nil
		}
	}
	return err
}
