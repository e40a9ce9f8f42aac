package audit

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
)

// lastLine returns the last line of a log.
func lastLine(t *testing.T, out *bytes.Buffer) map[string]any {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	var fields map[string]any
	must.OK(t, json.Unmarshal(lines[len(lines)-1], &fields))
	return fields
}

// A line has the TLS version and cipher suite of its session, and neither of them without TLS.
func TestEncryption(t *testing.T) {
	var out bytes.Buffer
	s := New(To(&out), func() bool { return true }, nil, "replica", 2).Session(&report.Client{ID: "1"})
	s.LoggedIn(nil, account.ErrLoginRefused)
	line := lastLine(t, &out)
	if _, version := line["tls_version"]; version || line["tls"] != false {
		t.Errorf("unexpected line without TLS: %v", line)
	}
	s.Identified(&report.Client{ID: "1", TLS: true, TLSVersion: "TLS 1.3", TLSCipher: "TLS_AES_128_GCM_SHA256"})
	s.LoggedIn(nil, account.ErrLoginRefused)
	line = lastLine(t, &out)
	if line["replica"] != 2.0 {
		t.Errorf("the line %v lacks the replica", line)
	}
	if line["tls"] != true || line["tls_version"] != "TLS 1.3" || line["tls_cipher"] != "TLS_AES_128_GCM_SHA256" {
		t.Errorf("unexpected line with TLS: %v", line)
	}
}

// A correct password for another tenant has its own reason.
func TestWrongTenant(t *testing.T) {
	var out bytes.Buffer
	s := New(To(&out), func() bool { return true }, nil).Session(&report.Client{ID: "1"})
	s.LoggedIn(nil, &account.LoginError{User: "lost", Err: account.ErrWrongTenant})
	if line := lastLine(t, &out); line["reason"] != "wrong_tenant" || line["user"] != "lost" || line["tenant"] != nil {
		t.Errorf("unexpected line %v", line)
	}
}
