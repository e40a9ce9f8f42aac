package acceptance_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// mixedTenants have a mirror, whose names are bytes, and directories of charsets of their own.
const mixedTenants = `
  mirror: {hosts: [mirror.example], bucket: BUCKET, prefix: inbox/mirror/, pathname_encoding: raw, users: {alice: {password_hash: HASH}}}
  mixed:
    hosts: [mixed.example]
    bucket: BUCKET
    prefix: inbox/mixed/
    pathname_encoding: windows-1252
    directory_encodings: {/alt/日本: shift_jis, /alt/日本/neu: utf-8, /scans: raw}
    users:
      alice: {password_hash: HASH}
      root: {password_hash: HASH, root: /alt}
`

// TestMirrorOfBytes mirrors names that are in no charset, in several, or that escapes could be taken for, and wants
// them back byte for byte.
func TestMirrorOfBytes(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mixedTenants)
	tree := map[string][]byte{}
	for i, name := range []string{
		"caf\xe9", "café", "cafe\u0301", "\x93\xfa\x96\x7b", "\xc0\xae\xc0\xae", "\xc0\xaf", "\xed\xa0\x80", "\xe3\x81",
		"\xff\xff", "\xff\xfe",
		"\xe5\xff\xf4", "‛E9", "‛‛", "‛", " \xe9 ", "back\\slash\xe9", "\xe9",
	} {
		tree[name] = content(i)
		tree[path.Join("dir "+name, name)] = content(2 * i)
	}
	here, back := t.TempDir(), t.TempDir()
	writeTree(t, here, tree)
	l := newLftp(t, s, usual)
	l.setup = script("set ftp:use-feat no") + strings.Replace(l.setup, "alice@acme", "alice@mirror", 1)
	mirror := "mirror --reverse --delete " + lftpQuote(here) + " /tree"
	l.run(mirror)
	l.run(mirror)
	l.run("mirror /tree " + lftpQuote(back))
	if got := readTree(t, back); !maps.EqualFunc(got, tree, slices.Equal) {
		t.Errorf("back come %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(tree)))
	}
	s.mustStore(t, "mirror/tree/‛E9", tree["\xe9"])

	c := newCurl(t, s, usual)
	c.args = append(c.args, "--user", "alice@mirror:"+password)
	var moves []move
	fetched := newFolder(t)
	for name := range tree {
		if !strings.Contains(name, "\xff\xff") { // which is one byte, and curl knows no Telnet
			moves = append(moves, move{"/tree/" + name, fetched.file(strings.ReplaceAll(name, "/", "+"))})
		}
	}
	c.download(moves...)
	for _, m := range moves {
		name := strings.TrimPrefix(m.from, "/tree/")
		fetched.mustHave(strings.ReplaceAll(name, "/", "+"), tree[name])
	}
}

// TestEncodingsOfDirectories lets clients of different charsets work in directories of their own.
func TestEncodingsOfDirectories(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mixedTenants)
	data := newFolder(t).write("data", []byte("data"))
	c := newCurl(t, s, usual)
	c.args = append(c.args, "--user", "alice@mixed:"+password)

	german := s.connectIn(t, "", true, "latin-1")
	german.must("login", "alice@mixed", password) // which has an umlaut
	german.must("mkdir", "/Büro")
	german.must("upload", data, "/Büro/Größe")
	c.args = append(c.args, "--ftp-create-dirs")
	c.upload(
		move{data, "/alt/日本/\x93\xfa\x96\x7b"}, move{data, "/alt/日本/neu/日本"}, move{data, "/scans/\x93\xfa\x96\x7b"})
	want := []string{"Büro/", "Büro/Größe", "alt/", "alt/日本/", "alt/日本/neu/", "alt/日本/neu/日本", "alt/日本/日本", "scans/",
		"scans/‛93‛FA‛96{"}
	if got := s.objects(t, "mixed/"); !slices.Equal(got, want) {
		t.Errorf("the bucket has %+q, want %+q", got, want)
	}

	german.must("rename", "/Büro/Größe", "/scans/Maß") // from one encoding to another
	s.mustStore(t, "mixed/scans/Ma‛DF", []byte("data"))
	german.must("rename", "/scans/Maß", "/Maß")
	s.mustStore(t, "mixed/Maß", []byte("data"))

	// A root that has an encoding above has it too, and names of UTF-8 in it are what the charset says.
	c.args = append(c.args, "--user", "root@mixed:"+password)
	c.upload(move{data, "/日本/\x83\\\x81[\x83X"})
	s.mustStore(t, "mixed/alt/日本/ソース", []byte("data"))
	for dir, want := range map[string][]string{"/日本": {"neu", "\x83\\\x81[\x83X", "\x93\xfa\x96\x7b"},
		"/日本/neu": {"日本"}} {
		got := strings.Fields(c.run("--list-only", c.url(dir)+"/"))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
