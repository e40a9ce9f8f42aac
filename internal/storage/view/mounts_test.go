package view

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// mounted returns a storage with mounts in its own bucket, in a second bucket, and with another client.
func mounted(t *testing.T, s *s3test.Server) (storage *Files, first, second *bucket) {
	t.Helper()
	client := s.Client()
	first = &bucket{name: s.Bucket(t), client: client}
	second = &bucket{name: s.Bucket(t), client: client}
	mount := func(dir string, b *bucket, prefix string) Mount {
		return Mount{Dir: dir,
			Store: NewStore(
				drivertest.MustNew(t.Context(), b.client, b.name, &driver.Options{Prefix: prefix}).Driver),
			Account: b.client}
	}
	mounts := NewMounts(
		mount("/", first, "home/"),
		mount("/archive", second, "2024/"),
		mount("/archive/old", second, "2023/"),
		mount("/deep/down/here", first, "here/"),
		mount("/deep/down/there", &bucket{name: second.name, client: s.Client()}, "there/"),
	)
	view := &View{Mounts: mounts, Directories: NewDirectories("/")}
	storage = view.For(t.Context(), nil)
	return storage, first, second
}

func (b *bucket) has(t *testing.T, key string) bool {
	t.Helper()
	_, err := b.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	return err == nil
}

// names lists a directory. The names of directories end with a slash.
func names(t *testing.T, storage *Files, dir string) string {
	t.Helper()
	entries, err := storage.List(dir)
	if err != nil {
		return err.Error()
	}
	var names []string
	for info, err := range entries {
		must.OK(t, err)
		name := info.Name()
		if info.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// A listing shows each mount once, in the order of the names, and nothing that a mount hides.
func TestListMounts(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		if got := names(t, storage, "/"); got != "archive/ deep/" {
			t.Errorf("empty buckets: got %s", got)
		}
		// The first bucket has names that sort before and after "archive/", whose slash is the byte 2F.
		first.fill(
			t, "home/a", "home/archive-1", "home/archive.txt", "home/archive/hidden", "home/archive0", "home/deep/x",
			"home/zzz/y")
		second.fill(t, "2024/jan", "2024/old/hidden", "2024/sep", "2023/before", "elsewhere")
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
			"/archive/nothing": "readdir /archive/nothing: file does not exist",
		} {
			if got := names(t, storage, dir); got != want {
				t.Errorf("%s: got %s, want %s", dir, got, want)
			}
			if _, err := storage.StatDir(dir); (err == nil) == strings.Contains(want, "not exist") {
				t.Errorf("StatDir %s: %v", dir, err)
			}
		}
		entries, err := storage.List("/")
		must.OK(t, err)
		for _, err := range entries {
			if err != nil {
				t.Error(err)
			}
			break // no goroutine may continue
		}
	})
}

// A mount hides a file with its name. A file with the name of a directory above a mount stays visible.
func TestMountsHideFiles(t *testing.T) {
	storage, first, second := mounted(t, s3test.Start(t, "sim-aws"))
	first.fill(t, "home/archive", "home/deep")
	second.fill(t, "2024/old")
	for dir, want := range map[string]string{"/": "archive/ deep deep/", "/archive": "old/"} {
		if got := names(t, storage, dir); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
	if _, err := storage.StatFile("/archive"); err == nil {
		t.Error("found the hidden file")
	}
	if info, err := storage.Stat("/archive"); err != nil || !info.IsDir() || info.Name() != "archive" {
		t.Errorf("unexpected folder %v, %v", info, err)
	}
	if err := storage.RemoveFile("/archive"); !errors.Is(err, syscall.EISDIR) || !first.has(t, "home/archive") {
		t.Errorf("the hidden file was removed: %v", err)
	}
}

// A listing of several pages reads each page once, and shows the mounts at their positions.
func TestListMountsOfManyEntries(t *testing.T) {
	storage, first, _ := mounted(t, s3test.Start(t, "minio"))
	var want []string
	for i := range 1100 {
		first.fill(t, fmt.Sprintf("home/b%04d", i))
		want = append(want, fmt.Sprintf("b%04d", i))
	}
	want = append(append([]string{"archive/"}, want...), "deep/")
	if got := names(t, storage, "/"); got != strings.Join(want, " ") {
		t.Errorf("%d entries, want %d", strings.Count(got, " ")+1, len(want))
	}
}

func TestMountsRoute(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		now := time.Unix(1700000000, 0)
		for name, where := range map[string]struct {
			bucket *bucket
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
			must.OK(t, write(storage, name, name))
			if !where.bucket.has(t, where.key) {
				t.Errorf("%s: missing key %s", name, where.key)
			}
			if got, want := storage.URI(name), "s3://"+where.bucket.name+"/"+where.key; got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
			if content, err := read(storage, name); err != nil || content != name {
				t.Errorf("%s: got content %q, %v", name, content, err)
			}
			if err := storage.SetTime(name, now); err != nil {
				t.Error(err)
			}
			if info, err := storage.StatFile(name); err != nil || !info.ModTime().Equal(now) {
				t.Errorf("%s: %v, %v", name, info, err)
			}
			if err := storage.RemoveFile(name); err != nil || where.bucket.has(t, where.key) {
				t.Errorf("%s still exists: %v", name, err)
			}
		}
		if err := errors.Join(
			storage.Mkdir("/archive/new"), storage.MkdirAll("/archive/old/a/b"),
			storage.MkdirAll("/deep/down")); err != nil {
			t.Error(err)
		}
		if !second.has(t, "2024/new/") || !second.has(t, "2023/a/b/") {
			t.Error("no directories were created in the folders")
		}
		if err := errors.Join(storage.RemoveDir("/archive/new"), storage.RemoveAll("/archive/old/a")); err != nil {
			t.Error(err)
		}
	})
}

// S3 renames files from one mount to another. The rename is refused if the mounts belong to two accounts.
func TestRenameAcrossMounts(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		storage, first, second := mounted(t, s)
		first.fill(t, "home/file", "home/dir/a/b", "home/other/c", "home/stays")
		second.fill(t, "2024/file", "2024/dir/c")
		for from, to := range map[string]string{
			"/archive/file": "/archive/renamed",
			"/file":         "/deep/down/here/moved",
			"/dir":          "/deep/down/here/dir",
			"/archive/dir":  "/archive/old/dir",
			"/other":        "/archive/other",
		} {
			if err := storage.Copy(from, to+"-copy"); err != nil {
				t.Errorf("copy %s to %s: %v", from, to, err)
			}
			if err := storage.Rename(from, to); err != nil {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
		for key, b := range map[string]*bucket{
			"2024/renamed": second, "2024/renamed-copy": second, "here/moved": first, "here/moved-copy": first,
			"2023/dir-copy/c": second, "here/dir/a/b": first, "2023/dir/c": second,
			"2024/other/c": second, "2024/other-copy/c": second,
		} {
			if !b.has(t, key) {
				t.Errorf("%s is missing", key)
			}
		}
		for key, b := range map[string]*bucket{"home/file": first, "home/dir/a/b": first, "2024/dir/c": second} {
			if b.has(t, key) {
				t.Errorf("%s still exists", key)
			}
		}
		err := storage.Rename("/stays", "/deep/down/there/stays")
		var link *os.LinkError
		if !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, syscall.EXDEV) || !errors.As(err, &link) ||
			!first.has(t, "home/stays") {
			t.Errorf("move to another account: %v", err)
		}
	})
}
