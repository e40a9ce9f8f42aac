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
	chromium(t)
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

// openPage opens the page of a server as a logged-in administrator and waits until it shows a state.
func openPage(t *testing.T, srv *server.Server, language string) *tab {
	t.Helper()
	tab := openLoggedIn(t, address(srv), language)
	tab.wait(`!document.querySelector('#state').hidden`)
	return tab
}

// openLoggedIn opens the page of a server with the cookie of an administrator.
func openLoggedIn(t *testing.T, base, language string) *tab {
	t.Helper()
	response, err := http.PostForm(base+"/login", url.Values{"user": {name}, "password": {password}})
	must.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		t.Fatalf("login: %s", response.Status)
	}
	return open(t, base, language, response.Cookies()...)
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
	tab := open(t, address(srv), "fr")
	tab.expect("401 (Unauthorized)")
	tab.wait(`document.activeElement.id === 'name'`)
	tab.fill("#name", name)
	tab.fill("#password", "wrong")
	tab.press("Enter", "\r")
	tab.wait(
		`document.querySelector('#login-failed').textContent === 'Le nom ou le mot de passe est incorrect.' && document.activeElement.id === 'password'`)
	tab.fill("#password", password)
	tab.press("Enter", "\r")
	tab.wait(`!document.querySelector('#state').hidden && document.querySelector('#login').hidden`)
	if got := tab.text("#connection"); got != "Connecté. La page se met à jour d’elle-même." {
		t.Errorf("got connection state %q", got)
	}
	tab.enter("#log-out")
	tab.wait(
		`document.querySelector('#state').hidden && !document.querySelector('#login').hidden && document.activeElement.id === 'name'`)
	if got := tab.text("#connection"); got != "" {
		t.Errorf("got connection state %q", got)
	}
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
			tab := openPage(t, srv, test.accept)
			if got := eval[string](
				tab,
				"document.documentElement.lang + ' ' + getComputedStyle(document.body).direction"); got != test.lang+" "+test.dir {
				t.Errorf("unexpected page %s", got)
			}
			tab.wait(fmt.Sprintf("%s === %q", cell("sessions", "alice", "language"), test.session))
			tab.wait(cell("tenants", "acme", "quota") + `.includes('5')`)
			if got := eval[string](tab, cell("tenants", "acme", "quota")); got != test.quota {
				t.Errorf("got quota %q", got)
			}
			tab.wait(fmt.Sprintf("%s.startsWith(%q)", cell("tenants", "umbrella", "storage"), test.storage))
			reason := row("tenants", "umbrella") + ".querySelector('.storage > :lang(en)')"
			if got := eval[string](tab, reason+".textContent"); !strings.Contains(got, "does not exist") {
				t.Errorf("got English reason %q", got)
			}
			tab.wait(`document.querySelector('#tenant option[value=umbrella]')`)
			eval[any](tab, `document.querySelector('#tenant').value = 'umbrella'`)
			tab.enter("#choose button")
			tab.wait(`document.querySelector('#result > :lang(en)')?.textContent.includes('does not exist')`)
			refuses := load(t).Localizer(language.Make(test.lang)).Text("doctor-storage-refuses")
			if got := tab.text("#result"); !strings.HasPrefix(got, refuses+" ") {
				t.Errorf("unexpected text for a missing bucket: %q", got)
			}
			for _, shown := range []struct{ table, column, text string }{
				{"audit", "event", test.upload}, {"audit", "outcome", test.ok}, {"bans", "reason", test.banned},
				{"refusals", "limit", test.refused},
			} {
				tab.wait(fmt.Sprintf("%s === %q", cell(shown.table, shown.text, shown.column), shown.text))
			}
		})
	}
}

// The reader changes the language in the menu and stays logged in.
func TestLanguageMenu(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	tab := openPage(t, srv, "fr")
	eval[any](tab, `document.querySelector('#lang').value = 'he'`)
	tab.enter("#languages button")
	tab.wait(
		`document.documentElement.lang === 'he' && document.documentElement.dir === 'rtl' && !document.querySelector('#state').hidden`)
}

// Rows change in place while a transfer runs, so that focus, selection and scroll position are kept.
func TestTransfer(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 4194304")
	data := upload(t, c, "été.bin", strings.Repeat("x", 1<<20))
	tab := openPage(t, srv, "en")
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
		!strings.Contains(before, "button") {
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

// In right-to-left text, the parts of a progress are ordered from right to left, and each size keeps its
// number before its unit.
func TestSizesFromRightToLeft(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	c.Command(200, "TYPE I")
	c.Command(200, "ALLO 4194304")
	data := upload(t, c, "f", strings.Repeat("x", 1<<20))
	defer data.Close()
	for _, lang := range []string{"he", "fa", "ur"} {
		tab := openPage(t, srv, lang)
		sizes := row("transfers", "/alice/f") + `?.querySelector('.progress').querySelectorAll('bdi bdi')`
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
		// positions of the words for "per second" and of the unit before them
		places = eval[[]float64](tab, `import('./static/format.js').then(({speed}) => {
			const shown = speed(369_000)
			document.querySelector('#result').replaceChildren(shown)
			return [place(shown.lastChild, /\p{L}/u), place(shown.firstChild.firstChild, /B/)]
		})`)
		if len(places) != 2 || places[0] >= places[1] {
			t.Errorf("%s: second and unit stand at %v: %q", lang, places, tab.text("#result"))
		}
	}
}

// An administrator ends a session with the keyboard only. Escape and the first button of the dialog cancel.
func TestDisconnect(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	c := login(t, srv)
	tab := openPage(t, srv, "en")
	tab.wait(row("sessions", "alice"))
	press := func() {
		t.Helper()
		tab.enter("#sessions button")
		tab.wait(`document.querySelector('#confirm').open && document.activeElement.value === 'cancel'`)
	}
	press()
	if got := tab.text("#confirm"); !strings.Contains(got, "Disconnect this session?") ||
		!strings.Contains(got, "alice 127.0.0.1:") {
		t.Errorf("got question %q", got)
	}
	back := `!document.querySelector('#confirm').open && document.activeElement === document.querySelector('#sessions button')`
	tab.press("Escape", "")
	tab.wait(back)
	press()
	tab.press("Enter", "\r")
	tab.wait(back)
	c.Command(257, "PWD")
	press()
	tab.press("Tab", "")
	tab.wait(`document.activeElement.id === 'confirmed'`)
	tab.press("Enter", "\r")
	c.Reply(421)
	tab.wait(`document.querySelector('#result').textContent === 'The session was disconnected.'`)
	tab.wait(`!document.querySelector('#sessions button')`)
	tab.wait(`document.activeElement.id === 'sessions-heading'`)
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
	for _, test := range []struct{ lang, dir, button string }{
		{"en", "ltr", "Find problems"}, {"ar", "rtl", "البحث عن المشكلات"},
	} {
		t.Run(test.lang, func(t *testing.T) {
			tab := openPage(t, srv, test.lang)
			text := load(t).Localizer(language.Make(test.lang)).Text
			cause, _, _ := strings.Cut(text("doctor-ports-unreachable", "127.0.0.3", "PORTS"), "PORTS")
			const close = `document.querySelector('#problems button')`
			press := func(table, text, heading string) {
				t.Helper()
				tab.wait(row(table, text))
				eval[any](tab, fmt.Sprintf("Array.from(%s.querySelectorAll('button')).at(-1).focus()", row(table, text)))
				if got := eval[string](tab, "document.activeElement.textContent"); got != test.button {
					t.Errorf("got button %q", got)
				}
				tab.press("Enter", "\r")
				tab.wait(`document.querySelector('#problems').open && document.activeElement.id === 'client'`)
				if got := tab.text("#client"); !strings.HasPrefix(got, heading) {
					t.Errorf("got dialog about %q", got)
				}
			}
			leave := func() {
				t.Helper()
				tab.press("Tab", "")
				tab.wait(`document.activeElement === ` + close)
				tab.press("Enter", "\r")
				tab.wait(`!document.querySelector('#problems').open && document.activeElement.textContent === '` + test.button + `'`)
			}
			press("sessions", "127.0.0.3", "alice 127.0.0.3:")
			found := tab.text("#found")
			if !strings.HasPrefix(found, "alice: "+cause) || !strings.Contains(found, text("doctor-do-open-ports")) ||
				!strings.Contains(found, "babelftp.yaml: passive.ports") ||
				!strings.Contains(found, "the client did not connect to port") || eval[int](tab,
				`document.querySelectorAll('#found article').length`) != 1 {
				t.Errorf("found %q", found)
			}
			if got := eval[[]string](tab, `Array.from(document.querySelectorAll('#found h3 bdi'), e => e.textContent)`); len(got) != 4 ||
				got[0] != "alice" || got[1] != "127.0.0.3" || !strings.Contains(got[3], "2") {
				t.Errorf("got isolated text %q", got)
			}
			if got := eval[string](tab, `getComputedStyle(document.querySelector('#found')).direction + ' ' +
				getComputedStyle(document.querySelector('#found li bdi')).direction`); got != test.dir+" ltr" {
				t.Errorf("got directions %s", got)
			}
			leave()
			press("sessions", "127.0.0.4", "alice 127.0.0.4:")
			if got := tab.text("#found"); got != text(doctor.NothingFound) {
				t.Errorf("found %q", got)
			}
			leave()
			press("audit", "127.0.0.5", "")
			if got := tab.text("#found"); !strings.HasPrefix(got, text(i18n.LoginFailed)) {
				t.Errorf("found %q", got)
			}
			leave()
		})
	}
}

// The page shows why there are no findings.
func TestNoFindings(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	login(t, srv)
	tab := openPage(t, srv, "fr")
	tab.wait(row("sessions", "alice"))
	eval[any](tab, `{ // simulates a session of another replica
		const fetched = fetch
		fetch = path => fetched(path.replace('127.0.0.1', '192.0.2.7'))
	}`)
	tab.expect("404 (Not Found)")
	tab.enter("#sessions button:last-child")
	tab.wait(`document.querySelector('#problems').open`)
	if got := tab.text("#found :lang(en)"); !strings.HasPrefix(got, "this replica has logged no line about 192.0.2.7:") {
		t.Errorf("found %q", got)
	}
}

// Names chosen by clients are shown as text and cannot reorder the text around them.
func TestNamesOfClients(t *testing.T) {
	srv := start(t, func(cfg *config.Config) { cfg.Tenants["acme"].Compatibility.Charset = servicetest.Encoding(t, "raw") })
	c := login(t, srv)
	name := "<script>alert(1)</script><img src=x onerror=alert(2)>\u202egpj.exe\u200b\x01"
	data := upload(t, c, name, "x")
	defer data.Close()
	tab := openPage(t, srv, "ar")
	const want = "/alice/<script>alert(1)</script><img src=x onerror=alert(2)>U+202Egpj.exeU+200BU+0001"
	tab.wait(fmt.Sprintf("%s === %q", cell("transfers", "gpj.exe", "path"), want))
	got := eval[[]string](
		tab, `Array.from(`+row("transfers", "gpj.exe")+
			`.querySelector('.path').querySelectorAll('*'), e => e.localName + ' ' + getComputedStyle(e).unicodeBidi)`)
	if fmt.Sprint(got) != "[bdi isolate span normal span normal span normal]" {
		t.Errorf("got path elements %q", got)
	}
}

// A table shows a limited number of rows, and the filter finds the others.
func TestManyBans(t *testing.T) {
	srv := start(t, func(*config.Config) {})
	const many = 250
	for i := range many {
		ban(t, srv, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
	}
	tab := openPage(t, srv, "en")
	tab.wait(
		`document.querySelector('#bans').tBodies[0].rows.length === 200 && document.querySelector('#bans-shown').textContent === '200 of 250'`)
	shown := eval[string](tab, `document.querySelector('#bans').tBodies[0].textContent`)
	hidden := netip.MustParseAddr("192.0.2.70") // not the prefix of another address
	for strings.Contains(shown, hidden.String()) {
		hidden = hidden.Next()
	}
	tab.fill("#words", hidden.String())
	tab.wait(
		`document.querySelector('#bans').tBodies[0].rows.length === 1 && document.querySelector('#bans-shown').textContent === '1 of 250'`)
	tab.enter("#bans button")
	tab.wait(`document.querySelector('#confirm').open`)
	tab.enter("#confirmed")
	tab.wait(
		`document.querySelector('#result').textContent === 'The ban was lifted.' && document.querySelector('#bans-shown').textContent === '0 of 249'`)
	tab.fill("#words", "")
	tab.wait(`document.querySelector('#bans-shown').textContent === '200 of 249'`)
}

// An interrupted upload can be deleted.
func TestInterruptedUpload(t *testing.T) {
	srv := start(t, func(cfg *config.Config) { cfg.Tenants["acme"].Resume = config.KeepInterrupted })
	c := login(t, srv)
	interrupt(t, srv, c, "report.csv")
	tab := openPage(t, srv, "en")
	tab.wait(`document.querySelector('#tenant').value === 'acme'`)
	tab.enter("#choose button")
	tab.wait(row("uploads", "/alice/report.csv"))
	tab.enter("#uploads button")
	tab.wait(`document.querySelector('#confirm').open`)
	tab.enter("#confirmed")
	tab.wait(
		`document.querySelector('#result').textContent === 'The interrupted upload was deleted.' && !document.querySelector('#uploads').tBodies[0].rows.length`)
}

// The page shows errors of the API in its own language, with the reason in English.
func TestRefusals(t *testing.T) {
	chromium(t)
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
	tab := openPage(t, srv, lang)
	tab.expect("(Not Found)")
	tab.expect("(Conflict)")
	tab.expect("(Bad Gateway)")
	tab.expect("(Service Unavailable)")
	text := load(t).Localizer(language.Make(lang)).Text
	// refused opens the dialog to delete a row, calls the function, confirms, and checks the error.
	refused := func(table, row string, meanwhile func(), id i18n.ID, reason string) {
		t.Helper()
		if table == "uploads" {
			tab.wait(`document.querySelector('#tenant').value`)
			tab.enter("#choose button")
		}
		tab.wait(cell(table, row, "actions"))
		// The page may still replace the rows with the result of its last request.
		tab.wait(fmt.Sprintf(`(() => {
			const rows = Array.from(document.querySelectorAll('#%s tbody tr'))
			const found = rows.find(row => row.textContent.includes(%q))
			found?.querySelector('button').focus()
			return found !== undefined
		})()`, table, row))
		tab.press("Enter", "\r")
		tab.wait(`document.querySelector('#confirm').open`)
		meanwhile()
		eval[any](tab, `document.querySelector('#result').replaceChildren()`)
		tab.enter("#confirmed")
		tab.wait(`document.querySelector('#result').textContent`)
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
	refused("uploads", "gone.bin", func() { ask(t, srv, http.MethodDelete, "uploads/acme/"+uploads()[0]) }, "page-upload-gone", "")
	tab.wait(`!document.querySelector('#uploads').tBodies[0].rows.length`)
	ban(t, srv, "192.0.2.7")
	refused("bans", "192.0.2.7", func() { ask(t, srv, http.MethodDelete, "bans?name=192.0.2.7") }, "page-ban-gone", "")
	other := ftptest.New(t, ftptest.DialFrom(t, "127.0.0.3", srv.Addr().String()))
	other.Reply(220)
	other.Login("alice@acme", servicetest.Password)
	refused("sessions", "127.0.0.3", func() {
		other.Command(221, "QUIT")
		for strings.Contains(ask(t, srv, http.MethodGet, "sessions"), "127.0.0.3") {
		}
	}, "page-session-gone", "")

	interrupt(t, srv, c, "kept.bin")
	var denied *s3test.Injection
	refused("uploads", "kept.bin", func() {
		denied = proxy.Inject(s3test.Fault{
			Operation: "HeadObject", Effect: s3test.Refuse(http.StatusForbidden, "AccessDenied"),
		})
	}, "doctor-storage-refuses", `tenant acme: bucket "`)
	denied.End()
	var data net.Conn
	refused("uploads", "kept.bin", func() {
		c.Command(350, "REST "+c.Command(213, "SIZE kept.bin"))
		data = upload(t, c, "kept.bin", "x")
		for !strings.Contains(ask(t, srv, http.MethodGet, "uploads?tenant=acme"), `"state":"live"`) {
		}
	}, "page-cannot-delete", `tenant acme: bucket "`)
	tab.wait(`!document.querySelector('#uploads').tBodies[0].rows.length`)
	_ = data.Close()
	c.Reply(226)

	ban(t, srv, "192.0.2.8")
	refused("bans", "192.0.2.8", func() {
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
	tab := openLoggedIn(t, front.URL, "en")
	tab.expect("net::ERR_")
	live := `!document.querySelector('#state').hidden && document.querySelector('#connection').textContent === 'Connected. The page updates itself.'`
	tab.wait(live)
	cut.Store(true)
	front.CloseClientConnections()
	tab.wait(
		`document.querySelector('#connection').textContent.startsWith('Not connected. The page shows the state as of ') && document.body.classList.contains('stale')`)
	cut.Store(false)
	tab.wait(live + ` && !document.body.classList.contains('stale')`)

	// The page does not know yet that the ban was lifted.
	ban(t, srv, "192.0.2.7")
	tab.wait(cell("bans", "192.0.2.7", "actions"))
	lose.Store(true)
	eval[any](tab, `document.querySelector('#bans tbody button').focus()`)
	tab.press("Enter", "\r")
	tab.wait(`document.querySelector('#confirm').open`)
	tab.enter("#confirmed")
	tab.wait(`document.querySelector('#result').textContent`)
	shown := eval[string](tab, `document.querySelector('#result').textContent`)
	if !strings.HasPrefix(shown, "The server did not answer the request: ") {
		t.Errorf("unexpected text %q", shown)
	}
	tab.wait(`!document.querySelector('#bans').tBodies[0].rows.length`)
}
