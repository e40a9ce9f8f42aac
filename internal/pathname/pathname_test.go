package pathname_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

const composed, decomposed = "caf\u00e9", "cafe\u0301"

// A tree simulates the storage. It records the pathnames that were looked up.
type tree struct {
	there []string
	asked []string
}

func (s *tree) stat(name string) error {
	s.asked = append(s.asked, name)
	if slices.Contains(s.there, name) {
		return nil
	}
	return fs.ErrNotExist
}

func (s *tree) statDir(name string) (fs.FileInfo, error) { return nil, s.stat(name) }

func (s *tree) resolver(n pathname.Normalization) *pathname.Resolver {
	return &pathname.Resolver{Rules: pathname.Rules{Normalization: n}, WorkingDirectory: "/", StatDir: s.statDir}
}

func TestLookup(t *testing.T) {
	for _, test := range []struct {
		name, there, want string
		normalization     pathname.Normalization
		requests          int
	}{
		{"/ascii", "/ascii", "/ascii", pathname.NFC, 1},
		{"/missing", "/ascii", "", pathname.NFC, 1},
		{"/" + composed, "/" + composed, "/" + composed, pathname.NFC, 1},
		{"/" + composed, "/" + decomposed, "/" + decomposed, pathname.NFC, 2},
		{"/" + decomposed, "/" + composed, "/" + composed, pathname.NFD, 2},
		{"/" + composed, "/" + decomposed, "", pathname.None, 1},
		{"/a\u240ab", "/a\nb", "/a\nb", pathname.NFC, 2},
		{"/a\nb", "/a\u240ab", "/a\u240ab", pathname.None, 2},
		{"/ascii/", "/ascii/", "/ascii/", pathname.NFC, 1},
		{"/ascii/", "/ascii", "", pathname.NFC, 1},
		{"/" + composed + "/", "/" + decomposed + "/", "/" + decomposed + "/", pathname.NFC, 2},
		{"/" + composed + "/", "/" + decomposed, "", pathname.NFC, 2},
		{"/", "/", "/", pathname.NFC, 1},
	} {
		s := &tree{there: []string{test.there}}
		got, err := s.resolver(test.normalization).Lookup(test.name, s.stat)
		if got != test.want || (err == nil) != (test.want != "") || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf(
				"%q with existing %q, %s: got %q, %v; want %q", test.name, test.there, test.normalization, got, err, test.want)
		}
		if len(s.asked) != test.requests {
			t.Errorf(
				"%q with existing %q, %s: got requests for %q, want %d", test.name, test.there, test.normalization, s.asked,
				test.requests)
		}
	}
}

func TestResolveForCreate(t *testing.T) {
	for _, test := range []struct {
		name, there, want string
		normalization     pathname.Normalization
	}{
		{"/ascii", "", "/ascii", pathname.NFC},
		{"/" + decomposed, "", "/" + composed, pathname.NFC},
		{"/" + composed, "", "/" + decomposed, pathname.NFD},
		{"/" + composed, "", "/" + composed, pathname.None},
		{"/" + composed, "/" + decomposed, "/" + decomposed, pathname.NFC},
		{"/a\u240ab", "/a\nb", "/a\nb", pathname.NFC},
		{"/" + decomposed + "/", "", "/" + composed + "/", pathname.NFC},
		{"/" + composed + "/", "/" + decomposed + "/", "/" + decomposed + "/", pathname.NFC},
		{"/" + composed + "/", "/" + decomposed, "/" + composed + "/", pathname.NFC},
	} {
		s := &tree{there: []string{test.there}}
		if got, err := s.resolver(test.normalization).ResolveForCreate(test.name, s.stat); got != test.want ||
			err != nil {
			t.Errorf(
				"%q with existing %q, %s: got %q, %v; want %q", test.name, test.there, test.normalization, got, err, test.want)
		}
	}
}

// A long pathname below a directory that does not exist costs few requests, and one that exists is found.
func TestLongPathnames(t *testing.T) {
	const depth = 100
	long := strings.Repeat("/"+composed, depth)
	t.Run("missing", func(t *testing.T) {
		s := &tree{}
		if got, err := s.resolver(pathname.NFC).Lookup(long, s.stat); got != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %q, %v", got, err)
		}
		if got, err := s.resolver(pathname.NFC).ResolveForCreate(
			strings.Repeat("/"+decomposed, depth), s.stat); got != long || err != nil {
			t.Errorf("got %q, %v; want the normal form", got, err)
		}
		if most := 20; len(s.asked) > most {
			t.Errorf("got %d requests, want at most %d", len(s.asked), most)
		}
	})
	for label, form := range map[string]string{"normal-form": composed, "other-form": decomposed} {
		t.Run(label, func(t *testing.T) {
			s := &tree{}
			for i := range depth {
				s.there = append(s.there, strings.Repeat("/"+form, i+1))
			}
			want := strings.Repeat("/"+form, depth)
			if got, err := s.resolver(pathname.NFC).Lookup(
				strings.Repeat("/"+composed, depth-1)+"/"+decomposed, s.stat); got != want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// Each directory has the encoding of the nearest parent with an encoding.
func TestCodec(t *testing.T) {
	latin, err := pathname.ParseEncoding("windows-1252")
	must.OK(t, err)
	raw, err := pathname.ParseEncoding("raw")
	must.OK(t, err)
	c := pathname.Codec{Rules: pathname.Rules{Encoding: latin,
		DirectoryEncodings: map[string]*pathname.Encoding{"/mirror": raw}}}
	for arg, want := range map[string]string{
		"":                 "/home",
		"caf\xe9":          "/home/" + composed,
		"../mirror/\xe9/x": "/mirror/\u201bE9/x",
	} {
		name, err := c.Absolute("/home", arg)
		if err != nil || name.Path != want {
			t.Errorf("%q: got %q, %v; want %q", arg, name.Path, err, want)
		}
	}
	if got := c.EncodePath("/mirror/\u201bE9/x"); got != "/mirror/\xe9/x" {
		t.Errorf("raw name: got %q", got)
	}
	if got := c.EncodeName("/", composed); got != "caf\xe9" {
		t.Errorf("client with a charset: got %q", got)
	}
	c.Choice = pathname.UTF8
	if got := c.EncodeName("/", composed); got != composed {
		t.Errorf("UTF-8 client: got %q", got)
	}
	if got, ok := c.EncodeListName("/", "a\r\nb"); got != "a\u240d\u240ab" || !ok {
		t.Errorf("listing: got %q, %v", got, ok)
	}
	for arg, want := range map[string]string{
		"":                   "",
		"caf\xe9":            "caf\xe9",
		"caf\xe9\n":          composed + "\u240a",
		"a\n200 ok/b":        "a\u240a200 ok/b",
		"/mirror/\xe9/\r\n/": "/mirror/\xe9/\u240d\u240a/",
		"a\x00b":             "a\u2400b",
	} {
		if got := c.Echo("/home", arg); got != want {
			t.Errorf("the echo of %q is %q, want %q", arg, got, want)
		}
	}
	for arg, want := range map[string]error{"a\x00b": syscall.EILSEQ, strings.Repeat("a", 1025): syscall.ENAMETOOLONG} {
		if _, err := c.Absolute("/", arg); !errors.Is(err, want) {
			t.Errorf("%.5q: %v, want %v", arg, err, want)
		}
	}
	utf8 := pathname.Codec{}
	if _, err := utf8.Absolute("/", "caf\xe9"); !errors.Is(err, pathname.ErrNotInEncoding) {
		t.Errorf("invalid UTF-8: unexpected error %v", err)
	} else if e, ok := errors.AsType[*pathname.EncodingError](err); !ok || !e.Encoding.UTF8() {
		t.Errorf("the error %v lacks the encoding", err)
	}
}

// A pathname that can only name a directory ends with a slash, and no file is created under it.
func TestDirectories(t *testing.T) {
	for _, test := range []struct{ arg, want string }{
		{"a", "/home/a"}, {"a/", "/home/a/"}, {"a//", "/home/a/"}, {"a/.", "/home/a/"}, {"a/b/..", "/home/a/"},
		{".", "/home/"}, {"..", "/"}, {"./", "/home/"}, {"/", "/"}, {"/..", "/"}, {"//", "/"}, {"...", "/home/..."},
		{"a/.b", "/home/a/.b"}, {`a\`, "/home/a/"}, {`a\b\..`, "/home/a/"}, {`\`, "/"},
	} {
		c := pathname.Codec{Rules: pathname.Rules{Backslash: pathname.BackslashSeparates}}
		if got, err := c.Absolute("/home", test.arg); got.Path != test.want || err != nil {
			t.Errorf("%q: got %q, %v; want %q", test.arg, got.Path, err, test.want)
		}
		directory := strings.HasSuffix(test.want, "/")
		if _, err := c.AbsoluteFile("/home", test.arg); errors.Is(err, syscall.EISDIR) != directory {
			t.Errorf("%q as a file: %v", test.arg, err)
		}
	}
}

// TestEchoOfLongPathnames: Echo of a pathname with as many segments as a line can have takes little time, because it
// stops decoding at the maximum length of a name.
func TestEchoOfLongPathnames(t *testing.T) {
	raw, err := pathname.ParseEncoding("raw")
	must.OK(t, err)
	c := pathname.Codec{Rules: pathname.Rules{DirectoryEncodings: map[string]*pathname.Encoding{"/mirror": raw}}}
	arg := strings.Repeat("/x", 200_000) + "\r"
	if got, want := c.Echo("/", arg), pathname.EscapeLineBreaks(arg); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
}

// TestEncodingOf: a directory has the encoding of the nearest parent with an encoding, whatever the Unicode form of its
// name.
func TestEncodingOf(t *testing.T) {
	first, second := new(pathname.Encoding), new(pathname.Encoding)
	rules := pathname.Rules{DirectoryEncodings: map[string]*pathname.Encoding{"/café": first, "/café/old/é": second}}
	for dir, want := range map[string]*pathname.Encoding{
		"/": nil, "/cafés": nil, "/caf": nil, "/x/café": nil, "/café": first, "/cafe\u0301": first,
		"/cafe\u0301/x/y": first, "/café/old": first,
		"/café/old/e\u0301": second, "/cafe\u0301/old/é/x": second, "/café/old/éx": first,
	} {
		if got := rules.EncodingOf(dir); got != want {
			t.Errorf("%q: got %v, want %v", dir, got, want)
		}
	}
}
