package account

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

func TestFindUser(t *testing.T) {
	cfg := config.Default()
	hash := servicetest.PasswordHash()
	users := func(names ...string) map[string]*config.User {
		m := map[string]*config.User{}
		for _, name := range names {
			m[name] = &config.User{PasswordHash: hash}
		}
		return m
	}
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data", Hosts: []string{"ftp.acme.example", "2001:db8::7"},
			Users: users("alice", "carol", "Jos\u00e9")},
		"umbrella": {Bucket: "umbrella", Hosts: []string{"xn--mnchen-3ya.example"}, Users: users("alice", "dave@home")},
		"zebra":    {Bucket: "zebra", Users: users("erin")},
		"tokyo":    {Bucket: "tokyo", Users: users("花子"), Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "shift_jis")}},
		"beijing":  {Bucket: "beijing", Users: users("目录"), Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "gbk")}},
		"moscow": {Bucket: "moscow", Users: users("Женя"), Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "windows-1251")},
			Hosts: []string{"moscow.example"}},
		"mirror": {Bucket: "mirror", Users: users("‛C6enia"), Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "raw")}},
	}
	must.OK(t, cfg.Validate())
	r := registryOf(t, cfg)
	for _, tc := range []struct {
		name, host, login string
		want              string // the tenant, or empty
	}{
		{"name-of-one-tenant", "", "carol", "acme"},
		{"name-of-two-tenants", "", "alice", ""},
		{"qualified", "", "alice@umbrella", "umbrella"},
		{"qualified-by-an-unknown-tenant", "", "alice@nowhere", ""},
		{"qualified-by-the-tenant-of-another", "", "carol@umbrella", ""},
		{"with-an-at", "", "dave@home", "umbrella"},
		{"with-an-at-and-qualified", "", "dave@home@umbrella", "umbrella"},
		{"tenant-without-host", "", "erin", "zebra"},
		{"host", "ftp.acme.example", "alice", "acme"},
		{"host-in-another-form", "FTP.ACME.example.", "alice", "acme"},
		{"host-of-an-address", "2001:DB8:0::7", "alice", "acme"},
		{"host-in-unicode", "m\u00fcnchen.example", "alice", "umbrella"},
		{"host-and-qualified", "ftp.acme.example", "alice@acme", "acme"},
		{"host-of-another", "ftp.acme.example", "alice@umbrella", ""},
		{"host-without-the-user", "ftp.acme.example", "erin", ""},
		{"unknown-host", "ftp.example", "carol", ""},
		{"other-unicode-form", "", "Jose\u0301", "acme"},
		{"other-case", "", "Carol", ""},
		{"empty", "", "", ""},
		{"at-alone", "", "@", ""},
		{"tenant-alone", "", "@acme", ""},
		{"charset", "", "\x89\xd4\x8eq", "tokyo"},
		{"charset-and-qualified", "", "\xc6\xe5\xed\xff@moscow", "moscow"},
		{"charset-of-another-tenant", "", "\xc6\xe5\xed\xff@tokyo", ""},
		{"charset-of-the-host", "moscow.example", "\xc6\xe5\xed\xff", "moscow"},
		{"charset-of-another-host", "ftp.acme.example", "\xc6\xe5\xed\xff", ""},
		{"charset-that-is-valid-utf-8", "", "\xc4\xbf\xc2\xbc", "beijing"},
		{"no-charset", "", "\xc6enia", ""},
		{"utf-8-in-a-tenant-with-a-charset", "", "花子", "tokyo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if u := r.current.Load().find(netip.Addr{}, tc.host, tc.login); u != nil {
				got = u.Tenant.Name
			}
			if got != tc.want {
				t.Errorf("found in %q, want %q", got, tc.want)
			}
		})
	}
}

// Before a tenant is selected, the most specific network of all tenants decides on the charset. After that, the
// charset of the user takes precedence over the network's, which takes precedence over the tenant's.
func TestCharsetOfAClient(t *testing.T) {
	network := func(text string) (n value.Network) {
		must.OK(t, n.UnmarshalText([]byte(text)))
		return n
	}
	in := func(charset string) config.Compatibility {
		return config.Compatibility{Charset: servicetest.Encoding(t, charset)}
	}
	at := func(charset string) *config.Compatibility { c := in(charset); return &c }
	hash := servicetest.PasswordHash()
	cfg := config.Default()
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data", Compatibility: in("koi8-r"),
			Users: map[string]*config.User{
				"alice": {PasswordHash: hash}, "bob": {PasswordHash: hash, Compatibility: in("utf-8")},
			},
			CompatibilityByNetwork: map[value.Network]*config.Compatibility{
				network("10.0.0.0/8"): at("windows-1252"), network("10.7.0.0/16"): at("utf-8"),
				network("192.0.2.0/24"): at("shift_jis"), network("192.0.2.7"): {Chmod: config.IgnoreChmod},
			}},
		"umbrella": {Bucket: "umbrella-data", Users: map[string]*config.User{"carol": {PasswordHash: hash}},
			CompatibilityByNetwork: map[value.Network]*config.Compatibility{
				network("10.7.7.0/24"): at("big5"), network("192.0.2.0/24"): at("gbk"),
			}},
	}
	must.OK(t, cfg.Validate())
	r := registryOf(t, cfg)
	users := r.current.Load().users
	for _, tc := range []struct{ addr, before, alice, bob string }{
		{"198.51.100.1", "utf-8", "koi8-r", "utf-8"},
		{"10.1.2.3", "windows-1252", "windows-1252", "utf-8"},
		{"10.7.1.1", "utf-8", "utf-8", "utf-8"},
		{"10.7.7.7", "big5", "utf-8", "utf-8"},
		{"192.0.2.1", "utf-8", "shift_jis", "utf-8"},
		{"192.0.2.7", "utf-8", "koi8-r", "utf-8"},
	} {
		t.Run(tc.addr, func(t *testing.T) {
			addr := netip.MustParseAddr(tc.addr)
			got := []string{r.Charset(addr).String(), users["alice"].compatibilityAt(addr).Charset.String(),
				users["bob"].compatibilityAt(addr).Charset.String()}
			if want := []string{tc.before, tc.alice, tc.bob}; !slices.Equal(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// A user with a root gets the encodings of the directories below it, and "/" gets the encoding of root.
func TestEncodingsBelow(t *testing.T) {
	dirs := map[string]value.Encoding{
		"/legacy": servicetest.Encoding(t, "shift_jis"), "/legacy/dos": servicetest.Encoding(t, "ibm850"),
		"/legacy/dos/new/old": servicetest.Encoding(t, "utf-8"),
		"/legacy2":            servicetest.Encoding(t, "big5"), "/scans": servicetest.Encoding(t, "raw"),
		"/cafe\u0301/old": servicetest.Encoding(t, "gbk"),
	}
	for _, tc := range []struct {
		name, root, want string
	}{
		{"none", "",
			"map[/café/old:gbk /legacy:shift_jis /legacy/dos:ibm850 /legacy/dos/new/old:utf-8 /legacy2:big5 /scans:raw]"},
		{"everything", "/",
			"map[/café/old:gbk /legacy:shift_jis /legacy/dos:ibm850 /legacy/dos/new/old:utf-8 /legacy2:big5 /scans:raw]"},
		{"directory-itself", "/legacy", "map[/:shift_jis /dos:ibm850 /dos/new/old:utf-8]"},
		{"below", "/legacy/new/mine", "map[/:shift_jis]"},
		{"nearest", "/legacy/dos/new", "map[/:ibm850 /old:utf-8]"},
		{"back-to-utf-8", "/legacy/dos/new/old", "map[/:utf-8]"},
		{"other-unicode-form", "/caf\u00e9", "map[/old:gbk]"},
		{"begins-alike", "/leg", "map[]"},
		{"elsewhere", "/other", "map[]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := fmt.Sprint(encodingsBelow(tc.root, dirs)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestLanguageOfATenant(t *testing.T) {
	tags := func(names ...string) (tags []language.Tag) {
		for _, name := range names {
			tags = append(tags, language.MustParse(name))
		}
		return tags
	}
	for _, tc := range []struct {
		name      string
		languages []language.Tag
		own       language.Tag
		want      string
	}{
		{"of-the-server", nil, language.Und, "de"},
		{"own", nil, language.French, "fr"},
		{"nearest", nil, language.CanadianFrench, "fr"},
		{"offered-by-the-server-and-the-tenant", tags("fr", "de"), language.Und, "de"},
		{"not-offered", tags("ja", "fr"), language.Und, "ja"},
		{"own-and-offered", tags("ja", "fr", "de"), language.French, "fr"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Default()
			cfg.DefaultLanguage = language.German
			cfg.Tenants = map[string]*config.Tenant{"acme": {Languages: tc.languages, DefaultLanguage: tc.own}}
			acme := registryOf(t, cfg).current.Load().tenants["acme"]
			if got := acme.DefaultLanguage.String(); got != tc.want {
				t.Errorf("language %s, want %s", got, tc.want)
			}
			if got := acme.Bundle.Tags(); len(tc.languages) > 0 && fmt.Sprint(got) != fmt.Sprint(tc.languages) {
				t.Errorf("languages %v, want %v", got, tc.languages)
			}
		})
	}
}

// The capabilities that a login reports agree with what the storage allows.
func TestLogin(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	acme.Presign = time.Hour
	hash := servicetest.PasswordHash()
	maps.Copy(acme.Users, map[string]*config.User{
		"writer": {PasswordHash: hash, Permissions: []config.Permission{config.Write}},
		"rooted": {PasswordHash: hash, Root: "/legacy",
			PathPermissions: map[string][]config.Permission{"/in": {config.Write}}},
	})
	acme.PathPermissions = map[string][]config.Permission{"/legacy/keep": {config.List, config.Read}}
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: s.Bucket(t),
		Users: map[string]*config.User{"dave": {PasswordHash: hash}}}
	cfg.Tenants["initech"] = &config.Tenant{
		Bucket: s.Bucket(t), Users: map[string]*config.User{"peter": {PasswordHash: hash}}, Presign: time.Hour,
		S3: config.S3{PublicEndpoint: "https://files.example"},
	}
	umlaut, err := passwordhash.New("wörd")
	must.OK(t, err)
	cfg.Tenants["berlin"] = &config.Tenant{
		Bucket: s.Bucket(t), Users: map[string]*config.User{"hans": {PasswordHash: value.NewSecret(umlaut)}},
		CompatibilityByNetwork: map[value.Network]*config.Compatibility{
			{Prefix: netip.MustParsePrefix("192.0.2.0/24")}: {Charset: servicetest.Encoding(t, "iso-8859-1")},
		},
	}
	gbk, err := passwordhash.New("目录")
	must.OK(t, err)
	cfg.Tenants["beijing"] = &config.Tenant{
		Bucket: s.Bucket(t), Users: map[string]*config.User{"wei": {PasswordHash: value.NewSecret(gbk)}},
		Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "gbk")},
	}
	r := registryBefore(t, cfg, s)
	login := func(t *testing.T, name string) *Login {
		t.Helper()
		l, err := r.Login(
			t.Context(), &LoginRequest{User: name, Password: password,
				BeforeCommit: func(context.Context) error {
					return nil
				}})
		must.OK(t, err)
		return l
	}
	t.Run("password-in-the-charset-of-the-network", func(t *testing.T) {
		for password, right := range map[string]bool{"w\xf6rd": true, "wörd": true, "w\xf6rt": false,
			"w\xc3\xb6\xf6rd": false} {
			_, err := r.Login(t.Context(), &LoginRequest{User: "hans", Password: password,
				RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
			if (err == nil) != right {
				t.Errorf("%q: %v", password, err)
			}
		}
	})
	t.Run("password-that-is-valid-utf-8-by-chance", func(t *testing.T) {
		for password, right := range map[string]bool{"\xc4\xbf\xc2\xbc": true, "目录": true, "目": false} {
			_, err := r.Login(t.Context(), &LoginRequest{User: "wei", Password: password,
				RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}})
			if (err == nil) != right {
				t.Errorf("%q: %v", password, err)
			}
		}
	})
	t.Run("rights", func(t *testing.T) {
		for user, want := range map[string]map[string]string{
			"alice":  {"/": "lrwdnm", "/legacy/x": "lrwdnm", "/legacy/keep": "lr"},
			"writer": {"/": "w", "/legacy/keep": ""},
			"rooted": {"/": "lrwdnm", "/in": "w", "/keep/x": "lr"},
		} {
			for name, want := range want {
				if got := letters(login(t, user).View.Rights(name)); got != want {
					t.Errorf("%s: got %q for %s, want %q", user, got, name, want)
				}
			}
		}
	})
	t.Run("links", func(t *testing.T) {
		peter := login(t, "peter").Files(t.Context(), Client{}, nil)
		must.OK(t, write(peter, "/f", ""))
		if link, err := peter.Presign("/f", time.Hour); err != nil ||
			!strings.HasPrefix(link, "https://files.example/") &&
				!strings.HasPrefix(link, "https://"+cfg.Tenants["initech"].Bucket+".files.example/") {
			t.Errorf("public link: got %s, %v", link, err)
		}
		if login(t, "writer").MayPresign() {
			t.Error("got a link without the right to read")
		}
		if dave := login(t, "dave"); dave.MayPresign() {
			t.Error("got a link of a tenant without presign")
		}
	})
}

// By default, an upload over TLS must end with close_notify.
func TestStrictDataEOF(t *testing.T) {
	for _, test := range []struct {
		tenant  config.TenantTLS
		lenient bool
	}{
		{config.TenantTLS{}, false},
		{config.TenantTLS{StrictDataEOF: aws.Bool(true)}, false},
		{config.TenantTLS{StrictDataEOF: aws.Bool(false)}, true},
	} {
		cfg := config.Default()
		cfg.Tenants = map[string]*config.Tenant{"acme": {TLS: test.tenant}}
		if acme := registryOf(t, cfg).current.Load().tenants["acme"]; acme.LenientDataEOF() != test.lenient {
			t.Errorf("%+v: LenientDataEOF() = %t", test, acme.LenientDataEOF())
		}
	}
}

// Prepare rejects a configuration that the driver or the catalogs reject, and the error names the tenant.
func TestPrepareRefuses(t *testing.T) {
	r := registryOf(t, config.Default())
	for _, tc := range []struct {
		tenant config.Tenant
		files  driver.Options
		want   string
	}{
		{config.Tenant{Users: map[string]*config.User{"alice": {}}}, driver.Options{PartSize: 1},
			"tenant acme: user alice: directory /: driver: option PartSize: 1 bytes is out of range: "},
		{config.Tenant{Languages: []language.Tag{language.MustParse("tlh")}}, driver.Options{},
			"tenant acme: languages: "},
	} {
		cfg := config.Default()
		cfg.Tenants = map[string]*config.Tenant{"acme": &tc.tenant}
		_, err := r.Prepare(
			cfg, r.current.Load().settings.bundle, map[string]*s3client.Bucket{"acme": {Endpoint: endpoint}}, nil,
			tc.files)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("got error %v, want %q", err, tc.want)
		}
	}
}
