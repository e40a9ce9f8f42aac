package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

func TestSitePresign(t *testing.T) {
	s := newTenantSite(t, loginTo(config.Tenant{Presign: 24 * time.Hour}))
	s.putNames(composed, "report 60")
	c := s.login()
	for _, test := range []struct{ argument, name, seconds string }{
		{composed, "caf%C3%A9", "3600"},
		{decomposed + " 90m", "caf%C3%A9", "5400"},
		{composed + " 60", "caf%C3%A9", "60"},
		{"report 60", "report%2060", "3600"},
		{"report 60 120", "report%2060", "120"},
	} {
		r := c.do("SITE PRESIGN "+test.argument, "200-Link valid until 2")
		if !strings.Contains(r, "/"+test.name+"?") || !strings.Contains(r, "X-Amz-Expires="+test.seconds+"&") {
			t.Errorf("SITE PRESIGN %+q: %q", test.argument, r)
		}
	}
	for argument, want := range map[string]string{
		"":                 "501 ",
		"nothing":          "550 ",
		composed + " 25h":  "501 Syntax: SITE PRESIGN <SP> pathname <SP> 1s-24h",
		composed + " -1h":  "501 ",
		composed + " 0":    "501 ",
		composed + " 1ms":  "501 ",
		composed + " soon": "550 ",
		"\xfe 1h":          "501 ",
	} {
		c.do(strings.TrimSuffix("SITE PRESIGN "+argument, " "), want)
	}
}

func TestSitePresignNeedsPermission(t *testing.T) {
	demo := loginTo(config.Tenant{Presign: time.Hour})
	demo.Policy = may(view.Rights{List: true}, nil)
	newTenantSite(t, demo).login().do("SITE PRESIGN f", "550 Permission denied.")
}

func TestSitePresignIsOffByDefault(t *testing.T) {
	newSite(t, nil).login().do("SITE PRESIGN f", "550 Links are not enabled here.")
}

func TestSiteChmod(t *testing.T) {
	t.Run("refuse", func(t *testing.T) {
		c := newSite(t, nil).login()
		c.do("SITE CHMOD 644 f", "502 SITE CHMOD command not implemented.")
		if r := c.do("SITE HELP", "214-"); strings.Contains(r, "CHMOD") {
			t.Errorf("SITE HELP: %q", r)
		}
	})
	t.Run("ignore", func(t *testing.T) {
		quirks := config.Compatibility{Chmod: config.IgnoreChmod}
		c := newTenantSite(t, loginTo(config.Tenant{Compatibility: quirks})).login()
		c.do("SITE chmod 644 f", "200 Permissions are not kept here; nothing was changed.")
		c.do("SITE CHMOD", "501 Syntax: SITE CHMOD <SP> mode <SP> pathname")
		if r := c.do("HELP SITE", "214-"); !strings.Contains(r, "\n CHMOD <SP> mode <SP> pathname\n") {
			t.Errorf("HELP SITE: %q", r)
		}
	})
}

func TestHelpOfASiteCommand(t *testing.T) {
	c := newSite(t, nil).login()
	for _, command := range []string{"HELP SITE MKDIR", "help site mkdir", "SITE HELP MKDIR"} {
		c.do(command, "214 Syntax: SITE MKDIR <SP> pathname")
	}
	c.do("LANG de", "200 ")
	for _, command := range []string{"HELP SITE NONE", "SITE HELP ?!?", "HELP SITE CHMOD"} {
		c.do(command, "502 Unbekannter Befehl.")
	}
	c.do("SITE HELP  ", "214-")
	c.do("LANG en", "200 ")
	c.do("HELP MKD", "214 Syntax: MKD <SP> pathname")
}

// SITE MKDIR creates at most 64 levels, including the levels of the working directory.
func TestDepthOfSiteMkdir(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	const levels = "/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d" // 32 of them
	c.do("SITE MKDIR "+levels+levels+"/d", "553 The path has too many levels of directories; the limit is 64. ("+levels+levels+"/d)")
	s.wantObjects()
	c.do("SITE MKDIR "+levels, "250 ")
	c.do("CWD "+levels, "250 ")
	c.do("SITE MKDIR "+levels[1:], "250 ")
	c.do("LANG de", "200 ")
	c.do("SITE MKDIR x"+levels, "553 ")
	c.do("MKD x", "257 ")
}

// The placeholders in the syntax of commands are translated.
func TestWordsInSyntax(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("LANG de", "200 ")
	c.do("HELP RETR", "214 Syntax: RETR <SP> Pfadname")
	c.do("HELP MDTM", "214 Syntax: MDTM [<SP> YYYYMMDDhhmmss] <SP> Pfadname")
	c.do("HELP EPRT", "214 Syntax: EPRT <SP> |1|Adresse|Port|")
	c.do("HELP PORT", "214 Syntax: PORT <SP> h1,h2,h3,h4,p1,p2")
	c.do("RANG 8", "501 Syntax: RANG <SP> Anfang <SP> Ende")
	c.do("SITE COPY x", "501 Syntax: SITE COPY <SP> Pfadname <SP> Pfadname")
	if r := c.do("SITE HELP", "214-"); !strings.Contains(r, "\n PRESIGN <SP> Pfadname [<SP> Dauer]\n PSWD <SP> Passwort <SP> neues-Passwort\n QUOTA\n") ||
		!strings.Contains(r, "\n URL [<SP> --8bit] <SP> Pfadname\n") {
		t.Errorf("SITE HELP: %q", r)
	}
	c.do("LANG ar", "200 ")
	c.do("HELP EPRT", "214 \u2067الصيغة: \u2068EPRT <SP> |1|\u2068عنوان\u2069|\u2068منفذ\u2069|\u2069\u2069")
}

// TestAvailable: AVBL returns the space left in the quota.
func TestAvailable(t *testing.T) {
	for _, test := range []struct {
		name  string
		usage *account.Usage
		lists bool
		want  string
	}{
		{"none", nil, true, "550 No quota is set."},
		{"some", &account.Usage{Used: 3, Limit: 10, Known: true}, true, "213 7"},
		{"exceeded", &account.Usage{Used: 13, Limit: 10, Known: true}, true, "213 0"},
		{"unknown", &account.Usage{Limit: 10}, true, "451 "},
		{"hidden", &account.Usage{Used: 3, Limit: 10, Known: true}, false, "550 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			demo := loginTo(config.Tenant{})
			demo.Usage = func() *account.Usage { return test.usage }
			demo.Policy = may(view.Rights{List: test.lists}, nil)
			c := newTenantSite(t, demo).login()
			c.do("AVBL", test.want)
			c.do("AVBL /dir", test.want)
		})
	}
}
