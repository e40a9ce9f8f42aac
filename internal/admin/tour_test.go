package admin_test

import (
	"flag"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the pictures of the documentation")

// startForBrowser starts a server whose tenant acme has users in a file, for a test in the browser.
func startForBrowser(t *testing.T) *server.Server {
	t.Helper()
	browser(t)
	return startUsers(t, "users: {}\n").Server
}

// lftp runs commands of lftp as a user of acme.
func lftp(t *testing.T, srv *server.Server, user, password, commands string) *exec.Cmd {
	t.Helper()
	host, port, _ := strings.Cut(srv.Addr().String(), ":")
	return exec.CommandContext(t.Context(), "lftp", "--norc", "-e",
		"set ftp:ssl-allow no; set net:max-retries 1; set net:reconnect-interval-base 1; "+commands, "-p", port, "-u", user+"@acme,"+password, host)
}

// An administrator with nothing but a browser adds a user, who logs in with lftp, watches the upload, bans the user,
// and finds the upload in the audit log.
func TestTour(t *testing.T) {
	srv := startForBrowser(t)
	for _, lang := range []string{"en", "ar", "ja"} {
		t.Run(lang, func(t *testing.T) {
			text := load(t).Localizer(language.Make(lang)).Text
			user := map[string]string{"en": "bob", "ar": "مريم", "ja": "さくら"}[lang]
			tab := openPage(t, srv, "users", lang)
			tab.enter("#add-user")
			tab.wait(`document.querySelector('.editor')`)
			tab.fill(".editor [data-path=name] input", user)
			eval[any](tab, `document.querySelector('.editor [data-path=tenant] select').value = 'acme'`)
			tab.fill(".editor [data-path=quota] input", "ten")
			tab.enter(`.editor [data-text=generate]`)
			password := eval[string](tab, `document.querySelector('.editor [data-path=password] input').value`)
			if len(password) != 20 {
				t.Fatalf("got password %q", password)
			}

			// The server refuses the quota, and everything typed stays.
			tab.expect("422 (Unprocessable Entity)")
			tab.enter(".editor .primary")
			tab.wait(`document.querySelector('[data-path=quota] .problem').textContent.includes('ten') &&
				document.activeElement.closest('[data-path=quota]')`)
			tab.fill(".editor [data-path=quota] input", "10GiB")
			tab.enter(".editor .primary")
			tab.wait(row("users", user))
			if got := tab.result(); got != text("page-saved") {
				t.Errorf("got result %q", got)
			}

			file := filepath.Join(t.TempDir(), "ملف-"+lang+".bin")
			must.WriteFile(t, file, strings.Repeat("x", 8<<20))
			client := lftp(t, srv, user, password, "set net:limit-rate 0:400000; put "+file)
			var out strings.Builder
			client.Stdout, client.Stderr = &out, &out
			must.OK(t, client.Start())
			tab.visit("now")
			tab.wait(fmt.Sprintf("%s === %q", cell("transfers", user, "direction"), text("page-upload")))
			tab.choose("transfers", user, "ban-user")
			tab.dialog()
			tab.confirm()
			tab.wait(`!(` + row("transfers", user) + `)`)
			if err := client.Wait(); err == nil {
				t.Errorf("a banned user could upload a file: %s", out.String())
			}
			tab.visit("problems")
			tab.choose("bans", user+"@acme", "unban")
			tab.dialog()
			tab.confirm()
			tab.wait(`!(` + row("bans", user) + `)`)

			move := "put " + file + "; mv " + filepath.Base(file) + " done-" + lang + ".bin"
			if out, err := lftp(t, srv, user, password, move).CombinedOutput(); err != nil {
				t.Fatalf("lftp: %v\n%s", err, out)
			}
			tab.visit("activity")
			tab.fill("#find-path", "/done-"+lang+".bin")
			tab.press("Enter", "\r")
			tab.wait(row("activity", text("page-event-rename")))
			tab.wait(row("activity", text("page-upload"))) // the search follows renames
			found := eval[string](tab, cell("activity", text("page-upload"), "path"))
			if !strings.Contains(found, "ملف-"+lang+".bin") {
				t.Errorf("found the upload of %q", found)
			}

			// The administrator resets the password, disables the user, and deletes it.
			tab.visit("users")
			tab.choose("users", user, "reset-password")
			tab.dialog()
			changed := eval[string](tab, `document.querySelector('dialog[open] input').value`)
			tab.confirm()
			tab.wait(`!document.querySelector('dialog[open]')`)
			if out, err := lftp(t, srv, user, changed, "ls").CombinedOutput(); err != nil {
				t.Fatalf("lftp with the new password: %v\n%s", err, out)
			}
			tab.choose("users", user, "disable")
			tab.dialog()
			tab.confirm()
			tab.wait(fmt.Sprintf("%s === %q", cell("users", user, "state"), text("page-disabled")))
			if out, err := lftp(t, srv, user, changed, "ls").CombinedOutput(); err == nil {
				t.Errorf("a disabled user could log in: %s", out)
			}
			tab.choose("users", user, "delete")
			tab.dialog()
			tab.confirm()
			tab.wait(`!(` + row("users", user) + `)`)
			if got := tab.result(); got != text("page-user-deleted") {
				t.Errorf("got result %q", got)
			}

			// The greeting of the tenant in each language
			eval[any](tab, `{
				const menu = document.querySelector('#users-tenant')
				menu.value = 'acme'
				menu.dispatchEvent(new Event('change'))
			}`)
			for tag, greeting := range map[string]string{"fr": "Bienvenue chez Acme", "en": "Welcome to Acme"} {
				tab.wait(fmt.Sprintf(`document.querySelector('#texts-language option[value=%s]')`, tag))
				eval[any](tab, fmt.Sprintf(`{
					const menu = document.querySelector('#texts-language')
					menu.value = %q
					menu.dispatchEvent(new Event('change'))
				}`, tag))
				tab.wait(fmt.Sprintf(`document.querySelector('.transcript').textContent.includes(%q)`, greeting))
			}
		})
	}
}

// Two administrators change the same user. The second sees what the first has changed, and decides.
func TestConflict(t *testing.T) {
	browser(t)
	srv := startUsers(t, "users: {}\n")
	srv.expect(http.StatusCreated, http.MethodPost, "/users",
		`{"tenant": "acme", "name": "bob", "password": "correct-horse-battery", "settings": {"language": "fr"}}`)
	edit := func() *tab {
		t.Helper()
		tab := openPage(t, srv.Server, "users?tenant=acme&name=bob", "en")
		tab.wait(`document.querySelector('.editor')`)
		return tab
	}
	first, second := edit(), edit()
	first.fill(".editor [data-path=quota] input", "1GiB")
	first.enter(".editor .primary")
	first.wait(row("users", "bob"))
	second.fill(".editor [data-path=home] input", "/in")
	second.expect("412 (Precondition Failed)")
	second.enter(".editor .primary")
	shown := second.dialog()
	for _, want := range []string{"quota", "1GiB", "/in"} {
		if !strings.Contains(shown, want) {
			t.Errorf("missing %s in the comparison %q", want, shown)
		}
	}
	second.confirm()
	second.wait(row("users", "bob"))
	got := srv.expect(http.StatusOK, http.MethodGet, "/users/acme/bob", "").body
	for _, want := range []string{`"quota":"1GiB"`, `"home":"/in"`, `"language":"fr"`} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %s in %s", want, got)
		}
	}
}

// Users of the configuration are shown with the reason why the page cannot change them.
func TestReadOnlyUser(t *testing.T) {
	srv := startForBrowser(t)
	tab := openPage(t, srv, "users?tenant=acme&name=carol", "en")
	tab.wait(`document.querySelector('.editor fieldset').disabled &&
		document.querySelector('.editor .note').textContent`)
	if eval[bool](tab, `!!document.querySelector('.editor .primary')`) {
		t.Error("a user of the configuration can be saved")
	}
}

// The pictures of the documentation show the page with a few sessions. With -update they are written.
func TestPictures(t *testing.T) {
	browser(t)
	srv := startUsers(t, "users: {}\n")
	for i, user := range []string{"camille", "مريم", "scanner-07"} {
		srv.expect(http.StatusCreated, http.MethodPost, "/users", fmt.Sprintf(
			`{"tenant": "acme", "name": %q, "password": "correct-horse-battery", "settings": {"root": "/%d"}}`, user, i))
		c := ftptest.New(t, ftptest.DialFrom(t, fmt.Sprintf("127.0.0.%d", i+3), srv.Addr().String()))
		c.Reply(220)
		c.Login(user+"@acme", "correct-horse-battery")
		c.Command(200, "TYPE I")
		c.Command(200, "ALLO 8388608")
		data := upload(t, c, []string{"été/rapport.pdf", "ملف.pdf", "scan-0001.tif"}[i], strings.Repeat("x", (i+1)<<21))
		defer data.Close()
	}
	ban(t, srv.Server, "203.0.113.7")
	tab := openPage(t, srv.Server, "server", "en")
	eval[any](tab, `{ // an hour with some load, instead of the seconds since the start of the test
		const wave = (low, high, times) => Array.from({length: 360}, (_, i) =>
			Math.max(0, Math.round(low + (high - low) * (1 + Math.sin(i / 57 * times) + Math.sin(i * 1.7) / 9) / 2)))
		const series = {sessions: wave(2, 14, 2), uploads_bytes: wave(1e6, 9e7, 3), downloads_bytes: wave(0, 4e7, 5),
			logins: wave(0, 6, 7), failed_logins: wave(-2, 1, 3), errors: wave(-3, 1, 4)}
		const fetched = fetch
		fetch = (path, options) => path.endsWith('/history')
			? Promise.resolve(Response.json({interval: 10, until: new Date(), series})) : fetched(path, options)
	}`)
	for _, screen := range []string{"now", "users", "activity"} {
		tab.visit(screen)
		tab.wait(`document.querySelector('#screen > div:not([hidden]) tbody tr')`)
		if screen == "now" {
			tab.wait(`document.querySelector('.plot canvas')`)
			tab.wait(`document.querySelectorAll('#transfers tbody tr').length === 3`)
		}
		eval[any](tab, `document.activeElement.blur()`)
		if *update {
			tab.picture("../../docs/images/" + screen + ".png")
		}
	}
}
