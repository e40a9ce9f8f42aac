package control_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
)

func TestGreetings(t *testing.T) {
	greeted := &account.Tenant{Name: "acme", DefaultLanguage: language.French, Tenant: &config.Tenant{
		Greeting: map[language.Tag]string{
			language.English: "This is {Tenant}.\nHello {User}.", language.French: "Ici {Tenant}."},
		Welcome: map[language.Tag]string{
			language.English: "Welcome {User}!\nYou were here on {LastLogin}.\n\nEnjoy {Tenant}.",
			language.French:  "Bienvenue {User}, {LastLogin}.",
		},
	}}
	login := account.Login{
		User: userOf(greeted), LastLogin: time.Date(2026, 11, 20, 23, 59, 0, 0, time.FixedZone("", 3600)),
	}
	s := newSite(t, func(cfg *control.Config) {
		b := cfg.Backend.(*backend)
		b.demo, b.hosts["acme.example"] = login, greeted
	})
	c := s.connect()
	c.do("HOST acme.example", "220 Ici acme.")
	c.do("LANG en", "200-This is acme.\n200 Replies are now in English.") // before login there is no line for the user
	c.do("HOST acme.example", "220 Ici acme.")
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230-Bienvenue demo, 2026-11-20 22:59 UTC.\n230 ")
	c.do("LANG en", "200-Welcome demo!\n You were here on 2026-11-20 22:59 UTC.\n \n Enjoy acme.\n200 Replies")
	c.do("LANG de", "200-Bienvenue demo") // the tenant has no German text
	c.do("LANG", "200-Bienvenue demo")
}

// The language of a user overrides the language of the tenant, and a language selected by the client overrides
// both. LANG without an argument, which lftp sends, restores the language of the user.
func TestLanguageOfAUser(t *testing.T) {
	french := &account.Tenant{Name: "acme", DefaultLanguage: language.French, Tenant: &config.Tenant{}}
	s := newSite(t, func(cfg *control.Config) {
		b := cfg.Backend.(*backend)
		b.demo, b.hosts["acme.example"] = account.Login{User: userOf(french)}, french
		b.demo.Language = language.German
	})
	login := func(c *client, password string) {
		c.do("USER demo", "331 ")
		c.do("PASS demo", password)
	}
	c := s.connect()
	login(c, "230 Sie sind")
	c.do("LANG", "200 Die Antworten")
	c.do("LANG en", "200 Replies")
	c.do("NOOP", "200 OK")
	c.do("LANG", "200 Die Antworten")
	c.do("REIN", "220 Service ready")
	c.do("LANG ja", "200 ")
	login(c, "230 ログイン")
	c.do("HOST acme.example", "503 ")

	c = s.connect()
	c.do("HOST acme.example", "220-Bienvenue")
	login(c, "230 Sie sind")
	c.startTLS() // ends the login
	c.do("USER demo", "331 Mot de passe")
}

// A greeting in another language is repeated in English (RFC 2277, 4.5), unless it is the tenant's own text.
func TestBilingualGreeting(t *testing.T) {
	for _, test := range []struct {
		name     string
		server   language.Tag
		greeting map[language.Tag]string
		connect  string
		host     string
	}{
		{"messages", language.French, nil, "220-Serveur FTP prêt.\n220 FTP server ready.",
			"220-Bienvenue sur acme.example.\n220 Welcome to acme.example."},
		{"english", language.English, nil, "220 FTP server ready.", "220-Bienvenue sur"},
		{"texts", language.English, map[language.Tag]string{language.French: "Bienvenue.",
			language.English: "Welcome to {Tenant}."}, "220 FTP",
			"220 Bienvenue."},
		{"one-text", language.English, map[language.Tag]string{language.French: "Bienvenue."}, "220 FTP",
			"220 Bienvenue."},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, func(cfg *control.Config) {
				cfg.DefaultLanguage = test.server
				cfg.Backend.(*backend).hosts["acme.example"] = &account.Tenant{Name: "acme",
					DefaultLanguage: language.French, Tenant: &config.Tenant{Greeting: test.greeting}}
			})
			c := s.dial()
			c.expect(test.connect)
			c.do("HOST acme.example", test.host)
		})
	}
}

// The English part of a bilingual greeting is the tenant's own text if there is one.
func TestBilingualGreetingInOwnWords(t *testing.T) {
	server, err := i18n.Load()
	must.OK(t, err)
	for _, test := range []struct {
		name      string
		languages []language.Tag // languages of the tenant
		want      string
	}{
		{"offered", nil, "220-Bienvenue sur acme.example.\n220 Good morning from acme.example."},
		{"not-offered", []language.Tag{language.French},
			"220-Bienvenue sur acme.example.\n220 Welcome to acme.example."},
	} {
		t.Run(test.name, func(t *testing.T) {
			own, err := server.WithOverrides(test.languages, map[i18n.ID]map[language.Tag]i18n.Text{
				i18n.HostAccepted: {language.English: {Msg: "Good morning from {Host}."}},
			})
			must.OK(t, err)
			s := newSite(t, func(cfg *control.Config) {
				cfg.Backend.(*backend).hosts["acme.example"] = &account.Tenant{Name: "acme", Bundle: own,
					DefaultLanguage: language.French, Tenant: &config.Tenant{}}
			})
			s.connect().do("HOST acme.example", test.want)
		})
	}
}

// A line is left out if one of its variables has no value.
func TestGreetingOfTheFirstLogin(t *testing.T) {
	s := newTenantSite(t, loginTo(config.Tenant{Welcome: map[language.Tag]string{
		language.English: "Welcome {User}!\nYou were here on {LastLogin}.\n\nEnjoy {Tenant}.",
	}}))
	c := s.connect()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230-Welcome demo!\n \n Enjoy demo.\n230 ")
	c.do("LANG en", "200-Welcome demo!\n \n Enjoy demo.\n200 Replies are now in English.")
}

// The greeting, STAT and SITE QUOTA show how much of the quota is used.
func TestQuotaShown(t *testing.T) {
	const used, limit = 5 << 28, 10 << 30
	for _, test := range []struct {
		label               string
		quota               *account.Usage
		welcome, quotaReply string
		status              string // a line of STAT, or empty
	}{
		{"used", &account.Usage{Used: used, Limit: limit, Known: true}, "230-1.2 GiB of 10 GiB\n230 ", "200 Space used: 1.2 GiB of 10 GiB", " Space used: 1.2 GiB of 10 GiB"},
		{"empty", &account.Usage{Limit: 1023, Known: true}, "230-0 bytes of 1023 bytes\n230 ", "200 Space used: 0 bytes of 1023 bytes", " Space used: 0 bytes of 1023 bytes"},
		{"uncounted", &account.Usage{Limit: limit}, "230 ", "451 Space used is not known yet.", ""},
		{"none", nil, "230 ", "200 No quota is set.", ""},
		// used space would reveal the size of a replaced file that the user may not list
		{"hidden", &account.Usage{Used: used, Limit: limit, Known: true}, "230 ", "550 ", ""},
	} {
		t.Run(test.label, func(t *testing.T) {
			demo := loginTo(config.Tenant{Welcome: map[language.Tag]string{language.English: "{Quota}"}})
			demo.Usage = func() *account.Usage { return test.quota }
			demo.Policy = view.Policy{view.NewLayer(view.Rights{List: test.label != "hidden"}, nil)}
			c := newTenantSite(t, demo).connect()
			c.do("SITE QUOTA", "530 ")
			c.do("USER demo", "331 ")
			c.do("PASS demo", test.welcome)
			c.do("site quota", test.quotaReply)
			status := c.do("STAT", "211-")
			if got := strings.Contains(status, "Space used"); got != (test.status != "") || !strings.Contains(status, test.status) {
				t.Errorf("STAT: got %q, want %q in it", status, test.status)
			}
		})
	}
}

// If the tenant has no text for the login, the greeting is shown again.
func TestGreetingAfterLogin(t *testing.T) {
	c := newSite(t, nil).connect()
	c.do("HOST ftp.example.com", "220-Willkommen!\n220 Bitte eintreten.")
	c.do("USER marie", "331 ")
	c.do("PASS demo", "230-Willkommen!\n Bitte eintreten.\n230 ")
}

// A greeting in the reader's language is shown before a welcome in another language. Its values are formatted in the
// language of the greeting.
func TestGreetingInTheLanguageOfTheReader(t *testing.T) {
	demo := loginTo(config.Tenant{
		Welcome:  map[language.Tag]string{language.French: "{Quota}", language.Arabic: "مرحبا {Quota}"},
		Greeting: map[language.Tag]string{language.English: "Hello", language.French: "Ici", language.Japanese: "ようこそ"},
	})
	demo.Tenant.DefaultLanguage = language.French
	demo.Usage = func() *account.Usage { return &account.Usage{Used: 17, Limit: 1 << 40, Known: true} }
	demo.Policy = view.Policy{view.NewLayer(view.Rights{List: true}, nil)}
	c := newTenantSite(t, demo).connect()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230-17\u00a0octets sur 1 Tio\n230 ")
	for lang, want := range map[string]string{
		"EN": "Hello", "JA": "ようこそ", "FR": "17\u00a0octets sur 1 Tio", "RU": "17\u00a0octets sur 1 Tio",
		"HE": "17\u00a0octets sur 1 Tio", "AR": "\u2067مرحبا \u206817 بايتًا من 1 تيبيبايت\u2069\u2069",
	} {
		c.do("LANG "+lang, "200-"+want+"\n200 ")
	}
}

// Times are in the time zone of the user, or else of the tenant.
func TestTimesInTheZone(t *testing.T) {
	last := time.Date(2026, 7, 20, 22, 59, 0, 0, time.UTC)
	for _, test := range []struct{ tenant, user, want string }{
		{"", "", "2026-07-20 22:59 UTC"},
		{"Europe/Paris", "", "2026-07-21 00:59 UTC+02:00"},
		{"Europe/Paris", "Asia/Kolkata", "2026-07-21 04:29 UTC+05:30"},
		{"America/New_York", "", "2026-07-20 18:59 UTC-04:00"},
	} {
		demo := loginTo(config.Tenant{Welcome: map[language.Tag]string{language.English: "{LastLogin}"}})
		must.OK(t, demo.Tenant.Timezone.UnmarshalText([]byte(test.tenant)))
		if test.user != "" {
			must.OK(t, demo.Timezone.UnmarshalText([]byte(test.user)))
		}
		demo.LastLogin = last
		t.Run(test.tenant+test.user, func(t *testing.T) {
			c := newTenantSite(t, demo).connect()
			c.do("USER demo", "331 ")
			c.do("PASS demo", "230-"+test.want+"\n230 ")
		})
	}
}
