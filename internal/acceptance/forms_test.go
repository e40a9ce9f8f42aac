package acceptance_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/jlaffaye/ftp"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// formTenants keep names in one form of Unicode, or as they come; acme keeps them in NFC.
const formTenants = `
  decomposed: {hosts: [nfd.example], bucket: BUCKET, prefix: inbox/nfd/, normalization: nfd, users: {alice: {password_hash: HASH}}}
  verbatim: {hosts: [none.example], bucket: BUCKET, prefix: inbox/none/, normalization: none, users: {alice: {password_hash: HASH}}}
`

// TestForms lets a client such as a Mac's, which sends names in NFD, share files with one that sends NFC.
func TestForms(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), formTenants)
	const dir, file = "Été 한국어", "が Ünï.txt"
	for _, tt := range []struct {
		user, key string
		form      func(string) string // of the bucket
	}{
		{"alice@acme", "", norm.NFC.String},
		{"alice@decomposed", "nfd/", norm.NFD.String},
	} {
		t.Run(tt.user, func(t *testing.T) {
			mac, pc := norm.NFD.String, norm.NFC.String
			for who, clients := range map[string][2]func(string) string{"mac": {mac, pc}, "pc": {pc, mac}} {
				one, other := clients[0], clients[1]
				top := "/" + who
				f := s.connect(t, "", true)
				f.must("login", tt.user, password)
				local := newFolder(t)
				data := local.write("data", []byte(who))
				f.must("mkdir", top)
				f.must("mkdir", one(top+"/"+dir))
				f.refused("550 ", "mkdir", other(top+"/"+dir))
				f.must("upload", data, one(top+"/"+dir+"/"+file))
				f.must("upload", data, other(top+"/"+dir+"/"+file)) // the same file
				want := []string{"", tt.form(dir) + "/", tt.form(dir + "/" + file)}
				if got := s.objects(t, tt.key+who+"/"); !slices.Equal(got, want) {
					t.Errorf("the bucket has %+q, want %+q", got, want)
				}
				f.must("download", other(top+"/"+dir)+"/"+one(file), local.file("back"))
				local.mustHave("back", []byte(who))
				for command, got := range f.list(other(top + "/" + dir)) {
					if !slices.Equal(got, []string{tt.form(file)}) {
						t.Errorf("%s: %+q", command, got)
					}
				}
				f.must("rename", other(file), one("x "+file))
				f.must("rename", one("x "+file), other(file))
				f.must("command", "CWD /")
				f.must("rename", other(top+"/"+dir), one(top+"/neu "+dir))
				f.must("remove", other(top+"/neu "+dir+"/"+file))
				f.must("rmdir", other(top+"/neu "+dir))
				if got := s.objects(t, tt.key+who+"/"); !slices.Equal(got, []string{""}) {
					t.Errorf("the bucket has %+q", got)
				}
			}
		})
	}

	// A tool that compares names byte by byte finds its own again, and deletes no file because of its form.
	t.Run("alice@verbatim", func(t *testing.T) {
		here, back := t.TempDir(), t.TempDir()
		tree := map[string][]byte{norm.NFD.String(dir + "/" + file): content(10),
			norm.NFC.String(dir + "/" + file): content(20)}
		writeTree(t, here, tree)
		l := newLftp(t, s, usual)
		l.setup = strings.Replace(l.setup, "alice@acme", "alice@verbatim", 1)
		mirror := "mirror --reverse --delete " + lftpQuote(here) + " /tree"
		l.run(mirror)
		l.run(mirror)
		l.run("mirror /tree " + lftpQuote(back))
		if got := readTree(t, back); !maps.EqualFunc(got, tree, slices.Equal) {
			t.Errorf("back come %+q", slices.Sorted(maps.Keys(got)))
		}
	})
}

// deviceNames are what careless devices make of names, as the bucket has them, and as listings show them.
var deviceNames = []struct{ name, listed string }{
	{" scan.pdf", ""},
	{"scan.pdf ", ""},
	{"  ", ""},
	{"a  b", ""},
	{"line\nend", "line␊end"},
	{"carriage\rreturn", "carriage␍return"},
	{"\r\n", "␍␊"},
	{"both\r\nof them ", "both␍␊of them "},
	{"␊ and \n", "‛␊ and ␊"},
	{"tab\tbell\a", ""},
	{"\x10dle\x10\x10", ""},
	{"␊ alone", ""},
}

// TestDevices stores names with spaces and line ends in odd places, which RFC 2640 3.1 allows, and lets clients fetch
// what they list.
func TestDevices(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	device := ftptest.Dial(t, s.address)
	device.Login("alice@acme", password)
	listed := map[string]string{}
	for i, name := range deviceNames {
		sent := strings.ReplaceAll(name.name, "\r", "\r\x00")
		device.Store(sent, strings.Repeat("x", i))
		s.mustStore(t, name.name, []byte(strings.Repeat("x", i)))
		listed[name.name] = cmp.Or(name.listed, name.name)
		if got := device.Command(250, "MLST "+sent); !strings.Contains(got, "; "+listed[name.name]+"\n") {
			t.Errorf("MLST %q: %q", sent, got)
		}
	}
	want := slices.Sorted(maps.Values(listed))
	for label, noMLSD := range map[string]bool{"by-list": true, "by-mlsd": false} {
		c := dialGo(t, s, ftp.DialWithDisabledMLSD(noMLSD))
		entries, err := c.List("/")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			if e.Name == "." {
				continue
			}
			got = append(got, e.Name)
			if size, err := c.FileSize("/" + e.Name); err != nil || size != int64(e.Size) {
				t.Errorf("%s: SIZE %q: %d, %v; want %d", label, e.Name, size, err, e.Size)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", label, got, want)
		}
	}
	back := t.TempDir()
	newLftp(t, s, usual).run("mirror / " + lftpQuote(back))
	if got := slices.Sorted(maps.Keys(readTree(t, back))); !slices.Equal(got, want) {
		t.Errorf("lftp: %q, want %q", got, want)
	}
	c := newCurl(t, s, usual)
	for _, name := range listed {
		if !strings.ContainsFunc(name, unicode.IsControl) { // which curl refuses
			c.run("--output", back+"/one", c.url("/"+name))
		}
		device.Command(250, "DELE "+name)
	}
	if left := s.objects(t, ""); len(left) > 0 {
		t.Errorf("the bucket has %q", left)
	}
}
