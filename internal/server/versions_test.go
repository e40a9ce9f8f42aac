package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// versionedConfig returns a configuration whose users see older versions.
func versionedConfig(t *testing.T, s *s3test.Server) *config.Config {
	t.Helper()
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	acme.Bucket = s.VersionedBucket(t)
	acme.VersionsDirectory = ".versions"
	must.OK(t, acme.Timezone.UnmarshalText([]byte("Pacific/Auckland")))
	return cfg
}

// A user can be denied access to older versions, also by a rule of the tenant, and then does not see the directory.
func TestVersionsPermissions(t *testing.T) {
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		cfg := versionedConfig(t, s)
		acme := cfg.Tenants["acme"]
		put(t, s, cfg, "file")
		c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
		c.Want("/.versions\r\n/file\r\n", "NLST /")
		acme.PathPermissions = map[string][]config.Permission{"/.versions": {}}
		c = session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
		c.Want("/file\r\n", "NLST /")
		for _, command := range []string{"CWD /.versions", "CWD /.versions/deleted", "MLST /.versions",
			"SIZE /.versions/2020-01-01/file", "RNFR /.versions/deleted/file"} {
			c.Command(550, command)
		}
	})
}

// A client lists older versions, reads them, and restores one by renaming it.
func TestVersions(t *testing.T) {
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		cfg := versionedConfig(t, s)
		put(t, s, cfg, "alice/reports/old/other")
		c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
		c.Store("reports/mistake", "right")
		c.Command(213, "MFMT 20240102030405 reports/mistake")
		before := time.Now()
		for before.Unix() == time.Now().Unix() { // wait for the next second, in which S3 stores new versions
			c.Command(200, "NOOP")
		}
		c.Store("reports/mistake", "wrong")
		c.Command(250, "DELE reports/old/other")

		zone, err := time.LoadLocation("Pacific/Auckland")
		must.OK(t, err)
		then := before.In(zone).Format("2006-01-02T15-04-05")
		for _, at := range []string{then, before.UTC().Format("2006-01-02T15:04:05Z")} {
			dir := "/.versions/" + at + "/alice"
			c.Command(250, "CWD "+dir+"/reports")
			if pwd := c.Command(257, "PWD"); !strings.Contains(pwd, dir) {
				t.Errorf("PWD: got %s", pwd)
			}
			c.Want("right", "RETR mistake")
			c.Command(350, "REST 3")
			c.Want("ht", "RETR mistake")
			c.Command(200, "TYPE I")
			c.WantReply(213, "5", "SIZE mistake")
			c.WantReply(213, "20240102030405", "MDTM mistake")
			if got := c.Command(213, "HASH mistake"); !strings.Contains(got, " 0-4 ") {
				t.Errorf("HASH: got %s", got)
			}
			c.Want("mistake\r\nold\r\n", "NLST")
			if got := c.Transfer("MLSD"); !strings.Contains(got, "perm=fr; mistake\r\n") ||
				!strings.Contains(got, "type=dir;") || !strings.Contains(got, "perm=efl; old\r\n") {
				t.Errorf("MLSD: %q", got)
			}
		}
		now := "/.versions/" + time.Now().In(zone).Format("2006-01-02") + "/alice/reports"
		c.Want("wrong", "RETR "+now+"/mistake")
		if got := c.Transfer("NLST " + now); got != now+"/mistake\r\n" { // no empty directory
			t.Errorf("NLST of today: got %q", got)
		}
		if got := c.Transfer("NLST /.versions/deleted/alice/reports/old"); !strings.HasSuffix(got, "/other\r\n") {
			t.Errorf("NLST of deleted files: got %q", got)
		}
		days := strings.Fields(c.Transfer("NLST /.versions"))
		yesterday := time.Now().In(zone).AddDate(0, 0, -1).Format("2006-01-02")
		if len(days) != 31 || days[29] != "/.versions/"+yesterday || days[30] != "/.versions/deleted" {
			t.Errorf("got days %q", days)
		}
		c.Want("/.versions\r\n/alice\r\n", "NLST /")

		file := "/.versions/" + then + "/alice/reports/mistake"
		c.WantReply(550, "Earlier versions of files cannot be changed. ("+file+")", "DELE "+file)
		for _, name := range []string{"/.versions/2999-01-01", "/.versions/yesterday", "/.versions/2001-02-03/alice",
			"/.versions/deleted/alice/reports/new"} {
			c.Command(550, "CWD "+name)
		}
		c.Command(250, "CWD /.versions/2001-02-03")

		c.Command(350, "RNFR "+file)
		c.Command(250, "RNTO /alice/reports/mistake")
		c.Want("right", "RETR /alice/reports/mistake")
		c.WantReply(213, "20240102030405", "MDTM /alice/reports/mistake")
		c.Want("right", "RETR "+file)
		c.Command(350, "SITE CPFR /.versions/deleted/alice/reports/old")
		c.Command(250, "SITE CPTO /alice/old")
		c.Want("content", "RETR /alice/old/other")
	})
}

// Older versions are shown with each user's own root and time zone. Package view tests the permissions.
func TestVersionsOfUsers(t *testing.T) {
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		cfg := versionedConfig(t, s)
		var honolulu value.Zone
		must.OK(t, honolulu.UnmarshalText([]byte("Pacific/Honolulu")))
		cfg.Tenants["acme"].Users["rooted"] = &config.User{PasswordHash: servicetest.PasswordHash(), Root: "/team", Timezone: honolulu}
		put(t, s, cfg, "team/file")
		rooted := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "rooted")
		rooted.Want("content", "RETR /.versions/"+time.Now().UTC().Format("2006-01-02T15:04:05Z")+"/file")
		yesterday := time.Now().In(honolulu.Location()).AddDate(0, 0, -1).Format("2006-01-02")
		if days := strings.Fields(rooted.Transfer("NLST /.versions")); days[29] != "/.versions/"+yesterday {
			t.Errorf("got days %q for Honolulu", days)
		}
	})
}

// A tenant with versions_directory is refused if the bucket has no versioning, because the directory would be empty.
func TestVersionsNeedVersioning(t *testing.T) {
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		cfg := versionedConfig(t, s)
		acme := cfg.Tenants["acme"]
		if s.Name == "minio" { // supports RestoreObject
			acme.Restore.Days = 3
		}
		if got := probe(t, cfg, s.AWSConfig()); got != "" {
			t.Errorf("check of a bucket that keeps versions: got %s", got)
		}
		acme.Bucket = s.Bucket(t)
		want := fmt.Sprintf("tenant acme: bucket %q: versioning is not enabled, which versions_directory "+
			"requires: enable versioning, or remove versions_directory", acme.Bucket)
		if got := probe(t, cfg, s.AWSConfig()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// TestRestoreIsAudited checks that every way to bring back an older version is a restore in the audit log and the
// webhook, whether S3 restores it or not, and that nothing else is.
func TestRestoreIsAudited(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := versionedConfig(t, s)
	hook, told := newWebhook(t)
	cfg.Tenants["acme"].Webhook = hook
	cfg.Tenants["acme"].Webhook.Skip = []string{"*.tmp"}
	var moment string
	type want struct{ event, outcome, from, to string }
	wants := []want{}
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Login("alice", servicetest.Password)
		c.Store("file", "content")
		c.Command(257, "MKD /dir")
		c.Store("/dir/inner", "content")
		before := time.Now()
		for before.Unix() == time.Now().Unix() { // wait for the next second, in which S3 stores new versions
			c.Command(200, "NOOP")
		}
		moment = "/.versions/" + before.UTC().Format("2006-01-02T15-04-05Z")
		move := func(event, outcome string, code int, from, to string, commands ...string) {
			t.Helper()
			for _, command := range commands[:len(commands)-1] {
				c.Command(350, command)
			}
			c.Command(code, commands[len(commands)-1])
			wants = append(wants, want{event, outcome, from, to})
		}
		file, dir := moment+"/alice/file", moment+"/dir"
		move("restore", "ok", 250, file, "/alice/a", "RNFR "+file, "RNTO a")
		move("restore", "ok", 250, file, "/alice/b", "SITE CPFR "+file, "SITE CPTO b")
		move("restore", "ok", 200, file, "/alice/c", "SITE COPY "+file+" c")
		move("restore", "ok", 250, dir, "/dir2", "RNFR "+dir, "RNTO /dir2")
		move("restore", "ok", 250, dir, "/dir3", "SITE CPFR "+dir, "SITE CPTO /dir3")
		c.Store("/dir/inner", "changed")
		move("restore", "failed", 550, dir, "/dir", "RNFR "+dir, "RNTO /dir")
		move("restore", "ok", 250, file, "/alice/x.tmp", "RNFR "+file, "RNTO x.tmp") // sends no event
		move("rename", "ok", 250, "/alice/a", "/alice/d", "RNFR a", "RNTO d")
		move("copy", "ok", 250, "/alice/d", "/alice/e", "SITE CPFR d", "SITE CPTO e")
		move("rename", "failed", 550, "/alice/d", moment+"/alice/d", "RNFR d", "RNTO "+moment+"/alice/d")
	})
	var got []want
	for _, line := range lines {
		if line["to_path"] != nil {
			got = append(got, want{line["event"].(string), line["outcome"].(string), line["path"].(string),
				line["to_path"].(string)})
		}
	}
	if !slices.Equal(got, wants) {
		t.Errorf("the audit log has\n%v, want\n%v", got, wants)
	}
	for _, w := range wants {
		if w.outcome != "ok" || strings.HasSuffix(w.to, ".tmp") {
			continue
		}
		e := next(t, told)
		for e.ToPath == "" { // skip earlier uploads
			e = next(t, told)
		}
		if string(e.Type) != w.event || e.Path != w.from || e.ToPath != w.to {
			t.Errorf("event %+v, want %v", e, w)
		}
	}
}
