package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Each endpoint is refused to all roles below its own, with 403 and the roles, and to logins without a role. A refused
// change is in the log.
func TestRoles(t *testing.T) {
	var log bytes.Buffer
	h := handlerOf(newSource(1, 1), &log)
	for _, rt := range h.routes() {
		path := strings.NewReplacer("{tenant}", "t", "{name}", "n", "{id}", "i").Replace(rt.path)
		for role := Role(0); role < rt.role; role++ {
			log.Reset()
			ctx := withIdentity(t.Context(), Identity{Name: "bob", Role: role})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, rt.method, Root+path, http.NoBody))
			var failed struct{ Error string }
			must.OK(t, json.Unmarshal(w.Body.Bytes(), &failed))
			if w.Code != http.StatusForbidden || !strings.Contains(failed.Error, "needs the role "+rt.role.String()) ||
				!strings.Contains(failed.Error, role.String()) {
				t.Errorf("%s %s as %q: %d %s", rt.method, rt.path, role, w.Code, w.Body)
			}
			if logged := strings.Contains(log.String(), "administrator=bob"); logged != (rt.event != "") {
				t.Errorf("%s %s as %q: got log %q", rt.method, rt.path, role, &log)
			}
		}
	}
}

// GET /me shows the login.
func TestMe(t *testing.T) {
	h := handlerOf(newSource(1, 1), &bytes.Buffer{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(asAdministrator(t.Context()), http.MethodGet, Root+"/me", nil))
	if got, want := strings.TrimSpace(w.Body.String()), `{"name":"ann","role":"administrator","login":"password"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
