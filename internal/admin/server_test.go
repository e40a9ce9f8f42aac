package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

const (
	name     = "ann"
	password = "correct-horse-battery-staple"
)

// start starts a server with an admin listener.
func start(t *testing.T, change func(*config.Config)) *server.Server {
	t.Helper()
	browser(t)
	return startOn(t, s3test.Start(t, "sim-aws"), change)
}

// startOn starts a server that uses this S3 server.
func startOn(t *testing.T, s *s3test.Server, change func(*config.Config)) *server.Server {
	t.Helper()
	cfg := servicetest.NewConfig(t, s)
	hash, err := passwordhash.New(password)
	must.OK(t, err)
	cfg.Admin.Listen, cfg.Admin.Users = "127.0.0.1:0", value.NewSecret(name+":"+hash)
	change(cfg)
	must.OK(t, cfg.Validate())
	tail := admin.NewLogTail()
	srv, err := server.New(t.Context(), cfg, server.Options{AWS: s.AWSConfig(), Version: "1.2.3", Tail: tail,
		Logger: slog.New(slog.NewTextHandler(tail, nil))})
	must.OK(t, err)
	ftptest.Serve(t, srv)
	return srv
}

func address(srv *server.Server) string { return "http://" + srv.AdminAddr().String() }

// live is true once the page shows a state and follows its changes.
const live = `document.body.dataset.connection === 'live' && !document.body.classList.contains('empty')`

// openPage opens a screen of the page as a logged-in administrator and waits until it shows a state.
func openPage(t *testing.T, srv *server.Server, screen, language string) *tab {
	t.Helper()
	tab := openLoggedIn(t, address(srv), screen, language)
	tab.wait(live)
	return tab
}

// openLoggedIn opens a screen of the page of a server with the cookie of an administrator.
func openLoggedIn(t *testing.T, base, screen, language string) *tab {
	t.Helper()
	response, err := http.PostForm(base+"/login", url.Values{"user": {name}, "password": {password}})
	must.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Fatalf("login: %s", response.Status)
	}
	return open(t, base+"/"+screen, language, response.Cookies()...)
}

// login starts a session of the user alice.
func login(t *testing.T, srv *server.Server) *ftptest.Client {
	t.Helper()
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice@acme", servicetest.Password)
	return c
}

// upload starts an upload and sends its first bytes.
func upload(t *testing.T, c *ftptest.Client, name, content string) net.Conn {
	t.Helper()
	data := c.Data()
	c.Command(150, "STOR "+name)
	must.Write(t, data, content)
	return data
}

// interrupt leaves an interrupted upload that can be resumed.
func interrupt(t *testing.T, srv *server.Server, c *ftptest.Client, name string) {
	t.Helper()
	const bytes = 6 << 20
	c.Command(200, "TYPE I")
	data := upload(t, c, name, strings.Repeat("x", bytes))
	for !strings.Contains(ask(t, srv, http.MethodGet, "transfers"), fmt.Sprintf(`"bytes":%d,`, bytes)) {
	}
	_ = data.(*net.TCPConn).SetLinger(0) // so that Close sends a reset
	_ = data.Close()
	c.Reply(426)
	for !strings.Contains(ask(t, srv, http.MethodGet, "uploads?tenant=acme"), `"state":"interrupted"`) {
	}
}

// ban bans an address.
func ban(t *testing.T, srv *server.Server, name string) {
	t.Helper()
	ask(t, srv, http.MethodPut, "bans?name="+name)
}

// ask calls the API like a script.
func ask(t *testing.T, srv *server.Server, method, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address(srv)+"/api/v1/"+path, nil)
	must.OK(t, err)
	request.SetBasicAuth(name, password)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v: %s", method, path, response.Status, err, body)
	}
	return string(body)
}

// choose opens the menu of the row with this text and chooses an action, like a user without a mouse.
func (t *tab) choose(table, text, action string) {
	t.Helper()
	more := row(table, text) + `?.querySelector('.more')`
	t.wait(more)
	eval[any](t, more+`.focus()`)
	t.press("Enter", "\r")
	item := fmt.Sprintf(`document.querySelector('.menu [data-text="%s"]')`, action)
	t.wait(item)
	eval[any](t, item+`.focus()`)
	t.press("Enter", "\r")
}

// dialog waits for a dialog and returns its text.
func (t *tab) dialog() string {
	t.Helper()
	t.wait(`document.querySelector('dialog[open] h2')?.textContent`)
	return t.text("dialog[open]")
}

// confirm presses the button of the open dialog that does not cancel.
func (t *tab) confirm() {
	t.Helper()
	t.enter("dialog[open] .buttons button:last-child")
}

// result waits for the result of an action, and returns it.
func (t *tab) result() string {
	t.Helper()
	t.wait(`document.querySelector('#result').textContent`)
	return eval[string](t, `document.querySelector('#result').textContent`)
}

// row returns a JavaScript expression for the first row of a table that contains text.
func row(table, text string) string {
	return fmt.Sprintf(
		"Array.from(document.querySelector('#%s').tBodies[0].rows).find(row => row.textContent.includes(%q))", table,
		text)
}

// cell returns a JavaScript expression for the text of a cell in that row.
func cell(table, text, column string) string {
	return fmt.Sprintf("%s?.querySelector('.%s').textContent", row(table, text), column)
}

func TestLogin(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	tab := open(t, address(srv)+"/problems?x=1", "fr")
	tab.expect("401 (Unauthorized)")
	tab.wait(`document.activeElement.id === 'name'`)
	tab.press("Escape", "") // does not close the login
	tab.fill("#name", name)
	tab.fill("#password", "wrong")
	tab.press("Enter", "\r")
	tab.wait(`document.querySelector('#login-failed').textContent === 'Le nom ou le mot de passe est incorrect.' &&
		document.activeElement.id === 'password'`)
	tab.fill("#password", password)
	tab.press("Enter", "\r")
	tab.wait(live + ` && !document.querySelector('#login').open`)
	if got := tab.text("#connection"); got != "Connecté. La page se met à jour d’elle-même." {
		t.Errorf("got connection state %q", got)
	}
	if got := eval[string](tab, `location.pathname + location.search`); got != "/problems?x=1" {
		t.Errorf("the login led to %s", got)
	}
	if got := tab.text(".me"); !strings.HasPrefix(got, name) {
		t.Errorf("got administrator %q", got)
	}
	tab.enter("#log-out")
	tab.wait(`document.querySelector('#login').open && document.body.classList.contains('empty') &&
		document.activeElement.id === 'name'`)
}

// A login that expires while the administrator types is repeated on the same page. Nothing typed is lost, and the
// request is sent after the login.
func TestExpiredLogin(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	tab := openPage(t, srv, "problems", "en")
	tab.expect("401 (Unauthorized)")
	tab.fill("#ban-name", "192.0.2.7")
	tab.ask("Network.clearBrowserCookies", nil, nil)
	tab.enter("#ban-form button")
	tab.wait(`document.querySelector('#login').open && document.activeElement.id === 'name'`)
	typed := eval[string](tab, `document.querySelector('#ban-name').value`)
	if got := tab.text("#login-again"); got == "" || typed != "192.0.2.7" {
		t.Errorf("the login says %q, and %q was typed", got, typed)
	}
	tab.fill("#name", name)
	tab.fill("#password", password)
	tab.press("Enter", "\r")
	tab.wait(row("bans", "192.0.2.7"))
	tab.wait(`!document.querySelector('#login').open && document.querySelector('#ban-name').value === ''`)
}

func TestLanguagesOfTheState(t *testing.T) {
	srv := start(t, func(cfg *config.Config) {
		cfg.Tenants["acme"].DefaultLanguage = language.Japanese
		cfg.Tenants["acme"].Quota = 3 << 19
		cfg.Tenants["acme"].Limits.User.Sessions = 1
		missing := *cfg.Tenants["acme"]
		missing.Hosts, missing.Bucket, missing.Quota = []string{"ftp.umbrella.example"}, "missing", 0
		cfg.Tenants["umbrella"] = &missing
	})
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login("alice@acme", servicetest.Password)
	c.Store("f", strings.Repeat("x", 600<<10))
	ban(t, srv, "203.0.113.7")
	second := ftptest.Dial(t, srv.Addr().String())
	second.Command(331, "USER alice@acme")
	second.Command(421, "PASS "+servicetest.Password)
	for _, test := range []struct{ accept, lang, dir, session, quota, storage, upload, ok, banned, refused string }{
		{"fr-CA,en", "fr", "ltr", "japonais", "600\u00a0Kio sur 1,5\u00a0Mio", "Injoignable",
			"Envoi", "Succès", "Un administrateur", "Utilisateur – Sessions (user.sessions)"},
		{"ar", "ar", "rtl", "اليابانية", "600 كيبيبايت من 1.5 ميبيبايت", "يتعذر الوصول إليه",
			"رفع", "نجح", "أحد المسؤولين", "المستخدم – الجلسات (user.sessions)"},
		{"ja", "ja", "ltr", "日本語", "600 KiB / 1.5 MiB", "接続不可",
			"アップロード", "成功", "管理者", "ユーザー – セッション (user.sessions)"},
	} {
		t.Run(test.lang, func(t *testing.T) {
			tab := openPage(t, srv, "now", test.accept)
			got := eval[string](tab, `document.documentElement.lang + ' ' + getComputedStyle(document.body).direction`)
			if got != test.lang+" "+test.dir {
				t.Errorf("unexpected page %s", got)
			}
			shows := func(screen, table, row, column, want string) {
				t.Helper()
				tab.visit(screen)
				tab.wait(fmt.Sprintf("%s === %q", cell(table, row, column), want))
			}
			shows("now", "sessions", "alice", "language", test.session)
			shows("server", "tenants", "acme", "quota", test.quota)
			tab.wait(fmt.Sprintf("%s.startsWith(%q)", cell("tenants", "umbrella", "storage"), test.storage))
			reason := row("tenants", "umbrella") + ".querySelector('.storage > :lang(en)')"
			if got := eval[string](tab, reason+".textContent"); !strings.Contains(got, "does not exist") {
				t.Errorf("got English reason %q", got)
			}
			shows("activity", "activity", test.upload, "event", test.upload)
			shows("activity", "activity", test.upload, "outcome", test.ok)
			shows("problems", "bans", test.banned, "reason", test.banned)
			shows("problems", "refusals", test.refused, "limit", test.refused)

			tab.visit("now")
			tab.wait(`document.querySelector('#uploads-tenant option[value=umbrella]')`)
			eval[any](tab, `document.querySelector('#uploads-tenant').value = 'umbrella'`)
			tab.enter("#show-uploads")
			tab.wait(`document.querySelector('#result > :lang(en)')?.textContent.includes('does not exist')`)
			refuses := load(t).Localizer(language.Make(test.lang)).Text("doctor-storage-refuses")
			if got := tab.text("#result"); !strings.HasPrefix(got, refuses+" ") {
				t.Errorf("unexpected text for a missing bucket: %q", got)
			}
		})
	}
}

// visit opens a screen by its link in the navigation.
func (t *tab) visit(screen string) {
	t.Helper()
	t.enter(fmt.Sprintf("nav a[href=%s]", screen))
	t.wait(fmt.Sprintf(`location.pathname === '/%s' &&
		document.querySelector('nav [aria-current]').getAttribute('href') === %q`, screen, screen))
}

// The reader chooses a language in the menu, and the page changes at once: without a request for a page, at the same
// address, and with everything that was typed.
func TestLanguageMenu(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	tab := openPage(t, srv, "activity?user=alice", "fr")
	tab.fill("#find-path", "/ملف")
	eval[any](tab, `window.kept = true`)
	for _, lang := range []string{"he", "ja", "en"} {
		eval[any](tab, fmt.Sprintf(`{
			const menu = document.querySelector('#lang')
			menu.value = %q
			menu.dispatchEvent(new Event('change'))
		}`, lang))
		dir := map[bool]string{true: "rtl", false: "ltr"}[lang == "he"]
		text := load(t).Localizer(language.Make(lang)).Text
		tab.wait(fmt.Sprintf(`document.documentElement.lang === %q && document.documentElement.dir === %q &&
			document.querySelector('#title').textContent === %q && document.title.startsWith(%q) &&
			document.querySelector('#activity thead th').textContent === %q`,
			lang, dir, text("page-activity"), text("page-activity"), text("page-time")))
		if got := eval[string](tab, `location.pathname + location.search + window.kept +
			document.querySelector('#find-path').value`); got != "/activity?user=alicetrue/ملف" {
			t.Errorf("%s: the page has become %s", lang, got)
		}
	}
	tab.ask("Page.reload", nil, nil)
	tab.wait(live + ` && document.documentElement.lang === 'en'`)
}

// The back button returns to the screens before, and to what was searched there.
func TestNavigation(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	tab := openPage(t, srv, "", "en")
	tab.visit("activity")
	tab.fill("#find-user", "bob")
	tab.press("Enter", "\r")
	tab.wait(`location.search === '?user=bob'`)
	tab.visit("server")
	if got := eval[string](tab, `document.activeElement.id + ' ' + document.title`); got != "title Server – babelftp" {
		t.Errorf("got focus and title %q", got)
	}
	eval[any](tab, `history.back()`)
	tab.wait(`location.pathname === '/activity' && document.querySelector('#find-user').value === 'bob' &&
		document.querySelector('#title').textContent === 'Activity' && !document.querySelector('#tenants').checkVisibility()`)
	eval[any](tab, `history.back()`)
	tab.wait(`document.querySelector('#title').textContent === 'Now' &&
		document.querySelector('#sessions-heading').checkVisibility()`)
}

// Rows change in place while a transfer runs, so that focus, selection and scroll position are kept.
func TestTransfer(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 4194304")
	data := upload(t, c, "été.bin", strings.Repeat("x", 1<<20))
	tab := openPage(t, srv, "now", "en")
	tab.resize(800, 400)
	tab.wait(cell("transfers", "été.bin", "progress") + ` === '1 MiB of 4 MiB (25%)'`)
	if got := eval[string](tab, cell("transfers", "été.bin", "direction")); got != "Upload" {
		t.Errorf("got direction %q", got)
	}
	eval[any](tab, `{
		const session = `+row("sessions", "alice")+`
		session.querySelector('button').focus()
		getSelection().selectAllChildren(session.querySelector('.address'))
		scrollTo(0, 100)
	}`)
	keeps := `JSON.stringify([document.activeElement.id, getSelection().toString(), scrollY > 0])`
	before := eval[string](tab, keeps)
	eval[any](tab, `window.kept = [`+row("transfers", "été.bin")+`, `+row("sessions", "alice")+`]`)
	must.Write(t, data, strings.Repeat("x", 2<<20))
	tab.wait(cell("transfers", "été.bin", "progress") + ` === '3 MiB of 4 MiB (75%)'`)
	if got := eval[string](tab, keeps); got != before || !strings.Contains(before, "127.0.0.1") ||
		!strings.Contains(before, "menu") {
		t.Errorf("got focus, selection and position %s, want %s", got, before)
	}
	if !eval[bool](tab, `kept[0] === `+row("transfers", "été.bin")+` && kept[1] === `+row("sessions", "alice")) {
		t.Error("the rows were replaced")
	}
	must.Write(t, data, strings.Repeat("x", 1<<20))
	_ = data.Close()
	c.Reply(226)
	tab.wait(`!(` + row("transfers", "été.bin") + `) && !document.querySelector('#transfers-empty').hidden`)
}

// In right-to-left text, the parts of a progress are ordered from right to left, each size keeps its number before
// its unit, and a pathname begins with its slash at the left.
func TestRightToLeft(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 4194304")
	data := upload(t, c, "ملف", strings.Repeat("x", 1<<20))
	defer data.Close()
	for _, lang := range []string{"he", "fa", "ur"} {
		tab := openPage(t, srv, "now", lang)
		sizes := row("transfers", "ملف") + `?.querySelector('.progress').querySelectorAll('bdi bdi')`
		tab.wait(sizes + `.length === 2`)
		eval[any](tab, `window.place = (text, character) => {
			const range = document.createRange()
			const at = text.textContent.search(character)
			range.setStart(text, at)
			range.setEnd(text, at + 1)
			return range.getBoundingClientRect().left
		}`)
		// where the numbers and the units of both sizes are shown, for example in "1 MiB of 4 MiB"
		places := eval[[]float64](
			tab, `Array.from(`+sizes+`, size => [/\p{N}/u, /M/].map(c => place(size.firstChild, c))).flat()`)
		if len(places) != 4 || places[2] >= places[3] || places[3] >= places[0] || places[0] >= places[1] {
			t.Errorf("%s: numbers and units stand at %v: %q", lang, places, tab.text("#transfers td.progress"))
		}
		places = eval[[]float64](tab, `[/\//, /م/].map(c =>
			place(`+row("transfers", "ملف")+`.querySelector('.path bdi').firstChild, c))`)
		if len(places) != 2 || places[0] >= places[1] {
			t.Errorf("%s: the slash and the name stand at %v", lang, places)
		}
		// positions of the words for "per second" and of the unit before them
		places = eval[[]float64](tab, `(async () => {
			const {speed, use} = await import('./static/format.js')
			use(JSON.parse(document.querySelector('#texts').textContent))
			const shown = speed(369_000)
			document.querySelector('#result').replaceChildren(shown)
			return [place(shown.lastChild, /\p{L}/u), place(shown.firstChild.firstChild, /B/)]
		})()`)
		if len(places) != 2 || places[0] >= places[1] {
			t.Errorf("%s: second and unit stand at %v: %q", lang, places, tab.text("#result"))
		}
	}
}

// An administrator ends a session with the keyboard only. Escape and the first button of the dialog cancel.
func TestDisconnect(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	tab := openPage(t, srv, "now", "en")
	press := func() {
		t.Helper()
		tab.choose("sessions", "alice", "disconnect")
		tab.wait(`document.querySelector('dialog[open] [autofocus]') === document.activeElement`)
	}
	press()
	got := tab.dialog()
	if !strings.Contains(got, "Disconnect this session?") || !strings.Contains(got, "alice 127.0.0.1:") {
		t.Errorf("got question %q", got)
	}
	back := `!document.querySelector('dialog[open]') &&
		document.activeElement === document.querySelector('#sessions .more')`
	tab.press("Escape", "")
	tab.wait(back)
	press()
	tab.press("Enter", "\r")
	tab.wait(back)
	c.Command(257, "PWD")
	press()
	tab.press("Tab", "")
	tab.wait(`document.activeElement.value === 'confirm'`)
	tab.press("Enter", "\r")
	c.Reply(421)
	if got := tab.result(); got != "The session was disconnected." {
		t.Errorf("got result %q", got)
	}
	tab.wait(`!document.querySelector('#sessions .more')`)
	tab.wait(`['title', 'sessions-heading'].includes(document.activeElement.id)`)
}

// The page shows why a client has problems, in its own language.
func TestFindProblems(t *testing.T) {
	srv := start(t, func(cfg *config.Config) { cfg.DataTimeout = time.Second })
	c := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.3", srv.Addr().String()))
	c.Reply(220)
	c.Login("alice@acme", servicetest.Password)
	for range 2 {
		c.Command(229, "EPSV")
		c.Command(150, "LIST")
		c.Reply(425)
	}
	fine := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.4", srv.Addr().String()))
	fine.Reply(220)
	fine.Login("alice@acme", servicetest.Password)
	refused := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.5", srv.Addr().String()))
	refused.Reply(220)
	refused.Command(331, "USER bob@acme")
	refused.Command(530, "PASS wrong")
	for _, test := range []struct{ lang, dir string }{{"en", "ltr"}, {"ar", "rtl"}} {
		t.Run(test.lang, func(t *testing.T) {
			tab := openPage(t, srv, "now", test.lang)
			text := load(t).Localizer(language.Make(test.lang)).Text
			cause, _, _ := strings.Cut(text("doctor-ports-unreachable", "127.0.0.3", "PORTS"), "PORTS")
			find := func(table, text, heading string) string {
				t.Helper()
				tab.choose(table, text, "find-problems")
				tab.wait(`document.querySelector('dialog[open] #found')`)
				if got := tab.text("dialog[open] h2"); !strings.HasPrefix(got, heading) {
					t.Errorf("got dialog about %q", got)
				}
				return tab.text("#found")
			}
			leave := func() {
				t.Helper()
				tab.enter("dialog[open] button")
				tab.wait(`!document.querySelector('dialog[open]') && document.activeElement.classList.contains('more')`)
			}
			found := find("sessions", "127.0.0.3", "alice 127.0.0.3:")
			if !strings.HasPrefix(found, "alice: "+cause) || !strings.Contains(found, text("doctor-do-open-ports")) ||
				!strings.Contains(found, "babelftp.yaml: passive.ports") ||
				!strings.Contains(found, "the client did not connect to port") || eval[int](tab,
				`document.querySelectorAll('#found article').length`) != 1 {
				t.Errorf("found %q", found)
			}
			parts := eval[[]string](tab, `Array.from(document.querySelectorAll('#found h3 bdi'), e => e.textContent)`)
			if len(parts) != 4 || parts[0] != "alice" || parts[1] != "127.0.0.3" || !strings.Contains(parts[3], "2") {
				t.Errorf("got isolated text %q", parts)
			}
			if got := eval[string](tab, `getComputedStyle(document.querySelector('#found')).direction + ' ' +
				getComputedStyle(document.querySelector('#found li bdi')).direction`); got != test.dir+" ltr" {
				t.Errorf("got directions %s", got)
			}
			leave()
			if found := find("sessions", "127.0.0.4", "alice 127.0.0.4:"); found != text(doctor.NothingFound) {
				t.Errorf("found %q", found)
			}
			leave()
			tab.visit("activity")
			if found := find("activity", "127.0.0.5", ""); !strings.HasPrefix(found, text(i18n.LoginFailed)) {
				t.Errorf("found %q", found)
			}
			leave()
		})
	}
}

// The page shows why there are no findings.
func TestNoFindings(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	login(t, srv)
	tab := openPage(t, srv, "now", "fr")
	tab.wait(row("sessions", "alice"))
	eval[any](tab, `{ // simulates a session of another replica
		const fetched = fetch
		fetch = (path, options) => fetched(path.replace('127.0.0.1', '192.0.2.7'), options)
	}`)
	tab.expect("404 (Not Found)")
	tab.choose("sessions", "alice", "find-problems")
	tab.wait(`document.querySelector('dialog[open] #found')`)
	if got := tab.text("#found :lang(en)"); !strings.HasPrefix(got, "this replica has logged no line about 192.0.2.7") {
		t.Errorf("found %q", got)
	}
}

// Names chosen by clients are shown as text and cannot reorder the text around them.
func TestNamesOfClients(t *testing.T) {
	srv := start(t, func(cfg *config.Config) {
		cfg.Tenants["acme"].Compatibility.Charset = servicetest.Encoding(t, "raw")
	})
	c := login(t, srv)
	name := "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egpj.exe\u200b\x01"
	data := upload(t, c, name, "x")
	defer data.Close()
	tab := openPage(t, srv, "now", "ar")
	const want = "/alice/<script>alert(1)</script><img src=x onerror=alert(2)>U+202Egpj.exeU+200BU+0001"
	tab.wait(fmt.Sprintf("%s === %q", cell("transfers", "gpj.exe", "path"), want))
	got := eval[[]string](
		tab, `Array.from(`+row("transfers", "gpj.exe")+
			`.querySelector('.path').querySelectorAll('*'), e => e.localName + ' ' + getComputedStyle(e).unicodeBidi)`)
	if fmt.Sprint(got) != "[bdi isolate span normal span normal span normal]" {
		t.Errorf("got path elements %q", got)
	}
}

// An administrator bans the address of a session for an hour, and lifts the ban.
func TestBan(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.3", srv.Addr().String()))
	c.Reply(220)
	c.Login("alice@acme", servicetest.Password)
	tab := openPage(t, srv, "now", "en")
	tab.choose("sessions", "127.0.0.3", "ban-address")
	if got := tab.dialog(); !strings.Contains(got, "127.0.0.3") {
		t.Errorf("got question %q", got)
	}
	eval[any](tab, `document.querySelector('#ban-time').value = '1h'`)
	tab.confirm()
	c.Reply(421)
	if got := tab.result(); got != "The ban was added." {
		t.Errorf("got result %q", got)
	}
	tab.visit("problems")
	tab.choose("bans", "127.0.0.3", "unban")
	if got := tab.dialog(); !strings.Contains(got, "127.0.0.3") {
		t.Errorf("got question %q", got)
	}
	tab.confirm()
	tab.wait(`document.querySelector('#result').textContent === 'The ban was lifted.'`)
	tab.wait(`!(` + row("bans", "127.0.0.3") + `)`)

	// The audit log leads to the user.
	tab.visit("activity")
	tab.choose("activity", "127.0.0.3:", "ban-user")
	if got := tab.dialog(); !strings.Contains(got, "alice@acme") {
		t.Errorf("got question %q", got)
	}
	tab.confirm()
	tab.visit("problems")
	tab.wait(row("bans", "alice@acme"))
}

// The log shows everything about one client for ten minutes, until an administrator ends this.
func TestDebug(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	login(t, srv)
	tab := openPage(t, srv, "now", "en")
	tab.choose("sessions", "127.0.0.1", "debug")
	tab.result()
	tab.visit("problems")
	tab.wait(row("debug", "127.0.0.1"))
	tab.enter(`[data-text="event-debug-off"]`)
	tab.wait(`!document.querySelector('#debug').checkVisibility()`)
	if got := ask(t, srv, http.MethodGet, "debug"); strings.Contains(got, "127.0.0.1") {
		t.Errorf("got rules %s", got)
	}
}

// A table shows a limited number of rows, and says how many there are.
func TestManyBans(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	const many = 250
	for i := range many {
		ban(t, srv, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
	}
	tab := openPage(t, srv, "problems", "en")
	tab.wait(`document.querySelector('#bans').tBodies[0].rows.length === 200 &&
		document.querySelector('#bans-shown').textContent === '200 of 250'`)
}

// The filter finds sessions among all, not only among those that the table shows.
func TestFilter(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	const many = 205
	for i := range many {
		c := ftptest.New(t, ftptest.DialFrom(t, fmt.Sprintf("127.0.1.%d", i+1), srv.Addr().String()))
		c.Reply(220)
		c.Login("alice@acme", servicetest.Password)
	}
	tab := openPage(t, srv, "now", "en")
	tab.wait(`document.querySelector('#sessions-shown').textContent === '200 of 205'`)
	shown := eval[string](tab, `document.querySelector('#sessions').tBodies[0].textContent`)
	hidden := 1
	for strings.Contains(shown, fmt.Sprintf("127.0.1.%d:", hidden)) {
		hidden++
	}
	tab.fill("#words", fmt.Sprintf("alice 127.0.1.%d:", hidden))
	tab.wait(`document.querySelector('#sessions').tBodies[0].rows.length === 1 &&
		document.querySelector('#sessions-shown').textContent === '1'`)
}

// An interrupted upload can be deleted.
func TestInterruptedUpload(t *testing.T) {
	srv := start(t, func(cfg *config.Config) { cfg.Tenants["acme"].Resume = config.KeepInterrupted })
	c := login(t, srv)
	interrupt(t, srv, c, "report.csv")
	tab := openPage(t, srv, "now", "en")
	tab.wait(`document.querySelector('#uploads-tenant').value === 'acme'`)
	tab.enter("#show-uploads")
	tab.choose("uploads", "/alice/report.csv", "delete")
	tab.dialog()
	tab.confirm()
	tab.wait(`document.querySelector('#result').textContent === 'The interrupted upload was deleted.' &&
		!document.querySelector('#uploads').tBodies[0].rows.length`)
}

// The page shows errors of the API in its own language, with the reason in English.
func TestRefusals(t *testing.T) {
	browser(t)
	for _, lang := range []string{"ar", "fr"} {
		t.Run(lang, func(t *testing.T) { testRefusals(t, lang) })
	}
}

func testRefusals(t *testing.T, lang string) {
	proxy := s3test.StartProxy(t, s3test.Start(t, "sim-aws"))
	audit := filepath.Join(t.TempDir(), "audit.log")
	srv := startOn(t, proxy.Server(), func(cfg *config.Config) {
		cfg.Tenants["acme"].Resume = config.KeepInterrupted
		cfg.Audit.File, cfg.Audit.Required = audit, true
	})
	c := login(t, srv)
	interrupt(t, srv, c, "gone.bin")
	tab := openPage(t, srv, "now", lang)
	for _, status := range []string{"(Not Found)", "(Conflict)", "(Bad Gateway)", "(Service Unavailable)"} {
		tab.expect(status)
	}
	text := load(t).Localizer(language.Make(lang)).Text
	// refused chooses an action of a row, calls the function, confirms, and checks the error.
	refused := func(table, row, action string, meanwhile func(), id i18n.ID, reason string) {
		t.Helper()
		tab.visit(map[bool]string{true: "problems", false: "now"}[table == "bans"])
		if table == "uploads" {
			tab.wait(`document.querySelector('#uploads-tenant').value`)
			tab.enter("#show-uploads")
		}
		tab.choose(table, row, action)
		tab.dialog()
		meanwhile()
		eval[any](tab, `document.querySelector('#result').replaceChildren()`)
		tab.confirm()
		tab.result()
		shown := eval[[]string](tab, `Array.from(document.querySelector('#result').childNodes,
			node => (node.lang ? node.localName + ' in ' + node.lang + ': ' : '') + node.textContent)`)
		got, want := strings.Join(shown, ""), text(id)
		if reason != "" {
			want += " bdi in en: " + reason
		}
		if !strings.HasPrefix(got, want) || reason == "" && got != want {
			t.Errorf("got text %q, want %q", got, want)
		}
	}

	uploads := func() (ids []string) {
		var all admin.Uploads
		must.OK(t, json.Unmarshal([]byte(ask(t, srv, http.MethodGet, "uploads?tenant=acme")), &all))
		for _, u := range all.Uploads {
			ids = append(ids, u.ID)
		}
		return ids
	}
	refused("uploads", "gone.bin", "delete",
		func() { ask(t, srv, http.MethodDelete, "uploads/acme/"+uploads()[0]) }, "page-upload-gone", "")
	tab.wait(`!document.querySelector('#uploads').tBodies[0].rows.length`)
	ban(t, srv, "192.0.2.7")
	refused("bans", "192.0.2.7", "unban",
		func() { ask(t, srv, http.MethodDelete, "bans?name=192.0.2.7") }, "page-ban-gone", "")
	other := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.3", srv.Addr().String()))
	other.Reply(220)
	other.Login("alice@acme", servicetest.Password)
	refused("sessions", "127.0.0.3", "disconnect", func() {
		other.Command(221, "QUIT")
		for strings.Contains(ask(t, srv, http.MethodGet, "sessions"), "127.0.0.3") {
		}
	}, "page-session-gone", "")

	interrupt(t, srv, c, "kept.bin")
	var denied *s3test.Injection
	refused("uploads", "kept.bin", "delete", func() {
		denied = proxy.Inject(s3test.Fault{
			Operation: "HeadObject", Effect: s3test.Refuse(http.StatusForbidden, "AccessDenied"),
		})
	}, "doctor-storage-refuses", `tenant acme: bucket "`)
	denied.End()
	var data net.Conn
	refused("uploads", "kept.bin", "delete", func() {
		c.Command(350, "REST "+c.Command(213, "SIZE kept.bin"))
		data = upload(t, c, "kept.bin", "x")
		for !strings.Contains(ask(t, srv, http.MethodGet, "uploads?tenant=acme"), `"state":"live"`) {
		}
	}, "page-cannot-delete", `tenant acme: bucket "`)
	tab.wait(`!document.querySelector('#uploads').tBodies[0].rows.length`)
	_ = data.Close()
	c.Reply(226)

	ban(t, srv, "192.0.2.8")
	refused("bans", "192.0.2.8", "unban", func() {
		must.OK(t, errors.Join(os.Rename(audit, audit+".1"), os.Symlink("/dev/full", audit)))
		c.Command(257, "MKD last") // the first audit line that cannot be written
		for reply := ""; !strings.HasPrefix(reply, "451 "); {
			var err error
			if reply, err = c.Send("MKD another"); err != nil {
				t.Fatal(err)
			}
		}
	}, i18n.AuditUnavailable, "")
	must.OK(t, os.Remove(audit))
}

// Without a connection, the page shows how old its state is, and reconnects. If the response to a request is
// lost, it does not say that the request was refused.
func TestLostConnection(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	target, err := url.Parse(address(srv))
	must.OK(t, err)
	var cut, lose atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodDelete && lose.Load() {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)
	tab := openLoggedIn(t, front.URL, "problems", "en")
	tab.expect("net::ERR_")
	tab.wait(live)
	tab.fill("#ban-name", "192.0.2.99")
	cut.Store(true)
	front.CloseClientConnections()
	tab.wait(`document.querySelector('#connection').textContent.startsWith(
		'Not connected. The page shows the state as of ') && document.body.dataset.connection === 'stale'`)
	cut.Store(false)
	tab.wait(live + ` && document.querySelector('#ban-name').value === '192.0.2.99'`)

	// The page does not know yet that the ban was lifted.
	ban(t, srv, "192.0.2.7")
	lose.Store(true)
	tab.choose("bans", "192.0.2.7", "unban")
	tab.dialog()
	eval[any](tab, `document.querySelector('#result').replaceChildren()`)
	tab.confirm()
	if shown := tab.result(); !strings.HasPrefix(shown, "The server did not answer the request: ") {
		t.Errorf("unexpected text %q", shown)
	}
	tab.wait(`!document.querySelector('#bans').tBodies[0].rows.length`)
}

// Administrators without the right to change anything see no controls for it.
func TestRoles(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	login(t, srv)
	ban(t, srv, "192.0.2.7")
	target, err := url.Parse(address(srv))
	must.OK(t, err)
	for role, test := range map[string]struct{ session, bans, users bool }{
		"viewer": {false, false, false}, "operator": {true, true, false}, "administrator": {true, true, true},
	} {
		t.Run(role, func(t *testing.T) {
			proxy := httputil.NewSingleHostReverseProxy(target)
			proxy.FlushInterval = -1
			proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the page is closed
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/api/v1/me" {
					w.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(w, `{"name": "ann", "role": %q, "login": "password"}`, role)
					return
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			t.Cleanup(front.CloseClientConnections)
			tab := openLoggedIn(t, front.URL, "now", "en")
			tab.wait(row("sessions", "alice"))
			eval[any](tab, row("sessions", "alice")+`.querySelector('.more').click()`)
			tab.wait(`document.querySelector('.menu [data-text="find-problems"]')`)
			if got := eval[bool](tab, `!!document.querySelector('.menu [data-text=disconnect]')`); got != test.session {
				t.Errorf("disconnect is shown: %t", got)
			}
			tab.press("Escape", "")
			tab.visit("problems")
			tab.wait(row("bans", "192.0.2.7"))
			actions := row("bans", "192.0.2.7") + `.querySelector('.more')`
			if got := eval[bool](tab, actions+`.checkVisibility()`); got != test.bans {
				t.Errorf("the actions of a ban are shown: %t", got)
			}
			if got := eval[bool](tab, `document.querySelector('#ban-form').checkVisibility()`); got != test.bans {
				t.Errorf("the form for bans is shown: %t", got)
			}
			tab.visit("users")
			if got := eval[bool](tab, `document.querySelector('#add-user').checkVisibility()`); got != test.users {
				t.Errorf("the button to add a user is shown: %t", got)
			}
		})
	}
}

// All replicas are on one screen, also those that do not respond.
func TestReplicaDown(t *testing.T) {
	srv := start(t, func(cfg *config.Config) {
		self := 0
		cfg.Cluster = config.Cluster{Replica: &self, Replicas: 2, Peers: []string{"127.0.0.1", "127.0.0.9"}}
		first := ftptest.FreePorts(t, 4)
		cfg.Passive.Ports = netaddr.PortRange{First: first, Last: first + 3}
	})
	login(t, srv)
	tab := openPage(t, srv, "now", "en")
	tab.wait(`document.querySelector('.replicas').textContent.includes('Sessions: 1')`)
	if got := tab.text(".replicas"); !strings.Contains(got, "Replica 1 – Does not respond") {
		t.Errorf("the screen Now says %q", got)
	}
	tab.wait(`document.querySelector('.note.bad').checkVisibility()`) // the problem comes first
	tab.visit("server")
	tab.wait(`document.querySelectorAll('#replicas tbody tr').length === 2`)
	states := eval[[]string](tab, `Array.from(document.querySelectorAll('#replicas tbody .state'), e => e.textContent)`)
	if states[0] != "Ready" || !strings.HasPrefix(states[1], "Does not respond ") {
		t.Errorf("got states %q", states)
	}
}
