package server

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// tooMany is the reply in French.
const tooMany = "Trop d’opérations en cours. Veuillez réessayer plus tard."

// A user above the limit of transfers gets 450, and may transfer again after an earlier transfer ended.
func TestTransferLimit(t *testing.T) {
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.DefaultLanguage = language.French
	acme.Limits.User.Transfers = 1
	acme.Users["bob"] = &config.User{PasswordHash: servicetest.PasswordHash(),
		Limits: config.Scope{Usage: limits.Usage{Transfers: 2}}}
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	begin := func(user string) (end func()) {
		t.Helper()
		c := session(t, srv, user)
		conn := c.Data()
		c.Command(150, "STOR "+user)
		return func() {
			t.Helper()
			_ = conn.Close()
			c.Reply(226)
		}
	}
	endFirst := begin("alice")
	second := session(t, srv, "alice")
	_ = second.Data()
	second.WantReply(450, tooMany, "NLST /")
	endBob := begin("bob")
	endBobs := begin("bob")
	endBob()
	endBobs()
	endFirst()
	second.Transfer("NLST /")
	wantMetrics(t, srv, `babelftp_refusals_total{limit="user.transfers",tenant="acme"} 1`)
}

// A holdingS3 is a transport that holds back copies.
type holdingS3 struct {
	aws.HTTPClient
	held    chan struct{} // receives a value for each copy
	release chan struct{} // closed to let the copies continue
}

func hold(t *testing.T, cfg *aws.Config) *holdingS3 {
	h := &holdingS3{cfg.HTTPClient, make(chan struct{}, 1000), make(chan struct{})}
	cfg.HTTPClient = h
	t.Cleanup(sync.OnceFunc(h.let))
	return h
}

func (h *holdingS3) let() {
	select {
	case <-h.release:
	default:
		close(h.release)
	}
}

func (h *holdingS3) Do(r *http.Request) (*http.Response, error) {
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		h.held <- struct{}{}
		select {
		case <-h.release:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return h.HTTPClient.Do(r)
}

// The limit applies to renaming, copying and removing whole directories, and not to files.
func TestOperationLimit(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].DefaultLanguage = language.French
	cfg.Limits.Server.Operations = 1
	put(t, s, cfg, "a/1", "a/2", "b/1", "file")
	opts := Options{AWS: s.AWSConfig()}
	s3 := hold(t, opts.AWS)
	srv := start(t, cfg, opts)
	c, other := session(t, srv, "alice"), session(t, srv, "alice")
	c.Command(350, "RNFR /a")
	done := make(chan error, 1)
	go func() {
		reply, err := c.Send("RNTO /moved")
		if err == nil && !strings.HasPrefix(reply, "250") {
			err = errors.New(reply)
		}
		done <- err
	}()
	<-s3.held
	other.Command(350, "RNFR /b")
	other.WantReply(450, tooMany, "RNTO /c")
	other.Command(450, "SITE RMDIR /b")
	other.Command(450, "SITE COPY /b /c")
	other.Command(250, "DELE /file")
	s3.let()
	if err := <-done; err != nil {
		t.Errorf("first rename: %v", err)
	}
	other.Command(350, "RNFR /b")
	other.Command(250, "RNTO /c")
	other.Command(250, "SITE RMDIR /c")
	wantMetrics(t, srv, `babelftp_refusals_total{limit="server.operations",tenant=""} 3`)
}

// A flood of logins from one address gets 421. Another address can log in. The log has a single line about it.
func TestLoginRates(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Limits.Address.LoginRate = 1
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: s.AWSConfig(), Logger: log.Logger()})
	for refused := 0; refused < 3; {
		c, _ := dialFrom(t, srv, "127.0.0.1", 220)
		c.Command(331, "USER alice")
		reply, err := c.Send("PASS " + servicetest.Password)
		must.OK(t, err)
		if strings.HasPrefix(reply, "421") {
			refused++
			c.WantClosed()
		}
	}
	c, _ := dialFrom(t, srv, "127.0.0.2", 220)
	c.Login("alice", servicetest.Password)
	wantMetrics(t, srv, `babelftp_refusals_total{limit="address.login_rate",tenant=""} 3`)
	lines := 0
	for _, line := range log.Take() {
		if strings.Contains(line, "refused by a limit") {
			lines++
		}
	}
	if lines != 1 {
		t.Errorf("got %d log lines, want 1", lines)
	}
}

// Commands above the rate are delayed. They get 421 if the delay would be too long.
func TestCommandRate(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	cfg.Limits.Address.CommandRate = 1
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	const sessions = 30 // each has at most one waiting command
	refused := make(chan struct{}, sessions)
	for range sessions {
		conn, err := ftptest.Open(srv.Addr().String())
		must.OK(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		go func() {
			for {
				reply, err := conn.Send("PEANUTS")
				if reply == "421 Too many commands. Please try again later." {
					refused <- struct{}{}
				}
				if err != nil || strings.HasPrefix(reply, "421") {
					return
				}
			}
		}()
	}
	<-refused
	other, _ := dialFrom(t, srv, "127.0.0.2", 220)
	other.Login("alice", servicetest.Password)
}
