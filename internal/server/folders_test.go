package server

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A client works in folders as in any directory.
func TestFoldersSession(t *testing.T) {
	s := s3test.Start(t, "minio") // whose links every HTTP client reaches
	cfg := configtest.New(t, s)
	acme := cfg.Tenants["acme"]
	acme.Presign = time.Hour
	acme.Folders = map[string]*config.Folder{
		"/archive":       {Bucket: s.Bucket(t), Prefix: "2024/", Permissions: granted("lr")},
		"/archive/inbox": {Bucket: s.Bucket(t)},
		"/caf\u00e9":     {Prefix: "coffee/", S3: config.S3{}},
		"/alice/mine":    {Prefix: "mine/"},
	}
	maps.Copy(acme.Users, map[string]*config.User{
		"bob":   {PasswordHash: configtest.PasswordHash(), Root: "/archive"},
		"carol": {PasswordHash: configtest.PasswordHash(), Root: "/archive/inbox/carol", Home: "/new"},
	})
	srv := start(t, cfg, Options{AWS: s.AWSConfig()})
	object := func(bucket, key string) bool {
		_, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String(key)})
		return err == nil
	}
	put(t, s, cfg, "file")
	_, err := s.Client().PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: &acme.Folders["/archive"].Bucket, Key: aws.String("2024/report"),
			Body: strings.NewReader("annual")})
	if err != nil {
		t.Fatal(err)
	}

	c := session(t, srv, "alice")
	c.Command(200, "OPTS MLST type;perm;")
	want := "type=dir;perm=celmp; alice\r\ntype=dir;perm=el; archive\r\ntype=dir;perm=celmp; " +
		"caf\u00e9\r\ntype=file;perm=adfrw; file\r\n"
	if got := c.Transfer("MLSD /"); got != want {
		t.Errorf("MLSD /: %q, want %q", got, want)
	}
	c.Command(250, "CWD /alice")
	if got := c.Transfer("NLST"); got != "mine\r\n" {
		t.Errorf("the home lists %q", got)
	}
	c.Command(250, "CWD /archive")
	if got := c.Transfer("NLST"); got != "inbox\r\nreport\r\n" {
		t.Errorf("the archive lists %q", got)
	}
	if got := c.Transfer("RETR report"); got != "annual" {
		t.Errorf("the report holds %q", got)
	}
	if got := c.Command(200, "SITE URL report"); !strings.Contains(
		got, "s3://"+acme.Folders["/archive"].Bucket+"/2024/report") {
		t.Errorf("SITE URL: %s", got)
	}
	if got := c.Command(200, "SITE PRESIGN report"); !strings.Contains(
		got, "/"+acme.Folders["/archive"].Bucket+"/2024/report?") {
		t.Errorf("SITE PRESIGN: %s", got)
	}
	c.Command(550, "DELE report")
	c.Store("inbox/new", "x")
	if !object(acme.Folders["/archive/inbox"].Bucket, "new") {
		t.Error("the upload is in no bucket")
	}
	c.Command(250, "CWD /cafe\u0301")
	c.Store("cup", "x")
	if !object(acme.Bucket, "coffee/cup") {
		t.Error("a folder is not found in the other Unicode form")
	}
	c.Command(350, "RNFR cup")
	c.Command(250, "RNTO /cup")
	c.Command(350, "RNFR /cup")
	c.Command(250, "RNTO /archive/inbox/cup")
	c.Command(213, "SIZE /archive/inbox/cup")
	for _, command := range []string{"RMD /caf\u00e9", "SITE RMDIR /alice", "MKD /archive", "STAT /archive/nothing"} {
		c.Command(550, command)
	}

	if got := session(t, srv, "bob").Transfer("NLST /"); got != "/inbox\r\n/report\r\n" {
		t.Errorf("bob's root lists %q", got)
	}
	carol := session(t, srv, "carol")
	carol.Store("x", "x")
	if !object(acme.Folders["/archive/inbox"].Bucket, "carol/new/x") {
		t.Error("carol's upload is not in the folder")
	}
	if _, body := get(t, srv, "/metrics"); !strings.Contains(
		body, `babelftp_s3_requests_total{operation="PutObject",status="200",tenant="acme"} 3`) {
		t.Error("uploads to the folders are not counted")
	}
}

// An error of a folder names the keys to correct.
func TestCheckFolders(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := configtest.New(t, s)
	acme := cfg.Tenants["acme"]
	acme.Folders = map[string]*config.Folder{
		"/fine":    {Bucket: s.Bucket(t)},
		"/missing": {Bucket: "no-such-bucket"},
		"/part":    {Prefix: "part/"},
		"/wrong": {Bucket: s.Bucket(t),
			S3: config.S3{AccessKeyID: "nobody", SecretAccessKey: value.NewSecret("wrong")}},
	}
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(
		`tenant acme: folder /missing: bucket "no-such-bucket": does not exist at %s: create it, or correct tenants.acme.folders./missing.bucket
tenant acme: folder /wrong: bucket %q: %[1]s refuses the credentials (InvalidAccessKeyId): correct tenants.acme.folders./wrong.s3.access_key_id and `+
			`tenants.acme.folders./wrong.s3.secret_access_key`, s.Endpoint, acme.Folders["/wrong"].Bucket)
	if err := probe(t, srv); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if len(srv.buckets()) != 5 {
		t.Errorf("%d buckets are watched", len(srv.buckets()))
	}
}
