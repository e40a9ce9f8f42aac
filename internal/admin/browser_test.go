package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/chromium"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// object holds the parameters of a request.
type object = chromium.Object

// A tab is a page with its own cookies. Its methods fail the test on errors.
type tab struct {
	*testing.T
	page     *chromium.Tab
	expected []string // parts of problems that the test causes on purpose
}

// open opens a page in a browser set to this language. At the end of the test, the console must have no
// unexpected problems.
func open(t *testing.T, url, language string, cookies ...*http.Cookie) *tab {
	t.Helper()
	page, err := browser(t).Open(url, language, cookies...)
	must.OK(t, err)
	tab := &tab{T: t, page: page}
	t.Cleanup(func() {
		tab.check()
		must.OK(t, page.Close())
	})
	return tab
}

func (t *tab) ask(method string, params, into any) {
	t.Helper()
	must.OK(t, t.page.Ask(method, params, into))
}

// expect allows a problem that the test causes on purpose.
func (t *tab) expect(part string) { t.expected = append(t.expected, part) }

// check fails the test if the console has unexpected problems.
func (t *tab) check() {
	for _, problem := range t.page.Problems() {
		if !slices.ContainsFunc(t.expected, func(part string) bool { return strings.Contains(problem, part) }) {
			t.Errorf("unexpected message in the console: %s", problem)
		}
	}
}

// prefer sets the color scheme, light or dark.
func (t *tab) prefer(scheme string) {
	t.Helper()
	must.OK(t, t.page.Prefer(scheme))
}

func (t *tab) resize(width, height int) {
	t.Helper()
	must.OK(t, t.page.Resize(width, height))
}

// eval returns the value of a JavaScript expression.
func eval[T any](t *tab, expression string) (value T) {
	t.Helper()
	result, err := t.page.Evaluate(expression)
	if err == nil && result != nil {
		err = json.Unmarshal(result, &value)
	}
	if err != nil {
		t.Fatalf("%.300s: %v", expression, err)
	}
	return value
}

// wait waits until a condition is true in the page.
func (t *tab) wait(condition string) {
	t.Helper()
	must.OK(t, t.page.Wait(condition))
}

// text returns the text that an element shows.
func (t *tab) text(selector string) string {
	t.Helper()
	return eval[string](t, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// press presses the key with this name. It types text, which may be empty.
func (t *tab) press(key, text string) {
	t.Helper()
	must.OK(t, t.page.Press(key, text))
}

// enter focuses an element and presses Enter, like a user without a mouse.
func (t *tab) enter(selector string) {
	t.Helper()
	eval[any](t, fmt.Sprintf("document.querySelector(%q).focus()", selector))
	t.press("Enter", "\r")
}

// fill types text into a field.
func (t *tab) fill(selector, text string) {
	t.Helper()
	eval[any](t, fmt.Sprintf("document.querySelector(%q).select()", selector))
	t.ask("Input.insertText", object{"text": text}, nil)
}
