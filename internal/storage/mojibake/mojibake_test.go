package mojibake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// misread returns a name in GBK as it looks when its bytes are read as UTF-8.
func misread(t *testing.T, name string) string {
	t.Helper()
	text, err := simplifiedchinese.GBK.NewEncoder().String(name)
	must.OK(t, err)
	return text
}

// aws returns the profile of a server that has all conditions.
func aws() driver.Profile {
	p, _ := driver.ProfileNamed("aws")
	return p
}

// A bucket is a bucket on a simulated S3 server.
type bucket struct{ server *s3sim.Server }

func newBucket(keys map[string]string) *bucket {
	server := s3sim.New(s3sim.Options{Profile: aws(), Versioning: true})
	server.CreateBucket("bucket")
	b := &bucket{server}
	for key, content := range keys {
		b.put(key, content)
	}
	return b
}

func (b *bucket) open(ctx context.Context, client driver.Client) *drivertest.Fs {
	return drivertest.MustNew(ctx, client, "bucket", &driver.Options{Profile: aws(), NoOverwrite: true})
}

func (b *bucket) put(key, content string) {
	files := drivertest.MustNew(context.Background(), b.server.Client(nil), "bucket", nil)
	if strings.HasSuffix(key, "/") {
		_ = files.Mkdir(key, 0) // it may exist
		return
	}
	if err := afero.WriteFile(files, key, []byte(content), 0); err != nil {
		panic(err)
	}
}

// objects returns the content of each key. It omits the markers of directories.
func (b *bucket) objects(t *testing.T) map[string]string {
	t.Helper()
	files, found := b.open(t.Context(), b.server.Client(nil)), map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := files.List(dir)
		must.OK(t, err)
		for entry, err := range entries {
			must.OK(t, err)
			name := dir + entry.Name()
			if entry.IsDir() {
				walk(name + "/")
				continue
			}
			content, err := afero.ReadFile(files, name)
			must.OK(t, err)
			found[name[1:]] = string(content)
		}
	}
	walk("/")
	return found
}

// tenant returns a tenant whose clients send names in GBK.
func (b *bucket) tenant(ctx context.Context, t *testing.T, client driver.Client) *Tenant {
	t.Helper()
	encoding, err := pathname.ParseEncoding("gbk")
	must.OK(t, err)
	return &Tenant{
		Places:    []Place{{Dir: "/", Files: b.open(ctx, client).Driver}},
		Encodings: func(string) []*pathname.Encoding { return []*pathname.Encoding{encoding} },
		Normalize: pathname.NFC.Normalize,
	}
}

// list scans and checks the names of a tenant, as the command does.
func list(t *testing.T, tenant *Tenant) []Line {
	t.Helper()
	var seen atomic.Int64
	lines, err := Scan(t.Context(), tenant, &seen)
	must.OK(t, err)
	must.OK(t, Check(t.Context(), tenant, lines))
	return lines
}

// shortly returns the state, path and new name of each line.
func shortly(lines []Line) (texts []string) {
	for _, l := range lines {
		texts = append(texts, fmt.Sprintf("%s %s %s", l.State, l.Path, l.Name))
	}
	return texts
}

// TestScan finds names that were written in configured charsets, and whether this is certain.
func TestScan(t *testing.T) {
	compatibility := func(label string) config.Compatibility {
		return config.Compatibility{Charset: servicetest.Encoding(t, label)}
	}
	var network value.Network
	must.OK(t, network.UnmarshalText([]byte("192.0.2.0/24")))
	for name, tc := range map[string]struct {
		tenant config.Tenant
		key    string
		want   []string
	}{
		"file":          {config.Tenant{Compatibility: compatibility("gbk")}, "Ŀ¼.txt", []string{"rename /Ŀ¼.txt 目录.txt"}},
		"directory":     {config.Tenant{Compatibility: compatibility("gbk")}, "Ŀ¼/a", []string{"rename /Ŀ¼/ 目录"}},
		"marker":        {config.Tenant{Compatibility: compatibility("gbk")}, "Ŀ¼/", []string{"rename /Ŀ¼/ 目录"}},
		"both":          {config.Tenant{Compatibility: compatibility("gbk")}, "Ŀ¼/Ŀ¼", []string{"rename /Ŀ¼/ 目录", "rename /Ŀ¼/Ŀ¼ 目录"}},
		"deep":          {config.Tenant{Compatibility: compatibility("gbk")}, "a/b/Ŀ¼", []string{"rename /a/b/Ŀ¼ 目录"}},
		"ascii":         {config.Tenant{Compatibility: compatibility("gbk")}, "report.pdf", nil},
		"read-rightly":  {config.Tenant{Compatibility: compatibility("gbk")}, "目录/报告", nil},
		"latin":         {config.Tenant{Compatibility: compatibility("gbk")}, "größe", []string{"unsure /größe gr枚脽e"}},
		"cyrillic":      {config.Tenant{Compatibility: compatibility("gbk")}, "Привет", []string{"unsure /Привет 袩褉懈胁械褌"}},
		"other-script":  {config.Tenant{Compatibility: compatibility("windows-1251")}, "Привет", nil},
		"arabic":        {config.Tenant{Compatibility: compatibility("windows-1256")}, "ǡ", []string{"rename /ǡ ا،"}},
		"no-word":       {config.Tenant{Compatibility: compatibility("windows-1251")}, "Ŀ¼x", []string{"unsure /Ŀ¼x ДїВјx"}},
		"korean":        {config.Tenant{Compatibility: compatibility("euc-kr")}, "ȣȭ", []string{"rename /ȣȭ 호화"}},
		"big5":          {config.Tenant{Compatibility: compatibility("big5")}, "Ū", []string{"unsure /Ū 讀"}},
		"none":          {config.Tenant{}, "Ŀ¼", nil},
		"utf-8":         {config.Tenant{Compatibility: compatibility("utf-8")}, "Ŀ¼", nil},
		"raw":           {config.Tenant{Compatibility: compatibility("raw")}, "Ŀ¼", nil},
		"not-decodable": {config.Tenant{Compatibility: compatibility("shift_jis")}, "Ā€", nil},
		"network": {config.Tenant{CompatibilityByNetwork: map[value.Network]*config.Compatibility{
			network: {Charset: servicetest.Encoding(t, "gbk")}}}, "Ŀ¼", []string{"rename /Ŀ¼ 目录"}},
		"user": {config.Tenant{Users: map[string]*config.User{
			"a": {Root: "/a", Compatibility: compatibility("gbk")}}}, "a/Ŀ¼", []string{"rename /a/Ŀ¼ 目录"}},
		"another-user": {config.Tenant{Users: map[string]*config.User{
			"a": {Root: "/a", Compatibility: compatibility("gbk")}}}, "b/Ŀ¼", nil},
		"directory-encoding": {config.Tenant{Compatibility: compatibility("euc-kr"), DirectoryEncodings: map[string]value.Encoding{
			"/jp": servicetest.Encoding(t, "euc-jp")}}, "jp/Ŵƻ", []string{"rename /jp/Ŵƻ 鉄道"}},
		"directory-in-utf-8": {config.Tenant{Compatibility: compatibility("gbk"), DirectoryEncodings: map[string]value.Encoding{
			"/new": servicetest.Encoding(t, "utf-8")}}, "new/Ŀ¼", nil},
		"two-charsets": {config.Tenant{Compatibility: compatibility("gbk"), Users: map[string]*config.User{
			"a": {Compatibility: compatibility("euc-kr")}}}, "Ŀ¼", []string{"unsure /Ŀ¼ 커서", "unsure /Ŀ¼ 目录"}},
		"root-of-a-user": {config.Tenant{Compatibility: compatibility("gbk"), Users: map[string]*config.User{
			"a": {Root: "/Ŀ¼/a"}}}, "Ŀ¼/a/b", []string{"unsure /Ŀ¼/ 目录"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(map[string]string{tc.key: "x"})
			tenant := &Tenant{
				Places:     []Place{{Dir: "/", Files: b.open(t.Context(), b.server.Client(nil)).Driver}},
				Encodings:  encodingsOf(&tc.tenant),
				Normalize:  tc.tenant.Compatibility.NormalizationOf().Normalize,
				Configured: configuredDirectories(&tc.tenant),
			}
			got := shortly(list(t, tenant))
			slices.Sort(got)
			slices.Sort(tc.want)
			if name == "two-charsets" {
				if len(got) != 2 || !strings.HasPrefix(got[0], "unsure") || !strings.HasPrefix(got[1], "unsure") {
					t.Errorf("got %q", got)
				}
				return
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// scene is a bucket before the rename, and its expected content afterwards.
func scene(t *testing.T) (before, after map[string]string) {
	t.Helper()
	dir, jpg := misread(t, "目录"), misread(t, "前目录")
	return map[string]string{
			dir + "/":                           "",
			dir + "/a":                          "1",
			dir + "/b.txt":                      "2",
			dir + "/sub/" + dir + "2024/deep":   "3",
			dir + "/sub/" + dir + "2024/empty/": "",
			dir + "/" + jpg + ".jpg":            "4",
			"plain/" + jpg:                      "5",
			"plain/stays":                       "6",
			"目录/there":                          "7",
			"größe":                             "8",
		}, map[string]string{
			"目录/a": "1", "目录/b.txt": "2", "目录/sub/目录2024/deep": "3", "目录/前目录.jpg": "4", "plain/前目录": "5",
			"plain/stays": "6", "目录/there": "7", "größe": "8",
		}
}

// TestApply renames everything. A second run finds nothing to rename.
func TestApply(t *testing.T) {
	before, after := scene(t)
	b := newBucket(before)
	for range 2 {
		tenant := b.tenant(t.Context(), t, b.server.Client(nil))
		lines := list(t, tenant)
		var moved atomic.Int64
		problems, err := Apply(t.Context(), t.Context(), tenant, lines, &moved)
		must.OK(t, err)
		if len(problems) > 0 || moved.Load() < Objects(lines) {
			t.Errorf("moved %d of %d objects; problems: %v", moved.Load(), Objects(lines), problems)
		}
		if got := b.objects(t); !maps.Equal(got, after) {
			t.Errorf("got keys %q\nwant %q", got, after)
		}
	}
	files := b.open(t.Context(), b.server.Client(nil))
	if _, err := files.StatDir("目录/sub/目录2024/empty"); err != nil {
		t.Errorf("the empty directory was lost: %v", err)
	}
	if _, err := files.StatDir("Ŀ¼"); err == nil {
		t.Error("the directory with the old name still exists")
	}
}

// TestInterruptedApply ends the command before each request that changes something, by a signal or by killing the
// process, and then runs it again. The second run must complete the renames, without losing or duplicating an object.
func TestInterruptedApply(t *testing.T) {
	before, after := scene(t)
	for _, killed := range []bool{false, true} {
		for at, more := int64(1), true; more; at++ {
			t.Run(fmt.Sprintf("killed-%t-at-change-%d", killed, at), func(t *testing.T) {
				b := newBucket(before)
				ctx, stop := context.WithCancel(t.Context())
				moves, kill := context.WithCancel(t.Context())
				defer kill()
				var changes atomic.Int64
				spy := drivertest.NewSpy(b.server.Client(nil))
				spy.Before(func(_ context.Context, operation string, _ any) error {
					if !slices.Contains([]string{"CopyObject", "DeleteObject", "DeleteObjects", "PutObject",
						"UploadPartCopy", "CompleteMultipartUpload"}, operation) || changes.Add(1) < at {
						return nil
					}
					stop()
					if killed {
						kill()
						return errors.New("the process has ended")
					}
					return nil
				})
				tenant := b.tenant(moves, t, spy)
				lines := list(t, tenant)
				var moved atomic.Int64
				_, err := Apply(ctx, moves, tenant, lines, &moved)
				more = changes.Load() >= at
				if more && err == nil && killed {
					t.Error("missing error of an interrupted run")
				}
				again := b.tenant(t.Context(), t, b.server.Client(nil))
				problems, err := Apply(t.Context(), t.Context(), again, list(t, again), &moved)
				must.OK(t, err)
				if got := b.objects(t); len(problems) > 0 || !maps.Equal(got, after) {
					t.Errorf("problems after the second run: %v\ngot keys %q\nwant %q", problems, got, after)
				}
			})
		}
	}
}

// asked sets the state Rename for lines whose new name exists, like an operator who insists on the rename.
func asked(lines []Line) []Line {
	for i := range lines {
		if lines[i].State == Exists {
			lines[i].State = Rename
		}
	}
	return lines
}

// TestConflicts tries to rename to names that exist. The objects stay, and the problem contains the reason.
func TestConflicts(t *testing.T) {
	old := misread(t, "目录")
	for name, tc := range map[string]struct {
		keys   map[string]string // besides old.txt
		state  State
		reason string // reason of the problem that Apply returns
	}{
		"file":      {map[string]string{"目录.txt": "theirs"}, Exists, "a file has the new name"},
		"directory": {map[string]string{"目录.txt/a": "theirs"}, Exists, "a directory has the new name"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(tc.keys)
			b.put(old+".txt", "mine")
			want := b.objects(t)
			tenant := b.tenant(t.Context(), t, b.server.Client(nil))
			lines := list(t, tenant)
			if len(lines) != 1 || lines[0].State != tc.state {
				t.Fatalf("unexpected lines %v", lines)
			}
			var moved atomic.Int64
			problems, err := Apply(t.Context(), t.Context(), tenant, asked(lines), &moved)
			must.OK(t, err)
			if len(problems) != 1 || problems[0].Reason != tc.reason {
				t.Errorf("got problems %v, want %q", problems, tc.reason)
			}
			if got := b.objects(t); !maps.Equal(got, want) {
				t.Errorf("got keys %q, want %q", got, want)
			}
		})
	}
}

// TestOtherClients lets another client store an object between the scan and the rename.
func TestOtherClients(t *testing.T) {
	old := misread(t, "目录")
	for name, tc := range map[string]struct {
		operation, key string // the other client stores key before the first request of this operation
		want           map[string]string
	}{
		"target": {"CopyObject", "目录", map[string]string{old: "mine", "目录": "theirs"}},
		"source": {"DeleteObject", old, map[string]string{old: "theirs", "目录": "mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(map[string]string{old: "mine"})
			done := false
			spy := drivertest.NewSpy(b.server.Client(nil))
			spy.Before(func(_ context.Context, operation string, _ any) error {
				if operation == tc.operation && !done {
					done = true
					b.put(tc.key, "theirs")
				}
				return nil
			})
			tenant := b.tenant(t.Context(), t, spy)
			var moved atomic.Int64
			problems, err := Apply(t.Context(), t.Context(), tenant, list(t, tenant), &moved)
			must.OK(t, err)
			if got := b.objects(t); !done || len(problems) != 1 || !maps.Equal(got, tc.want) {
				t.Errorf("got problems %v and keys %q, want %q", problems, got, tc.want)
			}
		})
	}
}

// TestFile reads a file from Write, and rejects mistakes that people make when they edit it.
func TestFile(t *testing.T) {
	lines := []Line{
		{State: Rename, Charset: "gbk", Objects: 3, Path: "/Ŀ¼/", Name: "目录", Note: "joins"},
		{State: Unsure, Charset: "gbk", Objects: 1, Path: "/a\tb\n\u202e", Name: "\"x\" \\ ", Note: ""},
		{State: Rename, Charset: "gbk", Objects: 1, Path: "/ Ŀ¼ ", Name: "目录"},
	}
	var b strings.Builder
	must.OK(t, Write(&b, lines))
	for name, text := range map[string]string{
		"written": b.String(), "crlf": strings.ReplaceAll(b.String(), "\n", "\r\n"), "bom": "\ufeff" + b.String(),
		"more": b.String() + "\n  \n# done\n",
	} {
		if got, err := Read([]byte(text)); err != nil || !slices.Equal(got, lines) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	for name, tc := range map[string]struct{ line, want string }{
		"fields":   {"rename\tgbk\t/a\tb", "line 1: has 4 fields"},
		"spaces":   {"rename gbk 1 /a b", "line 1: has 1 fields"},
		"state":    {"renam\tgbk\t1\t/a\tb", `line 1: unknown state "renam"`},
		"number":   {"rename\tgbk\tmany\t/a\tb", `"many" is not a number of objects`},
		"relative": {"rename\tgbk\t1\ta\tb", "is not a path of the tenant"},
		"dots":     {"rename\tgbk\t1\t/a/../b\tc", "is not a path of the tenant"},
		"root":     {"rename\tgbk\t1\t/\tc", "is not a path of the tenant"},
		"slash":    {"rename\tgbk\t1\t/a\tb/c", "write the last segment only"},
		"empty":    {"rename\tgbk\t1\t/a\t\"\"", "write the name of a file or directory"},
		"parent":   {"rename\tgbk\t1\t/a\t..", "write the name of a file or directory"},
		"quotes":   {"rename\tgbk\t1\t\"/a\tb", "is not a quoted string"},
		"bytes":    {"rename\tgbk\t1\t/a\t\xff", "write a name in UTF-8"},
		"twice":    {"rename\tgbk\t1\t/a\tb\nrename\tgbk\t1\t/a\tc", "line 2: line 1 already renames /a"},
	} {
		if _, err := Read([]byte(tc.line)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
	if err := Write(failing{}, lines); err == nil {
		t.Error("missing error for a full disk")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestTrust renames names that people may have chosen, but not names that need another decision.
func TestTrust(t *testing.T) {
	b := newBucket(map[string]string{"größe": "", "größe.d/a": "", "Ŀ¼": ""})
	tenant := b.tenant(t.Context(), t, b.server.Client(nil))
	tenant.Configured = map[string]string{"/größe.d": "the root of the user alice"}
	lines := list(t, tenant)
	Trust(lines)
	want := []string{"rename /größe gr枚脽e", "unsure /größe.d/ gr枚脽e.d", "rename /Ŀ¼ 目录"}
	if got := shortly(lines); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
