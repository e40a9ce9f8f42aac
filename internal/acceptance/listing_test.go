package acceptance_test

import (
	"bytes"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/jlaffaye/ftp"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// trickyNames are names that confuse parsers of LIST and MLSD.
var trickyNames = []string{
	" leading", "  two leading", "trailing ", "a -> b", "Jan 01 12:00", " Jan  1  2020 x", "total 5", "12",
	"-rw-r--r--", "a;b", "type=file; x",
	"x=y;", "100%", "<DIR>", "+i1.2,m3,r,s4,",
}

// TestListings lets clients read what LIST, NLST and MLSD send, and wants the names that the bucket has, and sizes
// and times.
func TestListings(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	all := slices.Sorted(slices.Values(slices.Concat(names, trickyNames)))
	bucket := s.buckets[acme]
	for i, name := range append(slices.Clone(all), "sub/inside") {
		key := prefix + "dir/" + name
		if _, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: &key, Body: bytes.NewReader(make([]byte, i)),
		}); err != nil {
			t.Fatal(err)
		}
	}

	for label, noMLSD := range map[string]bool{"go-by-list": true, "go-by-mlsd": false} {
		t.Run(label, func(t *testing.T) {
			c := dialGo(t, s, ftp.DialWithDisabledMLSD(noMLSD))
			for _, dir := range []string{"/dir", "dir", "/dir/"} {
				wantEntries(t, c, dir, all)
			}
			if err := c.ChangeDir("/dir"); err != nil {
				t.Fatal(err)
			}
			wantEntries(t, c, "", all)
			wantEntries(t, c, ".", all)
			var walked []string
			for w := c.Walk("/"); w.Next(); {
				walked = append(walked, w.Path())
			}
			want := []string{"/dir", "/dir/sub", "/dir/sub/inside"}
			for _, name := range all {
				want = append(want, "/dir/"+name)
			}
			slices.Sort(want)
			if slices.Sort(walked); !slices.Equal(walked, want) {
				t.Errorf("walk: %q, want %q", walked, want)
			}
			got, err := c.NameList("")
			if want := slices.Sorted(slices.Values(append(slices.Clone(all), "sub"))); err != nil ||
				!slices.Equal(got, want) {
				t.Errorf("NLST: %q, %v; want %q", got, err, want)
			}
		})
	}

	for label, mlsd := range map[string]string{"lftp-by-list": "no", "lftp-by-mlsd": "yes"} {
		t.Run(label, func(t *testing.T) {
			l := newLftp(t, s, usual)
			use := "set ftp:use-mlsd " + mlsd
			here := t.TempDir()
			l.run(use, "mirror /dir "+lftpQuote(here))
			got := readTree(t, here)
			want := append(slices.Clone(all), "sub/inside")
			slices.Sort(want)
			if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
				t.Errorf("mirror: %q, want %q", names, want)
			}
			listed := l.run(use, "cd /dir", "cls -l --time-style=%Y")
			if lines := strings.Count(listed, "\n"); lines < len(want) ||
				!strings.Contains(listed, time.Now().UTC().Format("2006")) {
				t.Errorf("cls -l: %s", listed)
			}
		})
	}

	t.Run("curl", func(t *testing.T) {
		c := newCurl(t, s, usual)
		want := slices.Sorted(slices.Values(append(slices.Clone(all), "sub")))
		for verb, listed := range map[string]string{"NLST": c.run("--list-only", c.url("/dir")+"/"),
			"LIST": c.run(c.url("/dir") + "/")} {
			got := namesIn(t, verb, listed)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", verb, got, want)
			}
		}
		for command, want := range map[string][]string{"NLST *a*g*": {"  two leading", " leading", "trailing "},
			"NLST *.none": nil} {
			got := namesIn(t, "NLST", c.run("--request", command, c.url("/dir")+"/"))
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", command, got, want)
			}
		}
	})
}

// dialGo logs acme's alice in with the client in Go that rclone uses.
func dialGo(t *testing.T, s *site, options ...ftp.DialOption) *ftp.ServerConn {
	t.Helper()
	c, err := ftp.Dial(s.address, append(options, ftp.DialWithTimeout(time.Minute))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Quit() })
	if err := c.Login("alice@acme", password); err != nil {
		t.Fatal(err)
	}
	return c
}

// wantEntries lists the directory of TestListings. The size of a file there is its place among the names.
func wantEntries(t *testing.T, c *ftp.ServerConn, dir string, want []string) {
	t.Helper()
	entries, err := c.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		switch {
		case e.Name == "." || e.Name == "..":
			continue
		case e.Type == ftp.EntryTypeFolder && e.Name == "sub":
			continue
		case e.Type != ftp.EntryTypeFile || e.Size >= uint64(len(want)) || want[e.Size] != e.Name:
			t.Errorf("%q: %+v", dir, e)
		case time.Since(e.Time).Abs() > 10*time.Minute:
			t.Errorf("%q: %q is of %v", dir, e.Name, e.Time)
		}
		got = append(got, e.Name)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%q: %q, want %q", dir, got, want)
	}
}

// TestTimesAreKept sets a time with a fraction, and lets clients that keep the times of what they download ask for it.
func TestTimesAreKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "versitygw"))
	want := time.Date(2001, 9, 9, 1, 46, 40, 0, time.UTC)
	local := newFolder(t)
	c := newCurl(t, s, usual)
	c.upload(move{local.write("file", []byte("content")), "/file"})
	c.quote("MFF Modify=20010909014640.123456789; /file")

	file := func(name string) string { return path.Join(local.path, name) }
	c.run("--remote-time", "--output", file("curl"), c.url("/file"))
	newLftp(t, s, usual).run("get /file -o " + lftpQuote(file("lftp")))
	for _, name := range []string{"curl", "lftp"} {
		info, err := os.Stat(file(name))
		if err != nil || !info.ModTime().Truncate(time.Second).Equal(want) {
			t.Errorf("%s: %v, %v; want %v", name, info.ModTime(), err, want)
		}
	}
	g := dialGo(t, s)
	if got, err := g.GetTime("/file"); err != nil || !got.Truncate(time.Second).Equal(want) {
		t.Errorf("go: MDTM: %v, %v", got, err)
	}
	if got, err := g.GetEntry("/file"); err != nil || !got.Time.Truncate(time.Second).Equal(want) || got.Size != 7 {
		t.Errorf("go: MLST: %+v, %v", got, err)
	}
	if err := g.SetTime("/file", want.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	if got, err := g.GetTime("/file"); err != nil || !got.Equal(want.Add(time.Hour)) {
		t.Errorf("go: MDTM after MFMT: %v, %v", got, err)
	}
}
