package server

import (
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// granted reads the letters of permissions: l(ist) r(ead) w(rite) d(elete) n(ame, rename) m(kdir).
func granted(text string) []config.Permission {
	permissions := []config.Permission{}
	for i, p := range config.AllPermissions() {
		if strings.Contains(text, "lrwdnm"[i:i+1]) {
			permissions = append(permissions, p)
		}
	}
	return permissions
}

// permitted is a user with permissions in the letters of [granted].
func permitted(t *testing.T, everywhere string, byPath map[string]string) *config.User {
	t.Helper()
	u := &config.User{PasswordHash: configtest.PasswordHash(), Permissions: granted(everywhere),
		PathPermissions: map[string][]config.Permission{}}
	for pattern, letters := range byPath {
		u.PathPermissions[pattern] = granted(letters)
	}
	return u
}

// put stores objects under the prefix of the tenant acme.
func put(t *testing.T, s *s3test.Server, cfg *config.Config, keys ...string) {
	t.Helper()
	const atOnce = 16
	acme, client := cfg.Tenants["acme"], s.Client()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, key := range keys {
		group.Go(func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &acme.Bucket, Key: aws.String(acme.Prefix + key), Body: strings.NewReader("content"),
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// session logs in as a user of the tenant acme.
func session(t *testing.T, srv *Server, user string) *ftptest.Client {
	t.Helper()
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login(user+"@acme", configtest.Password)
	return c
}

// What each command answers to the user of a drop box: the same about what others have stored as about nothing.
func TestDropBoxSession(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	cfg.Tenants["acme"].Users["scanner"] = permitted(t, "wn", nil)
	put(t, s, cfg, "theirs/file", "file")
	c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "scanner")

	c.Command(257, "PWD")
	for _, name := range []string{"/theirs", "/nothing", "/file", "/theirs/file", "/"} {
		c.Command(250, "CWD "+name)
	}
	c.Command(250, "CWD /theirs/deeper")
	c.Command(250, "CDUP")
	for _, name := range []string{"file", "nothing", "/theirs", "/nothing"} {
		for _, command := range []string{
			"SIZE", "MDTM", "MLST", "RNFR", "DELE", "RMD", "MKD", "STAT", "MFMT 20240102030405", "SITE URL",
			"SITE RMDIR",
		} {
			c.Command(550, command+" "+name)
		}
		for _, command := range []string{"LIST", "NLST", "MLSD", "RETR"} {
			conn := c.Data()
			c.Command(550, command+" "+name)
			_ = conn.Close()
		}
		c.Command(350, "REST 3")
		conn := c.Data()
		c.Command(550, "STOR "+name)
		_ = conn.Close()
	}
	c.Store("scan.tmp", "mine")
	if size := c.Command(213, "SIZE scan.tmp"); size != "4" {
		t.Errorf("the size of an upload is %s", size)
	}
	c.Command(213, "MDTM scan.tmp")
	c.Command(213, "MFMT 20240102030405 scan.tmp")
	if entry := c.Command(250, "MLST scan.tmp"); !strings.Contains(entry, "perm=afw;") {
		t.Errorf("MLST: %s", entry)
	}
	c.Command(350, "RNFR scan.tmp")
	c.Command(250, "RNTO scan.pdf")
	c.Command(213, "SIZE scan.pdf")
	c.Command(550, "SIZE scan.tmp")
	conn := c.Data()
	c.Command(150, "APPE file")
	_ = conn.Close()
	c.Reply(226)
	conn = c.Data()
	if opening := c.Command(150, "STOU"); !strings.Contains(opening, "ftp-") {
		t.Errorf("STOU: %s", opening)
	}
	_ = conn.Close()
	c.Reply(226)
}

// Rights by pathname, met by a client: what the tenant allows at most, what the user's root makes of it, and a
// read-only user.
func TestPathPermissionsSession(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	acme := cfg.Tenants["acme"]
	acme.PathPermissions = map[string][]config.Permission{"/*/archive": granted("lr")}
	maps.Copy(acme.Users, map[string]*config.User{
		"partner": permitted(
			t, "", map[string]string{"/in": "w", "/out": "lr", "/out/*.pdf": "lrd", "/archive": "lrwdnm"}),
		"reader": permitted(t, "lr", nil),
	})
	acme.Users["partner"].Root = "/partner"
	put(t, s, cfg, "partner/in/old", "partner/out/a.pdf", "partner/out/b.txt", "partner/archive/x", "partner/secret/y")
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})

	c := session(t, srv, "partner")
	for _, dir := range []string{"/in", "/out", "/archive", "/"} {
		c.Command(250, "CWD "+dir)
	}
	c.Command(550, "CWD /secret")
	conn := c.Data()
	c.Command(550, "NLST")
	_ = conn.Close()
	if got := c.Transfer("MLSD /out"); strings.Count(got, "perm=dr; a.pdf\r\n")+
		strings.Count(got, "perm=r; b.txt\r\n") != 2 {
		t.Errorf("MLSD /out: %s", got)
	}
	c.Command(250, "DELE /out/a.pdf")
	c.Command(550, "DELE /out/b.txt")
	c.Command(550, "DELE /archive/x") // the tenant's word
	c.Command(550, "RNFR /archive/x")
	if got := c.Transfer("RETR /archive/x"); got != "content" {
		t.Errorf("the archive holds %q", got)
	}
	c.Store("/in/new", "x")
	c.Command(550, "SITE RMDIR /in")
	c.Command(550, "MKD /out/sub")

	c = session(t, srv, "reader")
	if got := c.Transfer("NLST /partner/out"); got != "/partner/out/b.txt\r\n" {
		t.Errorf("NLST: %q", got)
	}
	c.Command(213, "SIZE /partner/out/b.txt")
	c.Command(550, "RNFR /partner/out/b.txt")
	for _, command := range []string{
		"DELE /partner/out/b.txt", "MKD /new", "RMD /partner", "MFMT 20240102030405 /partner/out/b.txt",
		"SITE MKDIR /a/b",
	} {
		c.Command(550, command)
	}
	conn = c.Data()
	c.Command(550, "STOR /new")
	_ = conn.Close()
}
