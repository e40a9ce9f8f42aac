package control_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/names/charset"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

func TestSiteURL(t *testing.T) {
	s := newTenantSite(t, account.Login{
		Tenant: &account.Tenant{Name: "demo"}, Home: "/home dir", Rights: allRights,
		DirectoryEncodings: map[string]*charset.Encoding{"/mirror": encoding(t, "raw")},
	})
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.putNames(
		"home dir/"+composed, "home dir/50% a&b;type=i", "nfd/"+decomposed, "line\nend", "home dir/d/x",
		"\u65e5 \u3000\u672c\u202e",
		"mirror/\u201bE9", "%41")
	c := s.login()
	for _, test := range []struct{ pathname, ftp, eightBit, s3 string }{
		{composed, "caf%C3%A9", "caf\u00e9", "/home dir/" + composed},
		{decomposed, "caf%C3%A9", "caf\u00e9", "/home dir/" + composed},
		{"50% a&b;type=i", "50%25%20a%26b%3Btype%3Di", "50%25%20a%26b%3Btype%3Di", "/home dir/50% a&b;type=i"},
		{"/home dir/d", "d/", "d/", "/home dir/d/"},
		{"/nfd/" + decomposed, "%2Fnfd/caf%C3%A9", "%2Fnfd/caf\u00e9", "/nfd/" + decomposed},
		{"/line\nend", "%2Fline%0Aend", "%2Fline%0Aend", "/line\u240aend"},
		{"/\u65e5 \u3000\u672c\u202e", "%2F%E6%97%A5%20%E3%80%80%E6%9C%AC%E2%80%AE",
			"%2F\u65e5%20%E3%80%80\u672c%E2%80%AE",
			"/\u65e5 \u3000\u672c\u202e"},
		{"/mirror/\xe9", "%2Fmirror/%E9", "%2Fmirror/%E9", "/mirror/\u201bE9"},
		{"/%41", "%2F%2541", "%2F%2541", "/%41"},
		{"/", "%2F/", "%2F/", "/"},
	} {
		for option, path := range map[string]string{"": test.ftp, "--8bit ": test.eightBit} {
			lines := strings.Split(c.do("SITE URL "+option+test.pathname, "200-"), "\n ")
			if want := "ftp://demo@127.0.0.1:" + port + "/" + path; lines[1] != want {
				t.Errorf("SITE URL %s%q: %q, want %q", option, test.pathname, lines[1], want)
			}
			if got := strings.Split("s3://"+s.bucket+test.s3+"\n200 End of addresses.", "\n200 "); strings.Join(
				lines[2:], "\n ") != strings.Join(got, "\n200 ") {
				t.Errorf("SITE URL %s%q: %q, want %q", option, test.pathname, lines[2:], got)
			}
		}
	}
	s.putNames("twins/"+composed, "twins/"+decomposed)
	if r := c.do("SITE URL /twins/"+decomposed, "200-"); !strings.Contains(r, "/%2Ftwins/cafe%CC%81\n") {
		t.Errorf("SITE URL of a twin: %q", r)
	}
	c.do("SITE URL", "501 Syntax: SITE URL [<SP> --8bit] <SP> pathname")
	c.do("SITE URL nothing", "550 ")
	c.do("SITE URL /caf\xe9", "501 ")
	c.do("SITE URL caf%C3%A9", "550 ") // a URI is no pathname
	c.do("CWD caf%C3%A9", "550 ")
}

func TestSiteURLOfHost(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("home/f")
	c := s.connect()
	c.do("HOST ftp.example.com", "220-")
	c.do("USER marie", "331 ")
	c.do("PASS demo", "230-")
	if r := c.do("SITE URL f", "200-"); !regexp.MustCompile(`\n ftp://marie@ftp\.example\.com:\d+/f\n`).MatchString(r) {
		t.Errorf("SITE URL: %q", r)
	}
}

// A linkingBackend is a backend that makes links to some files.
type linkingBackend struct {
	account.Backend
	there map[string]bool
}

func (b linkingBackend) Login(ctx context.Context, r *account.LoginRequest) (*account.Login, error) {
	login, err := b.Backend.Login(ctx, r)
	if err == nil {
		root := &login.View.Mounts[0]
		root.Store = linkingStore{root.Store, b.there}
	}
	return login, err
}

type linkingStore struct {
	view.Store
	there map[string]bool
}

func (s linkingStore) Presign(_ context.Context, name string, valid time.Duration) (string, error) {
	if !s.there[name] {
		return "", &fs.PathError{Op: "presign", Path: name, Err: fs.ErrNotExist}
	}
	return fmt.Sprintf("https://s3.example%s?valid=%v", name, valid), nil
}

func TestSitePresign(t *testing.T) {
	c := newSite(t, func(cfg *control.Config) {
		cfg.Backend.(*backend).demo = account.Login{
			Tenant: &account.Tenant{Name: "demo"}, MayPresign: true, LinkLifetime: 24 * time.Hour,
		}
		cfg.Backend = linkingBackend{cfg.Backend, map[string]bool{"/" + composed: true, "/report 60": true}}
	}).login()
	for _, test := range []struct{ argument, want string }{
		{composed, "/" + composed + "?valid=1h0m0s"},
		{decomposed + " 90m", "/" + composed + "?valid=1h30m0s"},
		{composed + " 60", "/" + composed + "?valid=1m0s"},
		{"report 60", "/report 60?valid=1h0m0s"},
		{"report 60 120", "/report 60?valid=2m0s"},
	} {
		r := c.do("SITE PRESIGN "+test.argument, "200-Link valid until 2")
		if !strings.Contains(r, "\n https://s3.example"+test.want+"\n200 ") {
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
	s := newTenantSite(t, account.Login{Tenant: &account.Tenant{Name: "demo"}, LinkLifetime: time.Hour})
	s.login().do("SITE PRESIGN f", "550 Permission denied.")
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
		c := newTenantSite(
			t, account.Login{Tenant: &account.Tenant{Name: "demo", IgnoreChmod: true}, Rights: allRights}).login()
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

// The words in the syntax of commands are in the language of the session.
func TestWordsInSyntax(t *testing.T) {
	c := newSite(t, nil).login()
	c.do("LANG de", "200 ")
	c.do("HELP RETR", "214 Syntax: RETR <SP> Pfadname")
	c.do("HELP MDTM", "214 Syntax: MDTM [<SP> YYYYMMDDhhmmss] <SP> Pfadname")
	c.do("HELP EPRT", "214 Syntax: EPRT <SP> |1|Adresse|Port|")
	c.do("HELP PORT", "214 Syntax: PORT <SP> h1,h2,h3,h4,p1,p2")
	c.do("RANG 8", "501 Syntax: RANG <SP> Anfang <SP> Ende")
	c.do("SITE COPY x", "501 Syntax: SITE COPY <SP> Pfadname <SP> Pfadname")
	if r := c.do("SITE HELP", "214-"); !strings.Contains(r, "\n PRESIGN <SP> Pfadname [<SP> Dauer]\n QUOTA\n") ||
		!strings.Contains(r, "\n URL [<SP> --8bit] <SP> Pfadname\n") {
		t.Errorf("SITE HELP: %q", r)
	}
	c.do("LANG ar", "200 ")
	c.do("HELP EPRT", "214 الصيغة: \u2068EPRT <SP> |1|\u2068عنوان\u2069|\u2068منفذ\u2069|\u2069")
}

// TestAvailable: AVBL tells what the quota leaves.
func TestAvailable(t *testing.T) {
	quota := func(used, limit int64, known bool) func() (int64, int64, bool) {
		return func() (int64, int64, bool) { return used, limit, known }
	}
	for _, test := range []struct {
		name  string
		login account.Login
		want  string
	}{
		{"none", account.Login{}, "550 No quota is set."},
		{"some", account.Login{Quota: quota(3, 10, true)}, "213 7"},
		{"exceeded", account.Login{Quota: quota(13, 10, true)}, "213 0"},
		{"unknown", account.Login{Quota: quota(0, 10, false)}, "451 "},
		{"hidden", account.Login{Quota: quota(3, 10, true), QuotaHidden: true}, "550 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.login.Tenant = &account.Tenant{Name: "demo"}
			c := newTenantSite(t, test.login).login()
			c.do("AVBL", test.want)
			c.do("AVBL /dir", test.want)
		})
	}
}
