package admin_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// patience limits how long a test waits for the browser. It is long because two cores may be busy with other
// tests.
const patience = time.Minute

// A browser is a headless Chromium. Tests control it with the Chrome DevTools Protocol over two pipes, as
// JSON messages that end with a NUL byte.
type browser struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when Chromium has exited

	mu        sync.Mutex
	last      int
	responses map[int]chan message
	tabs      map[string]*tab // by protocol session
	err       error           // why the pipe was closed
}

// A message is a response or an event from Chromium.
type message struct {
	ID        int             `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *struct{ Message string }
}

// startBrowser starts Chromium.
func startBrowser() (*browser, error) {
	in, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	responses, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "babelftp-chromium-")
	if err != nil {
		return nil, err
	}
	b := &browser{in: requests, done: make(chan struct{}), responses: map[int]chan message{}, tabs: map[string]*tab{}}
	b.cmd = exec.Command(
		"chromium", "--headless", "--remote-debugging-pipe", "--user-data-dir="+dir, "--no-first-run", "--disable-gpu",
		"--no-sandbox",            // the sandbox does not work as root
		"--disable-dev-shm-usage", // containers have a small /dev/shm
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
		"--hide-scrollbars", "--disable-lcd-text")
	b.cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	b.cmd.ExtraFiles = []*os.File{in, out} // file descriptors 3 and 4
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	_, _ = in.Close(), out.Close()
	go b.read(responses, dir)
	return b, nil
}

// read dispatches messages from Chromium until it exits.
func (b *browser) read(out io.Reader, dir string) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes(0)
		var a message
		if err == nil {
			err = json.Unmarshal(line[:len(line)-1], &a)
		}
		b.mu.Lock()
		if err != nil {
			b.err = fmt.Errorf("Chromium has ended: %w", err)
			for _, c := range b.responses {
				close(c)
			}
			b.mu.Unlock()
			break
		}
		if c, ok := b.responses[a.ID]; ok {
			delete(b.responses, a.ID)
			c <- a
		}
		if t := b.tabs[a.SessionID]; t != nil {
			t.recordProblem(a)
		}
		b.mu.Unlock()
	}
	_ = b.cmd.Wait()
	_ = os.RemoveAll(dir)
	close(b.done)
}

// close stops Chromium and waits until it has exited.
func (b *browser) close() {
	_ = b.in.Close() // Chromium exits when the pipe is closed
	<-b.done
}

// ask sends a request and decodes the response.
func (b *browser) ask(session, method string, params, into any) error {
	got := make(chan message, 1)
	b.mu.Lock()
	if b.err != nil {
		b.mu.Unlock()
		return b.err
	}
	b.last++
	b.responses[b.last] = got
	request, err := json.Marshal(struct {
		ID        int    `json:"id"`
		SessionID string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
	}{b.last, session, method, params})
	if err == nil {
		_, err = b.in.Write(append(request, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case a, ok := <-got:
		switch {
		case !ok:
			return b.err
		case a.Error != nil:
			return errors.New(method + ": " + a.Error.Message)
		case into == nil:
			return nil
		}
		return json.Unmarshal(a.Result, into)
	case <-time.After(patience):
		return errors.New(method + ": no response from Chromium")
	}
}

// object holds the parameters of a request.
type object = map[string]any

// A tab is a page with its own cookies. Its methods fail the test on errors.
type tab struct {
	*testing.T
	browser *browser
	session string

	problems []string // errors and warnings in the console, guarded by browser.mu
	expected []string // parts of problems that the test causes on purpose
}

// open opens a page in a browser set to this language. At the end of the test, the console must have no
// unexpected problems.
func open(t *testing.T, url, language string, cookies ...*http.Cookie) *tab {
	t.Helper()
	b := chromium(t)
	var context struct{ BrowserContextID string }
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	tab := &tab{T: t, browser: b}
	tab.must(b.ask("", "Target.createBrowserContext", nil, &context))
	t.Cleanup(func() {
		_ = b.ask("", "Target.disposeBrowserContext", object{"browserContextId": context.BrowserContextID}, nil)
	})
	tab.must(
		b.ask(
			"", "Target.createTarget", object{"url": "about:blank", "browserContextId": context.BrowserContextID},
			&target))
	tab.must(b.ask("", "Target.attachToTarget", object{"targetId": target.TargetID, "flatten": true}, &attached))
	tab.session = attached.SessionID
	b.mu.Lock()
	b.tabs[tab.session] = tab
	b.mu.Unlock()
	t.Cleanup(tab.check)
	for _, method := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Accessibility.enable"} {
		tab.ask(method, nil, nil)
	}
	var version struct{ UserAgent string }
	tab.ask("Browser.getVersion", nil, &version)
	tab.ask("Emulation.setUserAgentOverride", object{"userAgent": version.UserAgent, "acceptLanguage": language}, nil)
	tab.prefer("light")
	tab.resize(1280, 900)
	for _, c := range cookies {
		tab.ask("Network.setCookie", object{"name": c.Name, "value": c.Value, "url": url, "httpOnly": true}, nil)
	}
	tab.ask("Page.navigate", object{"url": url}, nil)
	tab.wait(`document.readyState === 'complete' && location.href !== 'about:blank'`)
	return tab
}

func (t *tab) must(err error) {
	t.Helper()
	must.OK(t, err)
}

func (t *tab) ask(method string, params, into any) {
	t.Helper()
	t.must(t.browser.ask(t.session, method, params, into))
}

// recordProblem keeps errors and warnings in the console, such as violations of the content security policy.
func (t *tab) recordProblem(a message) {
	switch a.Method {
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		t.problems = append(t.problems, string(a.Params))
	case "Log.entryAdded":
		var log struct{ Entry struct{ Level string } }
		if err := json.Unmarshal(a.Params, &log); err != nil || log.Entry.Level != "verbose" { // no advice
			t.problems = append(t.problems, string(a.Params))
		}
	}
}

// expect allows a problem that the test causes on purpose.
func (t *tab) expect(part string) { t.expected = append(t.expected, part) }

// check fails the test if the console has unexpected problems.
func (t *tab) check() {
	t.browser.mu.Lock()
	defer t.browser.mu.Unlock()
	delete(t.browser.tabs, t.session)
problems:
	for _, problem := range t.problems {
		for _, part := range t.expected {
			if strings.Contains(problem, part) {
				continue problems
			}
		}
		t.Errorf("unexpected message in the console: %s", problem)
	}
}

// prefer sets the color scheme, light or dark.
func (t *tab) prefer(scheme string) {
	t.ask(
		"Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme},
			{"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

func (t *tab) resize(width, height int) {
	t.ask(
		"Emulation.setDeviceMetricsOverride",
		object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// evaluate returns the value of a JavaScript expression in JSON. If the value is a promise, it waits for it.
func (t *tab) evaluate(expression string) (json.RawMessage, error) {
	var response struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	params := object{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}
	if err := t.browser.ask(t.session, "Runtime.evaluate", params, &response); err != nil {
		return nil, err
	}
	if e := response.ExceptionDetails; e != nil {
		return nil, fmt.Errorf("%s %s", e.Text, e.Exception.Description)
	}
	return response.Result.Value, nil
}

// eval returns the value of a JavaScript expression.
func eval[T any](t *tab, expression string) (value T) {
	t.Helper()
	result, err := t.evaluate(expression)
	if err == nil && result != nil {
		err = json.Unmarshal(result, &value)
	}
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// wait waits until a condition is true in the page. Errors are ignored, because the page may be reloading.
func (t *tab) wait(condition string) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		// This does not slow down the test: the browser checks again with its next frame.
		result, err := t.evaluate(
			"!!(" + condition + ") || new Promise(resolve => requestAnimationFrame(() => resolve(false)))")
		if err == nil && string(result) == "true" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("condition never became true: %s (%v)\n%s", condition, err, eval[string](t, "document.body.innerText"))
		}
	}
}

// text returns the text that an element shows.
func (t *tab) text(selector string) string {
	t.Helper()
	return eval[string](t, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// press presses the key with this name. It types text, which may be empty.
func (t *tab) press(key, text string) {
	t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
	event := object{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key], "text": text}
	t.ask("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	t.ask("Input.dispatchKeyEvent", event, nil)
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
