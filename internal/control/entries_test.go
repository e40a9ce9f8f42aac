package control

import (
	"io/fs"
	"testing"
	"time"
)

func TestTimeVal(t *testing.T) {
	for value, want := range map[string]time.Time{
		"20060102030405":            time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC),
		"20060102030405.5":          time.Date(2006, 1, 2, 3, 4, 5, 500_000_000, time.UTC),
		"20060102030405.014":        time.Date(2006, 1, 2, 3, 4, 5, 14_000_000, time.UTC),
		"20060102030405.000":        time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC),
		"20060102030405.1234567899": time.Date(2006, 1, 2, 3, 4, 5, 123456789, time.UTC),
		"20240229000000":            time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		"10000101000000":            time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC),
		"99991231235959":            time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		"20161231235960":            time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC),
		"20120630235960.25":         time.Date(2012, 7, 1, 0, 0, 0, 250_000_000, time.UTC),
		"00000000000000":            {},
		"09991231235959":            {},
		"99991231235960":            {},
		"20060102030460":            {},
		"20161230235960":            {},
		"20161231225960":            {},
		"20060102030461":            {},
		"20060102036000":            {},
		"20060102240000":            {},
		"20060100030405":            {},
		"20060431030405":            {},
		"20230229000000":            {},
		"19000229000000":            {},
		"20061302030405":            {},
		"2006010203040":             {},
		"200601020304055":           {},
		"20060102030405.":           {},
		"20060102030405.x":          {},
		"20060102030405,5":          {},
		"20060102030405.5.5":        {},
		"+2006010203040":            {},
		"2006 102030405":            {},
		"２００６０１０２０３０４０５": {},
		"": {},
	} {
		got, ok := parseTimeVal(value)
		if ok == want.IsZero() || !got.Equal(want) {
			t.Errorf("%q is read as %v, %v; want %v", value, got, ok, want)
		}
	}
}

func TestWriteTimeVal(t *testing.T) {
	for _, test := range []struct {
		time time.Time
		want string // empty where there is no way to write it
	}{
		{time.Date(2006, 1, 2, 3, 4, 5, 0, time.UTC), "20060102030405"},
		{time.Date(2006, 1, 2, 3, 4, 5, 14_000_000, time.UTC), "20060102030405.014"},
		{time.Date(2006, 1, 2, 3, 4, 5, 1, time.UTC), "20060102030405.000000001"},
		{time.Date(2006, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)), "20060102020405"},
		{time.Date(999, 12, 31, 23, 59, 59, 0, time.UTC), ""},
		{time.Time{}, ""},
	} {
		got, ok := appendTimeVal(nil, test.time)
		if string(got) != test.want || ok != (test.want != "") {
			t.Errorf("%v is written as %q, %v; want %q", test.time, got, ok, test.want)
		}
	}
}

// TestListColumns holds LIST's columns against ls -l.
func TestListColumns(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		modified time.Time
		want     string
	}{
		{now.Add(-time.Minute), "Mar  1 11:59 "},
		{now.Add(-listYearAfter), "Sep  2 12:00 "},
		{now.Add(-listYearAfter - time.Minute), "Sep  2  2025 "},
		{now.Add(time.Hour), "Mar  1 13:00 "},
		{now.Add(25 * time.Hour), "Mar  2  2026 "},
		{time.Date(2026, 2, 28, 23, 30, 0, 0, time.FixedZone("", -3600)), "Mar  1 00:30 "},
		{time.Time{}, "Jan  1  1970 "},
	} {
		got := string(appendColumns(nil, modified{directory(""), test.modified}, now))
		if want := "drwxr-xr-x 1 ftp ftp             0 " + test.want; got != want {
			t.Errorf("%v: %q, want %q", test.modified, got, want)
		}
	}
}

// TestUniqueOfTwins wants a file and a directory of one name to differ, which few
// servers of S3 can store.
func TestUniqueOfTwins(t *testing.T) {
	s := &session{login: &Login{ObjectURI: func(name string) string { return "s3://bucket" + name }}}
	file, _ := appendUnique(nil, s, entry{file("a"), "/"})
	dir, _ := appendUnique(nil, s, entry{directory("a"), "/"})
	if string(file) == string(dir) {
		t.Errorf("both are %s", dir)
	}
	if this, _ := appendUnique(nil, s, entry{directory(thisDirectory), "/a"}); string(this) != string(dir) {
		t.Errorf("%s in itself is %s", dir, this)
	}
	if root, _ := appendUnique(nil, s, entry{directory("/"), "/"}); len(root) == 0 {
		t.Error("the root has none")
	}
}

// file is one of which no more is known than its name.
type file string

func (f file) Name() string     { return string(f) }
func (file) Size() int64        { return 0 }
func (file) Mode() fs.FileMode  { return 0 }
func (file) ModTime() time.Time { return time.Time{} }
func (file) IsDir() bool        { return false }
func (file) Sys() any           { return nil }

// modified is a directory with a time.
type modified struct {
	directory
	time time.Time
}

func (m modified) ModTime() time.Time { return m.time }
