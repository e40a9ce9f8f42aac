package admin_test

import (
	_ "embed"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// contrast is a script that returns the texts and the borders of controls that have too little contrast with
// their background.
//
//go:embed testdata/contrast.js
var contrast string

// A node is a node of the accessibility tree, which screen readers use.
type node struct {
	Ignored    bool
	Role, Name struct{ Value string }
}

// nodes returns the nodes of the page with this role.
func (t *tab) nodes(role string) []node {
	t.Helper()
	var tree struct{ Nodes []node }
	t.ask("Accessibility.getFullAXTree", nil, &tree)
	return slices.DeleteFunc(tree.Nodes, func(n node) bool { return n.Ignored || n.Role.Value != role })
}

// accessible checks what the page shows with axe, in the light and the dark scheme.
func (t *tab) accessible(what string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		t.prefer(scheme)
		for _, problem := range eval[[]string](t, contrast) {
			t.Errorf("%s, %s: %s", what, scheme, problem)
		}
	}
	t.prefer("light")
	type violation struct {
		ID, Help string
		Nodes    []struct{ HTML string }
	}
	for _, v := range eval[[]violation](t, `axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
		violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.map(({html}) => ({html}))})))`) {
		t.Errorf("%s: %s: %s: %.300s", what, v.ID, v.Help, v.Nodes[0].HTML)
	}
}

// withAxe loads axe-core into the page.
func (t *tab) withAxe() {
	t.Helper()
	eval[any](t, npmFile(t.T, "axe-core/axe.min.js")+`;null`)
}

func TestAccessible(t *testing.T) {
	srv := start(t, func(cfg *config.Config) {
		acme := cfg.Tenants["acme"]
		acme.Resume, acme.Quota = config.KeepInterrupted, 100_000_000
		acme.Compatibility.Charset = servicetest.Encoding(t, "raw") // a mirror may have names that are not UTF-8
		missing := *acme
		missing.Hosts, missing.Bucket = []string{"ftp.umbrella.example"}, "missing"
		cfg.Tenants["umbrella"] = &missing
	})
	ban(t, srv, "192.0.2.7")
	first := login(t, srv)
	interrupt(t, srv, first, "interrupted.bin")
	data := upload(t, first, "\u202egpj.exe", "x")
	defer data.Close()
	login(t, srv)

	tab := open(t, address(srv)+"/now", "en")
	tab.withAxe()
	tab.expect("401 (Unauthorized)")
	tab.wait(`document.querySelector('#login').open`)
	tab.accessible("login")
	tab.fill("#name", name)
	tab.fill("#password", "wrong")
	tab.press("Enter", "\r")
	tab.wait(`document.querySelector('#login-failed').textContent`)
	tab.accessible("wrong password")
	tab.fill("#password", password)
	tab.press("Enter", "\r")
	tab.wait(row("transfers", "gpj.exe"))
	tab.wait(`document.querySelector('#uploads-tenant').value`)
	tab.enter("#show-uploads")
	tab.wait(row("uploads", "interrupted.bin"))
	tab.wait(`document.querySelector('.plot canvas')`)
	eval[any](tab, `for (const details of document.querySelectorAll('details')) details.open = true`)
	tab.wait(`document.querySelector('details tbody tr')`)
	tab.accessible("now")
	for _, landmark := range []string{"banner", "main", "navigation"} {
		if got := len(tab.nodes(landmark)); got != 1 {
			t.Errorf("got %d landmarks %s", got, landmark)
		}
	}
	var names []string
	for _, n := range tab.nodes("button") {
		if slices.Contains(names, n.Name.Value) {
			t.Errorf("several buttons are named %q", n.Name.Value)
		}
		names = append(names, n.Name.Value)
	}
	for _, want := range []string{"Actions alice 127.0.0.1:", "Actions /alice/interrupted.bin alice"} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("missing button %q among %q", want, names)
		}
	}
	// The graphs have a text.
	summary := regexp.MustCompile(`^Sessions: \d now, at most \d in the last hour\. $`)
	if got := eval[string](tab, `document.querySelector('.chart .unseen').textContent`); !summary.MatchString(got) {
		t.Errorf("the graph of sessions says %q", got)
	}

	tab.choose("sessions", "alice", "disconnect")
	tab.dialog()
	tab.accessible("question")
	tab.press("Escape", "")
	eval[any](tab, row("sessions", "alice")+`.querySelector('.more').click()`)
	tab.wait(`document.querySelector('.menu')`)
	tab.accessible("menu")
	tab.press("Escape", "")
	for _, screen := range []string{"users", "activity", "problems", "server"} {
		tab.visit(screen)
		tab.wait(`document.querySelector('#screen > div:not([hidden]) tbody tr')`)
		tab.accessible(screen)
	}
	tab.visit("users")
	tab.enter("#add-user")
	tab.wait(`document.querySelector('.editor')`)
	tab.accessible("editor")
	eval[any](tab, `document.body.dataset.connection = 'stale'`)
	tab.accessible("stale")

	for _, screen := range []string{"now", "users", "problems"} {
		tab.visit(screen)
		tab.reachesAll(screen)
	}
}

// reachesAll checks that Tab moves the focus to each control of the page, and that each shows that it has the focus.
func (t *tab) reachesAll(screen string) {
	t.Helper()
	controls := eval[int](t, `Array.from(document.querySelectorAll(
		'a[href], button:not(:disabled), input:not(:disabled), select, summary, [tabindex="0"]'
	)).filter(e => e.checkVisibility()).length`)
	eval[any](t, `document.activeElement.blur(); document.body.focus(); scrollTo(0, 0)`)
	eval[any](t, `getSelection().collapse(document.body, 0)`)
	seen := map[string]bool{}
	for range controls {
		t.press("Tab", "")
		seen[eval[string](t, `(e => e.outerHTML + ' ' +
			Array.from(document.querySelectorAll('*')).indexOf(e))(document.activeElement)`)] = true
		if got := eval[string](t, `getComputedStyle(document.activeElement).outline`); !strings.Contains(got, "3px") {
			focused := eval[string](t, `document.activeElement.outerHTML`)
			t.Errorf("%s: unexpected focus style of %s: %s", screen, focused, got)
		}
	}
	if len(seen) != controls {
		t.Errorf("%s: Tab reached %d of %d controls", screen, len(seen), controls)
	}
}

// On narrow screens (WCAG 1.4.10: 320 pixels, like 640 at a zoom of 200 %), nothing is cut off.
func TestNarrow(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	ban(t, srv, "2001:db8:1234:5678::/64")
	c := login(t, srv)
	data := upload(t, c, strings.Repeat("long-name-", 12)+".bin", "x")
	defer data.Close()
	for _, lang := range []string{"en", "de", "ar", "ja", "ta"} {
		tab := openPage(t, srv, "now", lang)
		tab.resize(320, 640)
		tab.wait(`innerWidth === 320`)
		for _, screen := range []string{"now", "users", "activity", "problems", "server"} {
			tab.visit(screen)
			tab.wait(`document.querySelector('#screen > div:not([hidden]) tbody tr')`)
			cut := eval[[]string](tab, `Array.from(document.querySelectorAll('body *')).filter(e => {
				const {left, right, width} = e.getBoundingClientRect()
				return e.checkVisibility() && !e.closest('.unseen, .skip, pre, thead, svg') && width > 1 &&
					(right > 321 || left < -1)
			}).map(e => e.outerHTML.slice(0, 200))`)
			if len(cut) > 0 {
				t.Errorf("%s, %s: cut off: %s", lang, screen, cut[0])
			}
		}
	}
}

// picture writes what the page shows to a PNG file.
func (t *tab) picture(file string) {
	t.Helper()
	var shot struct{ Data []byte }
	t.ask("Page.captureScreenshot", object{"format": "png"}, &shot)
	must.OK(t, os.WriteFile(file, shot.Data, 0o644))
}
