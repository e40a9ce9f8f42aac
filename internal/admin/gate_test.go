package admin

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The audit log gets one line an hour for an administrator who sends the password with each request from the
// same address. A request from another address, with a new password or with a wrong password gets its own
// line.
func TestAuditOfRequestsWithPassword(t *testing.T) {
	hash, err := passwordhash.New(password)
	must.OK(t, err)
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := newGate(audit.New(audit.To(&out), func() bool { return true }, nil), slog.New(slog.DiscardHandler), "")
		set := func(clients *x509.CertPool) {
			passwords, err := newPasswords(map[string]string{administratorName: hash})
			must.OK(t, err)
			g.replace(access{passwords: passwords, clients: clients})
		}
		set(nil)
		h := g.handler(textHandler("api"), textHandler("page"))
		ask := func(from, password string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/v1/server", nil)
			r.RemoteAddr = from
			r.SetBasicAuth(administratorName, password)
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		const office, home = "192.0.2.7:1000", "[2001:db8::7]:1000"
		ask(office, password)
		ask("192.0.2.7:1001", password)
		ask(home, password)
		ask("[2001:db8::8]:1001", password)
		time.Sleep(visitLasts - time.Second)
		ask(office, password)
		time.Sleep(time.Second)
		ask(office, password)
		set(x509.NewCertPool())
		ask(office, otherPassword)
		ask(office, otherPassword)
		ask(office, password)
		var got []string
		for line := range bytes.Lines(out.Bytes()) {
			var fields struct{ Event, Administrator, Client, Outcome string }
			must.OK(t, json.Unmarshal(line, &fields))
			if fields.Event != audit.EventAdministrator || fields.Administrator != administratorName {
				t.Errorf("unexpected line %s", line)
			}
			got = append(got, fields.Client+" "+fields.Outcome)
		}
		want := []string{
			office + " ok", home + " ok", office + " ok", office + " failed", office + " failed", office + " ok",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Visits are dropped when there are too many.
func TestManyVisits(t *testing.T) {
	g := newGate(nil, slog.New(slog.DiscardHandler), "")
	c := g.current()
	for i := range 2 * maxVisits {
		r := &http.Request{RemoteAddr: fmt.Sprintf("10.0.%d.%d:1000", i/250, i%250)}
		if !g.begins(&c, administratorName, r) || g.begins(&c, administratorName, r) {
			t.Fatalf("the visit from %s was not recorded", r.RemoteAddr)
		}
	}
	if len(c.visits) > maxVisits {
		t.Errorf("got %d visits", len(c.visits))
	}
}
