package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A past is a bucket with versioning and a log of all changes in it.
type past struct {
	testing.TB
	client *s3.Client
	bucket string
	fs     *drivertest.Fs
	keys   []string // keys that may change
	log    []pastChange
	unsure map[time.Time]bool // seconds at whose end a change was in progress
}

// A pastChange is a change that stores or deletes a file.
type pastChange struct {
	key, content string
	deletes      bool
	time         time.Time // in whole seconds
}

// smallPages requests small pages of versions, so that the versions of a key are on several pages.
type smallPages struct{ *s3.Client }

func (c smallPages) ListObjectVersions(
	ctx context.Context, in *s3.ListObjectVersionsInput, opts ...func(*s3.Options),
) (*s3.ListObjectVersionsOutput, error) {
	of := *in
	of.MaxKeys = aws.Int32(5)
	return c.Client.ListObjectVersions(ctx, &of, opts...)
}

func newPast(tb testing.TB, client *s3.Client, bucket string, p driver.Profile) *past {
	tb.Helper()
	p.GhostPrefixes = true // as the server sets it for a bucket with versioning
	opts := driver.Options{Prefix: "in/", Profile: p}
	fsys, err := driver.New(smallPages{client}, bucket, &opts)
	must.OK(tb, err)
	keys := []string{"a", "a b", "dir/a", "dir/b&<é>", "dir/sub/x", "dir/sub/y", "gone/soon/z", "z", "été/1"}
	return &past{TB: tb, client: client, bucket: bucket, fs: drivertest.Bind(tb.Context(), fsys), keys: keys,
		unsure: map[time.Time]bool{}}
}

func (x *past) put(key, content string) {
	x.Helper()
	began := time.Now()
	_, err := x.client.PutObject(x.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: aws.String("in/" + key),
		Body: strings.NewReader(content)})
	must.OK(x, err)
	x.note(began, pastChange{key: key, content: content})
}

func (x *past) remove(key string) {
	x.Helper()
	began := time.Now()
	out, err := x.client.DeleteObject(x.Context(), &s3.DeleteObjectInput{
		Bucket: &x.bucket, Key: aws.String("in/" + key),
	})
	must.OK(x, err)
	if _, there := x.at(time.Now())[key]; out.VersionId == nil && !there {
		return // MinIO creates no delete marker
	}
	x.note(began, pastChange{key: key, deletes: true})
}

// note logs a change that S3 made between began and now.
func (x *past) note(began time.Time, c pastChange) {
	c.time = time.Now().Truncate(time.Second)
	for second := began.Truncate(time.Second); second.Before(c.time); second = second.Add(time.Second) {
		x.unsure[second] = true
	}
	x.log = append(x.log, c)
}

// at returns the content of the model at the end of a second.
func (x *past) at(t time.Time) map[string]string {
	tree := map[string]string{}
	for _, c := range x.log {
		switch {
		case c.time.After(t):
		case c.deletes:
			delete(tree, c.key)
		default:
			tree[c.key] = c.content
		}
	}
	return tree
}

// deleted returns the last content of deleted files in the model.
func (x *past) deleted() map[string]string {
	tree, last := map[string]string{}, map[string]string{}
	for _, c := range x.log {
		if c.deletes {
			if content, had := last[c.key]; had && !strings.HasSuffix(c.key, "/") {
				tree[c.key] = content
			}
			continue
		}
		last[c.key] = c.content
		delete(tree, c.key)
	}
	return tree
}

// tree reads a directory recursively. The keys of directories end with a slash.
func (x *past) tree(fsys *drivertest.Fs, dir string, into map[string]string) {
	x.Helper()
	entries, err := fsys.List(dir)
	if err != nil {
		x.Fatalf("list %s: %v", dir, err)
	}
	for info, err := range entries {
		if err != nil {
			x.Fatalf("list %s: %v", dir, err)
		}
		name := path.Join(dir, info.Name())
		if info.IsDir() {
			into[name[1:]+"/"] = ""
			if _, err := fsys.StatDir(name); err != nil {
				x.Errorf("listing of a missing directory: %v", err)
			}
			x.tree(fsys, name, into)
			continue
		}
		content, err := readAll(fsys, name, 0)
		if err != nil {
			x.Errorf("read of a listed file: %v", err)
		}
		stat, err := fsys.StatFile(name)
		if err != nil || stat.Size() != info.Size() || stat.ModTime() != info.ModTime() {
			x.Errorf("%s: listed with %d bytes and time %s, got %v, %v", name, info.Size(), info.ModTime(), stat, err)
		}
		into[name[1:]] = content
	}
}

func readAll(fsys *drivertest.Fs, name string, offset int64) (string, error) {
	file, err := fsys.OpenAt(name, os.O_RDONLY, offset)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	return string(content), err
}

// withDirectories adds the directories of the files.
func withDirectories(files map[string]string) map[string]string {
	tree := map[string]string{}
	for key, content := range files {
		tree[key] = content
		for dir := path.Dir(strings.TrimSuffix(key, "/")); dir != "."; dir = path.Dir(dir) {
			tree[dir+"/"] = ""
		}
	}
	return tree
}

// check compares the file system at each second with the model, unless the model is unsure.
func (x *past) check() {
	x.Helper()
	times := map[time.Time]bool{x.log[0].time.Add(-time.Second): true}
	for _, c := range x.log {
		times[c.time] = true
	}
	maps.DeleteFunc(times, func(t time.Time, _ bool) bool { return x.unsure[t] })
	for _, t := range slices.SortedFunc(maps.Keys(times), time.Time.Compare) {
		x.checkTree(t.Format("15:04:05"), x.fs.At(driver.Moment{Time: t.Add(300 * time.Millisecond)}), withDirectories(x.at(t)))
	}
	x.checkTree("deleted", x.fs.At(driver.Moment{Deleted: true}), withDirectories(x.deleted()))
	x.checkTree("empty", x.fs.At(driver.Moment{}), map[string]string{})
}

func (x *past) checkTree(when string, fsys *drivertest.Fs, want map[string]string) {
	x.Helper()
	got := map[string]string{}
	x.tree(fsys, "/", got)
	if !maps.Equal(got, want) {
		x.Errorf("%s: got tree\n%v\nwant\n%v", when, got, want)
	}
	for _, key := range x.keys {
		if _, there := want[key]; there || strings.HasSuffix(key, "/") {
			continue
		}
		name := "/" + key
		if _, err := fsys.StatFile(name); !errors.Is(err, fs.ErrNotExist) {
			x.Errorf("%s: %s exists: %v", when, name, err)
		}
		if _, err := readAll(fsys, name, 0); !errors.Is(err, fs.ErrNotExist) {
			x.Errorf("%s: %s can be read: %v", when, name, err)
		}
	}
}

// anyChange stores or deletes a file, or the marker of a directory.
func (x *past) anyChange(r *rand.Rand) {
	x.Helper()
	key := x.keys[r.IntN(len(x.keys))]
	switch {
	case r.IntN(5) < 2:
		x.remove(key)
	case strings.HasSuffix(key, "/"):
		x.put(key, "")
	default:
		x.put(key, fmt.Sprintf("%s %d %s", key, len(x.log), strings.Repeat(".", r.IntN(9))))
	}
}

// TestPastModel compares the past with a model at every moment. Many changes happen in the same second.
func TestPastModel(t *testing.T) {
	t.Parallel()
	models := uint64(20)
	if testing.Short() {
		models = 10
	}
	for _, name := range []string{"aws", "seaweedfs"} {
		p, _ := driver.ProfileNamed(name)
		for seed := range models {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testPastModel(t, p, rand.New(rand.NewPCG(seed, 0))) })
			})
		}
	}
}

func testPastModel(t *testing.T, p driver.Profile, r *rand.Rand) {
	t.Helper()
	server := s3sim.New(s3sim.Options{Profile: p, Versioning: true, PageSize: 4 + r.IntN(8)})
	server.CreateBucket("bucket")
	x := newPast(t, server.Client(nil), "bucket", p)
	x.keys = append(x.keys, "dir/") // other servers do not keep versions of markers
	for range 60 {
		x.anyChange(r)
		if r.IntN(3) == 0 {
			time.Sleep(time.Duration(r.IntN(3)) * time.Second)
		}
	}
	x.check()
}

// A server lists delete markers after the versions, but its profile does not say so. The listing must fail instead of
// showing deleted files.
func TestPastOfUnknownOrder(t *testing.T) {
	t.Parallel()
	apart, _ := driver.ProfileNamed("seaweedfs")
	p, _ := driver.ProfileNamed("strict")
	for _, names := range [][]string{{"dir/file"}, {"dir/file", "dir/other"}} {
		server := s3sim.New(s3sim.Options{Profile: apart, Versioning: true})
		server.CreateBucket("bucket")
		f := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &driver.Options{Profile: p})
		for _, name := range names {
			write(t, f, name, "content")
			must.OK(t, f.RemoveFile(name))
		}
		now := f.At(driver.Moment{Time: time.Now()})
		if _, err := now.StatFile("dir/file"); !errors.Is(err, syscall.EIO) {
			t.Errorf("stat of a deleted file: %v", err)
		}
		if _, err := afero.ReadDir(now, "dir"); !errors.Is(err, syscall.EIO) {
			t.Errorf("stat of a directory whose files were deleted: %v", err)
		}
	}
}

// TestPastOnServers is TestPastModel on real servers with versioning. It takes two or three seconds.
func TestPastOnServers(t *testing.T) {
	t.Parallel()
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		t.Parallel()
		x := newPast(t, s.Client(), s.VersionedBucket(t), profile(t, s))
		r := rand.New(rand.NewPCG(1, 2))
		for seconds, begin := 0, time.Now().Unix(); seconds < 3; {
			// versitygw takes its times from its file system, whose clock differs by some milliseconds.
			midSecond := time.Now().Nanosecond() > 1e8 && time.Now().Nanosecond() < 9e8
			if len(x.log) < 20*(seconds+1) && midSecond {
				x.anyChange(r)
			} else if _, err := x.fs.StatDir("/any"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			seconds = int(time.Now().Unix() - begin)
		}
		x.check()
	})
}

// TestPast reads and restores single files and directories.
func TestPast(t *testing.T) {
	t.Parallel()
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		t.Parallel()
		x := newPast(t, s.Client(), s.VersionedBucket(t), profile(t, s))
		must.OK(t, x.fs.Mkdir("/dir", 0))
		mtime := time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC)
		for _, content := range []string{"the first", "the second one"} {
			for _, name := range []string{"/dir/50% é+.txt", "/dir/other", "/kept"} {
				write(t, x.fs, name, content)
			}
			if content == "the first" {
				must.OK(t, x.fs.Chtimes("/kept", mtime, mtime))
			}
		}
		for _, name := range []string{"/dir/50% é+.txt", "/dir/other"} {
			must.OK(t, x.fs.RemoveFile(name))
		}
		gone := x.fs.At(driver.Moment{Deleted: true})
		if content, err := readAll(gone, "/dir/50% é+.txt", 4); content != "second one" || err != nil {
			t.Errorf("a deleted file from an offset on is %q, %v", content, err)
		}
		if _, err := gone.StatFile("/kept"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("existing file listed as deleted: %v", err)
		}
		sum, _, err := gone.Hash(t.Context(), "/dir/other", "CRC32", 0, -1)
		if want := []byte{0x2f, 0x26, 0x5d, 0x33}; err != nil || len(sum) != len(want) {
			t.Errorf("the hash of a deleted file is %x, %v", sum, err)
		}
		if err := gone.CopyTo(t.Context(), x.fs, "/dir/50% é+.txt", "/dir/50% é+.txt"); err != nil {
			t.Errorf("restore a file: %v", err)
		}
		if content, err := readAll(x.fs, "/dir/50% é+.txt", 0); content != "the second one" || err != nil {
			t.Errorf("a restored file is %q, %v", content, err)
		}
		if err := gone.CopyTo(t.Context(), x.fs, "/dir", "/dir/again"); err != nil {
			t.Errorf("restore a directory: %v", err)
		}
		if content, err := readAll(x.fs, "/dir/again/other", 0); content != "the second one" || err != nil {
			t.Errorf("a file of a restored directory is %q, %v", content, err)
		}
		must.OK(t, x.fs.RemoveFile("/kept"))
		for what, change := range map[string]func() error{
			"write": func() error {
				file, err := gone.Create("/new")
				if err == nil {
					_, _ = io.Copy(file, bytes.NewReader([]byte("x")))
					err = file.Close()
				}
				return err
			},
			"mkdir":  func() error { return gone.Mkdir("/new", 0) },
			"remove": func() error { return gone.RemoveFile("/kept") },
			"all":    func() error { return gone.RemoveAll("/") },
			"rename": func() error { return gone.Rename("/kept", "/new") },
			"touch":  func() error { return gone.Chtimes("/kept", mtime, mtime) },
			"into":   func() error { return x.fs.CopyTo(t.Context(), gone, "/dir/50% é+.txt", "/copy") },
			"moved":  func() error { return gone.RenameTo(x.fs, "/kept", "/new") },
		} {
			if err := change(); !errors.Is(err, syscall.EROFS) {
				t.Errorf("%s in the past: %v", what, err)
			}
		}
	})
}

// TestPastNullVersion restores a version, with its attributes, that was stored before versioning was enabled.
func TestPastNullVersion(t *testing.T) {
	t.Parallel()
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		t.Parallel()
		client, bucket := s.Client(), s.Bucket(t)
		x := newPast(t, client, bucket, profile(t, s))
		_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("in/file"),
			Body: strings.NewReader("null"), Metadata: map[string]string{"mtime": "1580702706"}})
		must.OK(t, err)
		s.SetVersioning(t, bucket, types.BucketVersioningStatusEnabled)
		x.remove("file")
		s.SetVersioning(t, bucket, types.BucketVersioningStatusSuspended)
		gone := x.fs.At(driver.Moment{Deleted: true})
		if content, err := readAll(gone, "/file", 0); content != "null" || err != nil {
			t.Errorf("a deleted null version is %q, %v", content, err)
		}
		err = gone.CopyTo(t.Context(), x.fs, "/file", "/copy")
		if strings.HasPrefix(s.Name, "versitygw") { // does not accept a null version as the source of a copy
			if !errors.Is(err, syscall.EIO) {
				t.Errorf("copy a null version: %v", err)
			}
			return
		}
		if err != nil {
			t.Errorf("copy a null version: %v", err)
		}
		info, err := x.fs.StatFile("/copy")
		if want := time.Unix(1580702706, 0); err != nil || !info.ModTime().Equal(want) {
			t.Errorf("the copy of a null version is %v, %v", info, err)
		}
	})
}

func write(tb testing.TB, fsys *drivertest.Fs, name, content string) {
	tb.Helper()
	file, err := fsys.Create(name)
	if err == nil {
		_, err = io.WriteString(file, content)
		err = errors.Join(err, file.Close())
	}
	must.OK(tb, err)
}
