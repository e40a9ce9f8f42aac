// Package chromium drives a headless Chromium with the Chrome DevTools Protocol, like a person who uses a page.
package chromium

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// Patience limits how long callers wait for the browser. It is long because two cores may be busy with other
// tests.
const Patience = time.Minute

// A Browser is a headless Chromium. It is controlled over two pipes with JSON messages that end with a NUL byte.
type Browser struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when Chromium has exited

	mu        sync.Mutex
	last      int
	responses map[int]chan message
	tabs      map[string]*Tab // by protocol session
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

// Start starts Chromium.
func Start() (*Browser, error) {
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
	b := &Browser{in: requests, done: make(chan struct{}), responses: map[int]chan message{}, tabs: map[string]*Tab{}}
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
func (b *Browser) read(out io.Reader, dir string) {
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes(0)
		var a message
		if err == nil {
			err = json.Unmarshal(line[:len(line)-1], &a)
		}
		b.mu.Lock()
		if err != nil {
			b.err = fmt.Errorf("the browser has ended: %w", err)
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

// Close stops Chromium and waits until it has exited.
func (b *Browser) Close() {
	_ = b.in.Close() // Chromium exits when the pipe is closed
	<-b.done
}

// ask sends a request and decodes the response.
func (b *Browser) ask(session, method string, params, into any) error {
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
	case <-time.After(Patience):
		return errors.New(method + ": no response from Chromium")
	}
}

// Object holds the parameters of a request.
type Object = map[string]any

// A Tab is a page with its own cookies.
type Tab struct {
	browser *Browser
	context string
	session string

	problems []string // guarded by browser.mu
}

// Open opens a page in a tab whose language is given in the form of Accept-Language.
func (b *Browser) Open(url, language string, cookies ...*http.Cookie) (*Tab, error) {
	var context struct{ BrowserContextID string }
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	t := &Tab{browser: b}
	if err := b.ask("", "Target.createBrowserContext", nil, &context); err != nil {
		return nil, err
	}
	t.context = context.BrowserContextID
	err := b.ask("", "Target.createTarget", Object{"url": "about:blank", "browserContextId": t.context}, &target)
	if err == nil {
		err = b.ask("", "Target.attachToTarget", Object{"targetId": target.TargetID, "flatten": true}, &attached)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	t.session = attached.SessionID
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	if err := t.load(url, language, cookies); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// load opens a page in a new tab.
func (t *Tab) load(url, language string, cookies []*http.Cookie) error {
	for _, method := range []string{"Page.enable", "Runtime.enable", "Log.enable", "Accessibility.enable"} {
		if err := t.Ask(method, nil, nil); err != nil {
			return err
		}
	}
	var version struct{ UserAgent string }
	err := t.Ask("Browser.getVersion", nil, &version)
	if err == nil {
		err = t.Ask("Emulation.setUserAgentOverride",
			Object{"userAgent": version.UserAgent, "acceptLanguage": language}, nil)
	}
	for _, c := range cookies {
		if err == nil {
			err = t.Ask("Network.setCookie",
				Object{"name": c.Name, "value": c.Value, "url": url, "httpOnly": true}, nil)
		}
	}
	return errors.Join(err, t.Prefer("light"), t.Resize(1280, 900), t.Ask("Page.navigate", Object{"url": url}, nil),
		t.Wait(`document.readyState === 'complete' && location.href !== 'about:blank'`))
}

// Close closes the tab.
func (t *Tab) Close() error {
	t.browser.mu.Lock()
	delete(t.browser.tabs, t.session)
	t.browser.mu.Unlock()
	return t.browser.ask("", "Target.disposeBrowserContext", Object{"browserContextId": t.context}, nil)
}

// Ask sends a request of the protocol for the tab and decodes the response, unless into is nil.
func (t *Tab) Ask(method string, params, into any) error {
	return t.browser.ask(t.session, method, params, into)
}

// recordProblem keeps errors and warnings in the console, such as violations of the content security policy.
func (t *Tab) recordProblem(a message) {
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

// Problems returns the errors and warnings in the console.
func (t *Tab) Problems() []string {
	t.browser.mu.Lock()
	defer t.browser.mu.Unlock()
	return slices.Clone(t.problems)
}

// Prefer sets the color scheme, light or dark.
func (t *Tab) Prefer(scheme string) error {
	features := []Object{{"name": "prefers-color-scheme", "value": scheme},
		{"name": "prefers-reduced-motion", "value": "reduce"}}
	return t.Ask("Emulation.setEmulatedMedia", Object{"features": features}, nil)
}

// Resize sets the size of the window in pixels.
func (t *Tab) Resize(width, height int) error {
	return t.Ask("Emulation.setDeviceMetricsOverride",
		Object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Evaluate returns the value of a JavaScript expression in JSON. If the value is a promise, it waits for it.
func (t *Tab) Evaluate(expression string) (json.RawMessage, error) {
	var response struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	params := Object{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}
	if err := t.Ask("Runtime.evaluate", params, &response); err != nil {
		return nil, err
	}
	if e := response.ExceptionDetails; e != nil {
		return nil, fmt.Errorf("%s %s", e.Text, e.Exception.Description)
	}
	return response.Result.Value, nil
}

// Wait waits until a condition is true in the page. Errors are ignored, because the page may be reloading.
func (t *Tab) Wait(condition string) error {
	for end := time.Now().Add(Patience); ; {
		// This does not slow down the caller: the browser checks again with its next frame.
		result, err := t.Evaluate(
			"!!(" + condition + ") || new Promise(resolve => requestAnimationFrame(() => resolve(false)))")
		if err == nil && string(result) == "true" {
			return nil
		}
		if time.Now().After(end) {
			shown, _ := t.Evaluate("document.body.innerText")
			return fmt.Errorf("condition never became true: %s: %w", condition, cmp.Or(err, errors.New(string(shown))))
		}
	}
}

// Press presses the key with this name. It types text, which may be empty.
func (t *Tab) Press(key, text string) error {
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
	event := Object{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key], "text": text}
	if err := t.Ask("Input.dispatchKeyEvent", event, nil); err != nil {
		return err
	}
	event["type"] = "keyUp"
	return t.Ask("Input.dispatchKeyEvent", event, nil)
}
