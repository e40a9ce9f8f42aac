package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/s3test"
)

// A user's root may be above folders, in one, or one itself.
func TestMountsOf(t *testing.T) {
	b := &s3client.Bucket{Name: "acme", Prefix: "inbox/"}
	for _, folder := range []string{"/archive", "/archive/old", "/team/caf\u00e9", "/team/e\u0301t"} {
		b.Folders = append(b.Folders, &s3client.Bucket{Name: "of" + strings.ReplaceAll(folder, "/", "-"), Folder: folder, Prefix: "p/"})
	}
	for root, want := range map[string]string{
		"":                       "/ acme inbox/, /archive of-archive p/, /archive/old of-archive-old p/, /team/caf\u00e9 of-team-caf\u00e9 p/, /team/\u00e9t of-team-e\u0301t p/",
		"/":                      "/ acme inbox/, /archive of-archive p/, /archive/old of-archive-old p/, /team/caf\u00e9 of-team-caf\u00e9 p/, /team/\u00e9t of-team-e\u0301t p/",
		"/team":                  "/ acme inbox/team/, /caf\u00e9 of-team-caf\u00e9 p/, /\u00e9t of-team-e\u0301t p/",
		"/other/e\u0301":         "/ acme inbox/other/e\u0301/",
		"/archive":               "/ of-archive p/, /old of-archive-old p/",
		"/archive/2024/e\u0301":  "/ of-archive p/2024/e\u0301/",
		"/archive/old":           "/ of-archive-old p/",
		"/archive/old/a/b":       "/ of-archive-old p/a/b/",
		"/archives":              "/ acme inbox/archives/",
		"/team/cafe\u0301/inner": "/ of-team-caf\u00e9 p/inner/",
	} {
		t.Run(root, func(t *testing.T) {
			var got []string
			for _, m := range mountsOf(b, root, norm.NFC.String) {
				got = append(got, m.at+" "+m.bucket.Name+" "+m.prefix)
			}
			slices.Sort(got)
			if strings.Join(got, ", ") != want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
			}
		})
	}
}

// mounted is a storage with folders in a second bucket, in the first one, and one on another client.
func mounted(t *testing.T, s *s3test.Server) (storage *folders, first, second *s3client.Bucket) {
	t.Helper()
	client := s.Client()
	first = &s3client.Bucket{Name: s.Bucket(t), Client: client}
	second = &s3client.Bucket{Name: s.Bucket(t), Client: client}
	storage = newFolders([]mount{
		{at: "/", bucket: first, prefix: "home/"},
		{at: "/archive", bucket: second, prefix: "2024/"},
		{at: "/archive/old", bucket: second, prefix: "2023/"},
		{at: "/deep/down/here", bucket: first, prefix: "here/"},
		{at: "/deep/down/there", bucket: &s3client.Bucket{Name: second.Name, Client: s.Client()}, prefix: "there/"},
	}, func(b *s3client.Bucket, prefix string) *driver.Fs {
		return driver.New(t.Context(), b.Client, b.Name, &driver.Options{Prefix: prefix})
	}).(*folders)
	return storage, first, second
}

// fill stores objects whose content is their key.
func fill(t *testing.T, b *s3client.Bucket, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := b.Client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.Name, Key: &key, Body: strings.NewReader(key)})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func has(t *testing.T, b *s3client.Bucket, key string) bool {
	t.Helper()
	_, err := b.Client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.Name, Key: &key})
	return err == nil
}

// names lists a directory, directories with a slash.
func names(t *testing.T, storage *folders, dir string) string {
	t.Helper()
	entries, err := storage.ReadDirSeq(dir)
	if err != nil {
		return err.Error()
	}
	var names []string
	for info, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		name := info.Name()
		if info.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// A listing shows the folders among the other entries, each once, and nothing that they hide.
func TestListFolders(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		if got := names(t, storage, "/"); got != "archive/ deep/" {
			t.Errorf("of empty buckets: %s", got)
		}
		// Around "archive/", which ends with the byte 2F, and the second in its own way.
		fill(t, first, "home/a", "home/archive-1", "home/archive.txt", "home/archive/hidden", "home/archive0", "home/deep/x", "home/zzz/y")
		fill(t, second, "2024/jan", "2024/old/hidden", "2024/sep", "2023/before", "elsewhere")
		for dir, want := range map[string]string{
			"/":                "a archive-1 archive.txt archive/ archive0 deep/ zzz/",
			"/archive":         "jan old/ sep",
			"/archive/":        "jan old/ sep",
			"/archive/old":     "before",
			"/deep":            "down/ x",
			"/deep/down":       "here/ there/",
			"/deep/down/here":  "",
			"/deep/down/there": "",
			"/zzz":             "y",
			"/nothing":         "readdir /nothing: file does not exist",
			"/archive/nothing": "readdir /nothing: file does not exist",
		} {
			if got := names(t, storage, dir); got != want {
				t.Errorf("%s: %s, want %s", dir, got, want)
			}
			if _, err := storage.StatDir(dir); (err == nil) == strings.Contains(want, "not exist") {
				t.Errorf("StatDir %s: %v", dir, err)
			}
		}
		entries, err := storage.ReadDirSeq("/")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range entries {
			if err != nil {
				t.Error(err)
			}
			break // and nothing goes on
		}
	})
}

// A file of the name of a folder is hidden by it, one of the name of a directory above a folder is beside it.
func TestFoldersHideFiles(t *testing.T) {
	storage, first, second := mounted(t, s3test.Start(t, "embedded"))
	fill(t, first, "home/archive", "home/deep")
	fill(t, second, "2024/old")
	for dir, want := range map[string]string{"/": "archive/ deep deep/", "/archive": "old/"} {
		if got := names(t, storage, dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
	if _, err := storage.StatFile("/archive"); err == nil {
		t.Error("the file that is hidden is found")
	}
	if info, err := storage.Stat("/archive"); err != nil || !info.IsDir() || info.Name() != "archive" {
		t.Errorf("the folder is %v, %v", info, err)
	}
	if err := storage.RemoveFile("/archive"); !errors.Is(err, syscall.EISDIR) || !has(t, first, "home/archive") {
		t.Errorf("the hidden file is removed: %v", err)
	}
}

// A listing of more than one page goes through the pages once, with the folders in their places.
func TestListFoldersOfManyEntries(t *testing.T) {
	storage, first, _ := mounted(t, s3test.Start(t, "minio"))
	var want []string
	for i := range 1100 {
		fill(t, first, fmt.Sprintf("home/b%04d", i))
		want = append(want, fmt.Sprintf("b%04d", i))
	}
	want = append(append([]string{"archive/"}, want...), "deep/")
	if got := names(t, storage, "/"); got != strings.Join(want, " ") {
		t.Errorf("%d entries, want %d", strings.Count(got, " ")+1, len(want))
	}
}

func TestFoldersRoute(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		now := time.Unix(1700000000, 0)
		for name, where := range map[string]struct {
			bucket *s3client.Bucket
			key    string
		}{
			"/f":                {first, "home/f"},
			"/archive/f":        {second, "2024/f"},
			"archive/old/f":     {second, "2023/f"},
			"/archive/older/f":  {second, "2024/older/f"},
			"/archives/f":       {first, "home/archives/f"},
			"/deep/down/here/f": {first, "here/f"},
			"/deep/down/f":      {first, "home/deep/down/f"},
		} {
			if err := afero.WriteFile(storage, name, []byte(name), 0); err != nil {
				t.Fatal(err)
			}
			if !has(t, where.bucket, where.key) {
				t.Errorf("%s is not %s", name, where.key)
			}
			if got, want := storage.URI(name), "s3://"+where.bucket.Name+"/"+where.key; got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if content, err := afero.ReadFile(storage, name); err != nil || string(content) != name {
				t.Errorf("%s holds %q, %v", name, content, err)
			}
			if err := storage.Chtimes(name, now, now); err != nil {
				t.Error(err)
			}
			if info, err := storage.StatFile(name); err != nil || !info.ModTime().Equal(now) {
				t.Errorf("%s: %v, %v", name, info, err)
			}
			if err := storage.RemoveFile(name); err != nil || has(t, where.bucket, where.key) {
				t.Errorf("%s is still there: %v", name, err)
			}
		}
		if err := errors.Join(storage.Mkdir("/archive/new", 0), storage.MkdirAll("/archive/old/a/b", 0), storage.MkdirAll("/deep/down", 0)); err != nil {
			t.Error(err)
		}
		if !has(t, second, "2024/new/") || !has(t, second, "2023/a/b/") {
			t.Error("directories are not made in the folders")
		}
		if err := errors.Join(storage.RemoveDir("/archive/new"), storage.RemoveAll("/archive/old/a")); err != nil {
			t.Error(err)
		}
	})
}

// What leads to a folder is there, and stays.
func TestFoldersStay(t *testing.T) {
	storage, first, second := mounted(t, s3test.Start(t, "embedded"))
	fill(t, first, "home/file", "home/dir/file")
	fill(t, second, "2024/file")
	for _, dir := range []string{"/", "/archive", "/archive/old", "/deep", "/deep/down/", "/deep/down/here"} {
		for _, stat := range []func(string) (fs.FileInfo, error){storage.Stat, storage.StatDir} {
			if info, err := stat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s is %v, %v", dir, info, err)
			}
		}
		if dir == "/" {
			continue
		}
		for label, err := range map[string]error{
			"remove":      storage.Remove(dir),
			"remove-dir":  storage.RemoveDir(dir),
			"remove-all":  storage.RemoveAll(dir),
			"rename":      storage.Rename(dir, "/elsewhere"),
			"rename-to":   storage.Rename("/dir", dir),
			"rename-file": storage.Rename("/file", dir),
			"copy":        storage.Copy(t.Context(), dir, "/elsewhere"),
			"copy-to":     storage.Copy(t.Context(), "/file", dir),
		} {
			if !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s %s: %v", label, dir, err)
			}
		}
		if err := storage.Mkdir(dir, 0); !errors.Is(err, fs.ErrExist) {
			t.Errorf("mkdir %s: %v", dir, err)
		}
		if _, err := storage.Open(dir); !errors.Is(err, syscall.EISDIR) && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open %s: %v", dir, err)
		}
	}
	for _, folder := range []string{"/archive", "/archive/old"} {
		if _, err := storage.OpenAt(folder, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0); !errors.Is(err, syscall.EISDIR) {
			t.Errorf("a file in the place of %s: %v", folder, err)
		}
	}
	if !has(t, first, "home/file") || !has(t, first, "home/dir/file") || !has(t, second, "2024/file") {
		t.Error("something has gone")
	}
}

// A rename from one folder to another is S3's, and refused where the folders are of two accounts.
func TestRenameBetweenFolders(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		fill(t, first, "home/file", "home/dir/a/b", "home/other/c", "home/stays")
		fill(t, second, "2024/file", "2024/dir/c")
		for from, to := range map[string]string{
			"/archive/file": "/archive/renamed",
			"/file":         "/deep/down/here/moved",
			"/dir":          "/deep/down/here/dir",
			"/archive/dir":  "/archive/old/dir",
			"/other":        "/archive/other",
		} {
			if err := storage.Copy(t.Context(), from, to+"-copy"); err != nil {
				t.Errorf("copy %s to %s: %v", from, to, err)
			}
			if err := storage.Rename(from, to); err != nil {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
		for key, b := range map[string]*s3client.Bucket{
			"2024/renamed": second, "2024/renamed-copy": second, "here/moved": first, "here/moved-copy": first, "2023/dir-copy/c": second, "here/dir/a/b": first, "2023/dir/c": second,
			"2024/other/c": second, "2024/other-copy/c": second,
		} {
			if !has(t, b, key) {
				t.Errorf("%s is missing", key)
			}
		}
		for key, b := range map[string]*s3client.Bucket{"home/file": first, "home/dir/a/b": first, "2024/dir/c": second} {
			if has(t, b, key) {
				t.Errorf("%s is still there", key)
			}
		}
		err := storage.Rename("/stays", "/deep/down/there/stays")
		var link *os.LinkError
		if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, syscall.EXDEV) || !errors.As(err, &link) || !has(t, first, "home/stays") {
			t.Errorf("to another account: %v", err)
		}
	})
}

// A client works in folders as in any directory.
func TestFoldersSession(t *testing.T) {
	s := s3test.Start(t, "minio") // whose links every HTTP client reaches
	cfg := newConfig(t, s)
	acme := cfg.Tenants["acme"]
	acme.Presign = time.Hour
	acme.Folders = map[string]*config.Folder{
		"/archive":       {Bucket: s.Bucket(t), Prefix: "2024/", Permissions: granted("lr")},
		"/archive/inbox": {Bucket: s.Bucket(t)},
		"/caf\u00e9":     {Prefix: "coffee/", S3: config.S3{}},
		"/alice/mine":    {Prefix: "mine/"},
	}
	maps.Copy(acme.Users, map[string]*config.User{
		"bob":   {PasswordHash: passwordHash(t), Root: "/archive"},
		"carol": {PasswordHash: passwordHash(t), Root: "/archive/inbox/carol", Home: "/new"},
	})
	srv := start(t, cfg, Options{AWS: awsOf(s)})
	object := func(bucket, key string) bool {
		_, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String(key)})
		return err == nil
	}
	put(t, s, cfg, "file")
	_, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &acme.Folders["/archive"].Bucket, Key: aws.String("2024/report"), Body: strings.NewReader("annual")})
	if err != nil {
		t.Fatal(err)
	}

	c := session(t, srv, "alice")
	c.Command(200, "OPTS MLST type;perm;")
	want := "type=dir;perm=celmp; alice\r\ntype=dir;perm=el; archive\r\ntype=dir;perm=celmp; caf\u00e9\r\ntype=file;perm=adfrw; file\r\n"
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
	if got := c.Command(200, "SITE URL report"); !strings.Contains(got, "s3://"+acme.Folders["/archive"].Bucket+"/2024/report") {
		t.Errorf("SITE URL: %s", got)
	}
	if got := c.Command(200, "SITE PRESIGN report"); !strings.Contains(got, "/"+acme.Folders["/archive"].Bucket+"/2024/report?") {
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
	if _, body := get(t, srv, "/metrics"); !strings.Contains(body, `babelftp_s3_requests_total{operation="PutObject",status="200"} 3`) {
		t.Error("uploads to the folders are not counted")
	}
}

// Whatever cannot be used of a folder is told with the keys to correct.
func TestCheckFolders(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := newConfig(t, s)
	acme := cfg.Tenants["acme"]
	acme.Folders = map[string]*config.Folder{
		"/fine":    {Bucket: s.Bucket(t)},
		"/missing": {Bucket: "no-such-bucket"},
		"/part":    {Prefix: "part/"},
		"/wrong":   {Bucket: s.Bucket(t), S3: config.S3{AccessKeyID: "nobody", SecretAccessKey: config.NewSecret("wrong")}},
	}
	srv, err := New(t.Context(), cfg, Options{AWS: awsOf(s)})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`tenant acme: folder /missing: bucket "no-such-bucket": does not exist at %s: create it, or correct tenants.acme.folders./missing.bucket
tenant acme: folder /wrong: bucket %q: %[1]s refuses the credentials (InvalidAccessKeyId): correct tenants.acme.folders./wrong.s3.access_key_id and `+
		`tenants.acme.folders./wrong.s3.secret_access_key`, s.Endpoint, acme.Folders["/wrong"].Bucket)
	if err := srv.CheckBuckets(context.WithoutCancel(t.Context())); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if len(srv.buckets) != 5 {
		t.Errorf("%d buckets are watched", len(srv.buckets))
	}
}
