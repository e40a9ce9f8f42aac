package admin

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// submit sends the form of a page of the provider.
func (v *visitor) submit(form page, fields url.Values) page {
	v.Helper()
	action := regexp.MustCompile(`action="([^"]+)"`).FindStringSubmatch(form.body)
	if action == nil {
		v.Fatalf("there is no form at %s: %d %s", form.at, form.status, form.body)
	}
	hidden := regexp.MustCompile(`type="hidden" name="(\w+)" value="(\w+)"`)
	for _, field := range hidden.FindAllStringSubmatch(form.body, -1) {
		fields.Set(field[1], field[2])
	}
	return sendPage(v.T, v.http, http.MethodPost, action[1], fields)
}

// An administrator logs in with the form of an independent provider, loses a group, and logs out there.
func TestIdentityProvider(t *testing.T) {
	bound := must.Listen(t)
	base := "http://" + bound.Addr().String()
	p := servicetest.StartIdentityProvider(t, base+"/login/oidc/callback")
	p.SetGroups(t, `{"ann": ["ops"], "bob": ["others"]}`)
	p.Config.Roles = map[config.AdminRole][]string{config.RoleOperator: {"ops"}}
	log := &servicetest.Log{}
	l, err := NewListener(config.Admin{OIDC: p.Config}, whoIs(), textHandler("page"),
		audit.New(audit.To(log), func() bool { return true }, nil), slog.New(slog.DiscardHandler), "")
	must.OK(t, err)
	l.gate.checks = checks{every: 0, grace: time.Hour}
	ended := make(chan error)
	go func() { ended <- l.Serve(bound) }()
	defer func() {
		l.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	site := &oidcSite{t, base, l, log}
	logIn := func(v *visitor, name string) page {
		t.Helper()
		form := v.get(base + "/login/oidc")
		consent := v.submit(form, url.Values{"login": {name}, "password": {"any"}})
		return v.submit(consent, url.Values{})
	}
	ann, bob := site.visitor(), site.visitor()
	if got := logIn(ann, "ann"); got.body != "page" || got.at.RawQuery != "" {
		t.Fatalf("the login ended at %s: %s", got.at, got.body)
	}
	ann.wants("operator")
	if got := logIn(bob, "bob"); got.at.RawQuery != "login_error=no_role" {
		t.Errorf("without a group, the login ended at %s", got.at)
	}
	bob.wants("")

	p.SetGroups(t, `{}`)
	ann.wants("")
	if got := ann.get(base + "/login/oidc"); got.at.RawQuery != "login_error=no_role" { // the provider knows who it is
		t.Errorf("after the group was removed, the login ended at %s", got.at)
	}
	p.SetGroups(t, `{"ann": ["ops"]}`)
	if got := ann.get(base + "/login/oidc"); got.body != "page" || got.at.RawQuery != "" {
		t.Errorf("the second login ended at %s", got.at)
	}
	ann.wants("operator")

	var answer struct {
		LogoutURL string `json:"logout_url"`
	}
	got := sendPage(t, ann.http, http.MethodPost, base+"/logout", nil)
	must.OK(t, json.Unmarshal([]byte(got.body), &answer))
	form := ann.get(answer.LogoutURL)
	ann.submit(form, url.Values{"logout": {"yes"}})
	ann.wants("")
	if got := ann.get(base + "/login/oidc"); !strings.Contains(got.body, `name="password"`) {
		t.Errorf("after the logout, the login ended at %s", got.at)
	}

	carl := site.visitor()
	logIn(carl, "ann")
	p.Stop()
	carl.wants("operator")                                                        // for some time
	if want := `"administrator":"(ann)"`; !strings.Contains(log.String(), want) { // the subject is the name
		t.Errorf("audit log %s lacks %s", log, want)
	}
}
