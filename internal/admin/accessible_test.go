package admin_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
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

	tab := open(t, address(srv), "en")
	tab.expect("401 (Unauthorized)")
	tab.wait(`!document.querySelector('#login').hidden`)
	check := func(what string) {
		t.Helper()
		for _, scheme := range []string{"light", "dark"} {
			tab.prefer(scheme)
			for _, problem := range eval[[]string](tab, contrast) {
				t.Errorf("%s, %s: %s", what, scheme, problem)
			}
		}
		for _, role := range []string{"button", "link", "textbox", "searchbox", "combobox", "table", "region", "dialog",
			"heading", "columnheader", "rowheader", "group"} {
			for _, n := range tab.nodes(role) {
				if strings.TrimSpace(n.Name.Value) == "" {
					t.Errorf("%s: a %s has no name", what, role)
				}
			}
		}
	}
	check("login")

	tab.fill("#name", name)
	tab.fill("#password", "wrong")
	tab.press("Enter", "\r")
	tab.wait(`document.querySelector('#login-failed').textContent`)
	check("wrong password")
	tab.fill("#password", password)
	tab.press("Enter", "\r")
	tab.wait(row("transfers", "gpj.exe"))
	tab.wait(`document.querySelector('#tenant').value`)
	tab.enter("#choose button")
	tab.wait(row("uploads", "interrupted.bin"))
	tab.wait(row("tenants", "Unreachable"))
	check("state")
	if got := len(tab.nodes("table")); got != 8-2 { // two empty tables, certificates and refusals, are hidden
		t.Errorf("got %d tables", got)
	}
	for _, landmark := range []string{"banner", "main", "search"} {
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
	for _, want := range []string{"Disconnect alice 127.0.0.1:", "Lift ban 192.0.2.7",
		"Delete /alice/interrupted.bin alice"} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("missing button %q among %q", want, names)
		}
	}

	eval[any](tab, `document.body.className = 'stale'`)
	check("stale")
	tab.enter("#sessions button")
	tab.wait(`document.querySelector('#confirm').open`)
	check("question")
	tab.press("Escape", "")
	tab.enter("#sessions button:last-child")
	tab.wait(`document.querySelector('#problems').open`)
	check("problems")
	tab.press("Escape", "")

	// Tab moves the focus to each control, and each shows that it has the focus.
	controls := eval[int](
		tab,
		`Array.from(document.querySelectorAll('a, button, input, select, [tabindex="0"]')).filter(e => e.checkVisibility()).length`)
	eval[any](tab, `document.activeElement.blur(); document.body.focus(); scrollTo(0, 0)`)
	eval[any](tab, `getSelection().collapse(document.body, 0)`)
	seen := map[string]bool{}
	for range controls {
		tab.press("Tab", "")
		seen[eval[string](
			tab,
			`(e => e.outerHTML + ' ' + Array.from(document.querySelectorAll('*')).indexOf(e))(document.activeElement)`)] = true
		if got := eval[string](tab, `getComputedStyle(document.activeElement).outline`); !strings.Contains(got, "3px") {
			t.Errorf("unexpected focus style of %s: %s", eval[string](tab, `document.activeElement.outerHTML`), got)
		}
	}
	if len(seen) != controls {
		t.Errorf("Tab reached %d of %d controls", len(seen), controls)
	}

	tab.resize(320, 640) // WCAG 1.4.10: like 640 pixels at a zoom of 200 %
	tab.wait(`innerWidth === 320`)
	if got := eval[int](tab, `document.scrollingElement.scrollWidth`); got > 320 {
		t.Errorf("the page needs %d pixels, want at most 320", got)
	}
}
