package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/base/ftpclient"
	"github.com/babelftp/babelftp/internal/config"
)

// An oldServer is an FTP server from which users are migrated. The names of anonymous FTP are never sent to it,
// because it accepts any password for them.
type oldServer struct {
	template
	cfg *config.OldServer
	tls *tls.Config
}

func newOldServer(cfg *config.Auth) (*oldServer, error) {
	o := &oldServer{template: template{source: "old FTP server", user: cfg.User.New()}, cfg: &cfg.FTP}
	host, _, err := net.SplitHostPort(cfg.FTP.Address)
	if err != nil {
		return nil, errors.New("invalid address of the old FTP server")
	}
	authorities, err := config.Trusted(cfg.FTP.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of the old FTP server: %w", err)
	}
	pinned, err := certificatesIn(cfg.FTP.CAFile)
	if err != nil {
		return nil, err
	}
	// Certificates of old servers often lack the subject alternative name that Go requires, so ca_file may contain
	// the server certificate itself.
	o.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			leaf := s.PeerCertificates[0]
			if slices.ContainsFunc(pinned, leaf.Equal) {
				return nil
			}
			others := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				others.AddCert(c)
			}
			_, err := leaf.Verify(x509.VerifyOptions{Roots: authorities, Intermediates: others, DNSName: host})
			return err
		}}
	return o, nil
}

// certificatesIn returns the certificates in a PEM file, or nil if name is empty.
func certificatesIn(name string) (all []*x509.Certificate, err error) {
	if name == "" {
		return nil, nil
	}
	text, err := os.ReadFile(name)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all, err
}

// Authenticate implements [Source].
func (o *oldServer) Authenticate(ctx context.Context, req *Request) (*Response, error) {
	if name := config.FoldUser(req.User); name == "anonymous" || name == "ftp" {
		return nil, fmt.Errorf("%s: guest accounts cannot be moved: %w", o.source, ErrRefused)
	}
	if strings.ContainsAny(req.Password, "\r\n\x00") {
		return nil, fmt.Errorf("%s: the password contains a line break or NUL: %w", o.source, ErrRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	if err := o.dialogue(ctx, func(c *ftpclient.Conn) error { return logIn(c, req.User, req.Password) }); err != nil {
		return nil, err
	}
	user, err := o.settings(req.User, func(string) []string { return nil }, nil)
	if err != nil {
		return nil, err
	}
	return &Response{User: user}, nil
}

// probe connects and starts TLS like a login, and then quits.
func (o *oldServer) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	return o.dialogue(ctx, func(*ftpclient.Conn) error { return nil })
}

// dialogue connects, starts TLS if required, and calls do.
func (o *oldServer) dialogue(ctx context.Context, do func(*ftpclient.Conn) error) error {
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", o.cfg.Address)
	if err == nil {
		c := ftpclient.New(ctx, tcp)
		defer c.Close()
		if err = o.open(ctx, c); err == nil {
			err = do(c)
			_, _ = io.WriteString(c, "QUIT\r\n") // QUIT does not change the result
		}
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		err = errors.New("invalid FTP reply") // err may contain a name or a password
	}
	if err != nil {
		if !errors.Is(err, ErrRefused) {
			err = cmp.Or(ctx.Err(), err)
		}
		return fmt.Errorf("%s %s: %w", o.source, o.cfg.Address, err)
	}
	return nil
}

// open reads the greeting and starts TLS as configured.
func (o *oldServer) open(ctx context.Context, c *ftpclient.Conn) (err error) {
	if o.cfg.TLS == config.ImplicitOldTLS {
		if _, err := c.StartTLS(ctx, o.tls); err != nil {
			return err
		}
	}
	code := 120 // service ready in some minutes (RFC 959, section 5.4)
	for code == 120 && err == nil {
		code, _, err = c.Reply()
	}
	switch {
	case err != nil:
		return err
	case code != 220:
		return fmt.Errorf("replied %d to the connection", code)
	case o.cfg.TLS == config.ImplicitOldTLS, o.cfg.TLS == config.NoOldTLS:
		return nil
	}
	switch code, _, err = c.Cmd("AUTH TLS"); {
	case err != nil:
		return err
	case code != 234:
		return fmt.Errorf("replied %d to AUTH TLS: enable TLS there, or write tls: none to send passwords in the clear", code)
	}
	_, err = c.StartTLS(ctx, o.tls)
	return err
}

// logIn sends USER and PASS. A server that needs no password has not authenticated the user, so the login is refused.
func logIn(c *ftpclient.Conn, name, password string) error {
	code, _, err := c.Cmd("USER " + name)
	switch {
	case err != nil:
		return err
	case code == 530, code == 230, code == 232:
		return fmt.Errorf("replied %d to USER: %w", code, ErrRefused)
	case code != 331:
		return fmt.Errorf("replied %d to USER", code)
	}
	switch code, _, err = c.Cmd("PASS " + password); {
	case err != nil:
		return err
	case code == 530, code == 430: // 430 is not in RFC 959, but some servers send it for a wrong password
		return fmt.Errorf("replied %d to PASS: %w", code, ErrRefused)
	case code != 230:
		return fmt.Errorf("replied %d to PASS", code)
	}
	return nil
}
