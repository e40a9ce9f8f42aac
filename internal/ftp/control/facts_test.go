package control_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// put stores an object like another S3 client would.
func (s *site) put(in *s3.PutObjectInput) {
	s.t.Helper()
	in.Bucket = &s.bucket
	if _, err := s.client.PutObject(s.t.Context(), in); err != nil {
		s.t.Fatal(err)
	}
}

// facts returns the facts that MLST shows for a pathname.
func (c *client) facts(pathname string) string {
	c.t.Helper()
	lines := strings.Split(c.do("MLST "+pathname, "250-"), "\n")
	if len(lines) != 3 {
		c.t.Fatalf("MLST %q: %q", pathname, lines)
	}
	facts, ok := strings.CutSuffix(lines[1], " "+pathname)
	if !ok || !strings.HasPrefix(facts, " ") {
		c.t.Fatalf("MLST %q: %q", pathname, lines)
	}
	return facts[1:]
}

// mlsd returns the facts of all entries of MLSD by name.
func (c *client) mlsd(pathname string) map[string]string {
	c.t.Helper()
	entries := map[string]string{}
	for line := range strings.Lines(c.Transfer(strings.TrimSuffix("MLSD "+pathname, " "))) {
		facts, name, ok := strings.Cut(strings.TrimSuffix(line, "\r\n"), " ")
		if _, twice := entries[name]; !ok || twice {
			c.t.Fatalf("MLSD %q: unexpected line %q", pathname, line)
		}
		entries[name] = facts
	}
	return entries
}

// TestPerm checks that the fact "perm" matches the rights of the user.
func TestPerm(t *testing.T) {
	for label, test := range map[string]struct {
		rights                view.Rights
		file, directory, root string
	}{
		"all":       {view.AllRights(), "adfrw", "cdeflmp", "celmp"},
		"list":      {view.Rights{List: true}, "", "el", "el"},
		"read":      {view.Rights{Read: true}, "r", "e", "e"},
		"read-only": {view.Rights{List: true, Read: true}, "r", "el", "el"},
		"write":     {view.Rights{List: true, Write: true}, "aw", "cel", "cel"},
		"delete":    {view.Rights{List: true, Delete: true}, "d", "delp", "elp"},
		"rename":    {view.Rights{List: true, Rename: true}, "f", "efl", "el"},
		"mkdir":     {view.Rights{List: true, Mkdir: true}, "", "elm", "elm"},
	} {
		t.Run(label, func(t *testing.T) {
			demo := loginTo(config.Tenant{})
			demo.Policy = may(test.rights, nil)
			s := newTenantSite(t, demo)
			s.putNames("d/sub/file")
			c := s.login()
			c.do("OPTS MLST type;perm;", "200 ")
			for pathname, want := range map[string]string{
				"/":           "type=dir;perm=" + test.root + ";",
				"/d":          "type=dir;perm=" + test.directory + ";",
				"/d/sub/file": "type=file;perm=" + test.file + ";",
			} {
				if got := c.facts(pathname); got != want {
					t.Errorf("MLST %s: got %q, want %q", pathname, got, want)
				}
			}
			if !test.rights.List {
				return // MLSD is refused
			}
			for _, listing := range []struct {
				cwd, pathname string
				want          map[string]string
			}{
				{"/", "", map[string]string{".": "type=cdir;perm=" + test.root,
					"d": "type=dir;perm=" + test.directory}},
				{"/", "d", map[string]string{"..": "type=pdir;perm=" + test.root,
					"sub": "type=dir;perm=" + test.directory}},
				{"/d", "", map[string]string{
					".": "type=cdir;perm=" + test.directory, "..": "type=pdir;perm=" + test.root,
					"sub": "type=dir;perm=" + test.directory,
				}},
				{"/d", "sub", map[string]string{"..": "type=pdir;perm=" + test.directory,
					"file": "type=file;perm=" + test.file}},
				{"/d", "/", map[string]string{"d": "type=dir;perm=" + test.directory}},
			} {
				c.do("CWD "+listing.cwd, "250 ")
				got := c.mlsd(listing.pathname)
				if len(got) != len(listing.want) {
					t.Errorf("MLSD %q in %s: %q, want %q", listing.pathname, listing.cwd, got, listing.want)
				}
				for name, want := range listing.want {
					if got[name] != want+";" {
						t.Errorf(
							"MLSD %q in %s: %q is %q, want %q", listing.pathname, listing.cwd, name, got[name], want)
					}
				}
			}
		})
	}
}

// TestPermByPathname checks that "perm" of a name follows the rule for this name, and "perm" of a directory the
// rule for names in it that no other rule matches.
func TestPermByPathname(t *testing.T) {
	demo := loginTo(config.Tenant{})
	demo.Policy = may(view.Rights{List: true, Delete: true}, map[string]view.Rights{
		"/in/*": {Write: true, Mkdir: true}, "/out/open.txt": {Read: true},
	})
	s := newTenantSite(t, demo)
	s.putNames("in/file", "out/open.txt", "out/other.txt")
	c := s.login()
	c.do("OPTS MLST perm;", "200 ")
	for dir, want := range map[string]map[string]string{
		"":    {"in": "cdelm", "out": "delp"},
		"in":  {"file": "aw"},
		"out": {"open.txt": "r", "other.txt": "d"},
	} {
		got := c.mlsd(dir)
		for name, perm := range want {
			if got[name] != "perm="+perm+";" {
				t.Errorf("MLSD %s: %s has %q, want %q", dir, name, got[name], perm)
			}
		}
	}
}

// TestModify sets modification times and checks every command that shows them. Refused commands change nothing.
func TestModify(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	c.Store("file with spaces ", "content")
	c.do("MKD dir", "257 ")
	c.do("OPTS MLST modify;create;", "200 ")
	now := time.Now().UTC().Format("20060102")
	stored := c.facts("file with spaces ")
	if !regexp.MustCompile(`^modify=(\d{14});create=(\d{14});$`).MatchString(stored) || stored[7:21] != stored[29:43] {
		t.Errorf("MLST of a new file: %q", stored)
	}
	for _, test := range []struct{ command, value, set string }{
		{"MFMT %", "20020717210715", "20020717210715"},
		{"mfmt %", "20020717210715.014", "20020717210715.014"},
		{"MFMT %", "20020717210715.500000000000001", "20020717210715.500"},
		{"MFMT %", "20161231235960", "20170101000000"},
		{"MFF Modify=%;", "20061231235959", "20061231235959"},
		{"mff mODIFY=%;", "20240229000000.25", "20240229000000.250"},
		{"MFF Modify=%", "20240229000001", "20240229000001"},
		{"MDTM %", "20240229000002", "20240229000002"},
		{"MDTM %", "20240229000003.5", "20240229000003.500"},
		{"SITE UTIME %", "20240229000004", "20240229000004"},
		{"site utime %", "202402290001", "20240229000100"},
	} {
		command := strings.Replace(test.command, "%", test.value, 1) + " file with spaces "
		if r := c.do(command, "213 "); r != "213 Modify="+test.set+"; file with spaces " {
			t.Errorf("%s: %q", command, r)
		}
		if r := c.do("MDTM file with spaces ", "213 "); r != "213 "+test.set {
			t.Errorf("MDTM: got %q, want %s", r, test.set)
		}
		if got := c.facts("file with spaces "); got != "modify="+test.set+";" { // the object itself is newer
			t.Errorf("MLST: got %q, want %s", got, test.set)
		}
	}
	for _, utc := range []string{"UTC", "utc"} {
		c.do(
			"SITE UTIME file with spaces  20240229000005 20240229000006 20240229000007 "+utc,
			"213 Modify=20240229000006; file with spaces ")
	}
	c.do("MFMT 29991231235959 file with spaces ", "213 ")
	if got := c.facts("file with spaces "); !strings.HasPrefix(got, "modify=29991231235959;create=20") {
		t.Errorf("MLST: %q", got)
	}
	if got := c.mlsd("")["file with spaces "]; !strings.HasPrefix(got, "modify="+now[:6]) {
		t.Errorf("MLSD: %q", got) // S3 listings have no other time
	}
	if got := c.facts("dir"); !regexp.MustCompile(`^modify=(\d{14});create=\d{14};$`).MatchString(got) ||
		got[7:21] != got[29:43] {
		t.Errorf("MLST of a directory with a marker: %q", got)
	}
	started := c.facts("/")
	if !regexp.MustCompile(`^modify=\d{14};$`).MatchString(started) {
		t.Errorf("MLST of the root: %q", started)
	}
	c.Store("implied/by/file", "x")
	if got := c.facts("implied"); got != started {
		t.Errorf("MLST of a directory without a marker: got %q, want the start of the server, %q", got, started)
	}
	if got := c.mlsd("implied"); got["by"] != started {
		t.Errorf("MLSD: got %q, want %q", got, started)
	}
	for command, want := range map[string]string{
		"MFMT 20230101000000 dir":                    "550 ",
		"MFMT 20230101000000 /":                      "550 ",
		"MFF Modify=2023010100000 file with spaces ": "501 ",
		"MDTM 20230101000000 nothing":                "550 No such file or directory. (nothing)",
		"MDTM 20230101000000 dir":                    "550 ",
		"MDTM 20230101000000 ":                       "550 ",
		"MDTM 20230229000000 file with spaces ":      "550 ",
		"MDTM 202301010000 file with spaces ":        "550 ",
		"SITE UTIME": "501 Syntax: SITE UTIME <SP> " +
			"YYYYMMDDhhmmss <SP> pathname",
		"SITE UTIME 20230101000000":                                          "501 ",
		"SITE UTIME 20230229000000 file with spaces ":                        "501 ",
		"SITE UTIME 20230101000000 nothing":                                  "550 No such file or directory. (nothing)",
		"SITE UTIME file with spaces  20230101000000":                        "501 ",
		"SITE UTIME file with spaces  20230101000000 20230101000000 0 UTC":   "501 ",
		"SITE UTIME 20230101000000 20230101000000 20230101000000 UTC":        "550 No such file or directory. (20230101000000 20230101000000 UTC)",
		"SITE UTIME f 20230101000000 20230101000000 20230101000000 GMT":      "501 ",
		"MFF Modify=20230101000000;Modify=20230101000000; file with spaces ": "501 ",
		"MFF Modify=20230101000000;Create=20230101000000; file with spaces ": "504 ",
		"MFF Modify=20230101000000; dir":                                     "550 ",
		"MFMT 20020717210715 nothing":                                        "550 ",
		"MFMT":                                                               "501 ",
		"MFMT 20020717210715":                                                "501 ",
		"MFMT 20020717210715 ":                                               "501 ",
		"MFMT file with spaces ":                                             "501 ",
		"MFMT 20030229000000 file with spaces ":                              "501 ",
		"MFMT  20020717210715 file with spaces ":                             "501 ",
		"MFF Modify=20020717210715; nothing":                                 "550 ",
		"MFF Modify=20030229000000; file with spaces ":                       "501 ",
		"MFF Modify=; file with spaces ":                                     "501 ",
		"MFF Modify; file with spaces ":                                      "501 ",
		"MFF Modify=20020718012845;; file with spaces ":                      "501 ",
		"MFF Modify=20020718012845;":                                         "501 ",
		"MFF Modify=20020718012845; ":                                        "501 ",
		"MFF ; file with spaces ":                                            "501 ",
		"MFF":                                                                "501 ",
		"MFF  Modify=20020718012845; file with spaces ":                      "501 ",
		"MFF X.thing=1; file with spaces ":                                   "504 ",
		"MFF UNIX.mode=7;Modify=20020718012845;Owner=a; file with spaces ": "504 MFF does not support this parameter. " +
			"(UNIX.MODE, OWNER)",
		"MDTM /": "550 ",
	} {
		c.do(command, want)
	}
	c.do("MDTM file with spaces ", "213 29991231235959")
	c.Store("20230101000000 file with spaces ", "content") // now MDTM returns the time of this file
	if r := c.do("MDTM 20230101000000 file with spaces ", "213 "+now[:6]); strings.Contains(r, "Modify") {
		t.Errorf("MDTM of a file whose name begins with a time: got %q", r)
	}
	c.do("MDTM file with spaces ", "213 29991231235959")
	c.Store("file with spaces ", "content") // new content gets a new time
	if got := c.facts("file with spaces "); !strings.HasPrefix(got, "modify="+now[:6]) {
		t.Errorf("MLST after new content: %q", got)
	}
	c.Store("a;b=c; d", "x")
	c.do("MFF Modify=20020717210715; a;b=c; d", "213 Modify=20020717210715; a;b=c; d")
	c.do("TYPE A", "200 ")
	c.do("SIZE file with spaces ", "550 ")
	c.do("TYPE I", "200 ")
	c.do("SIZE file with spaces ", "213 7")
}

// TestFractionsOfSeconds checks that replies have three digits of a fraction or none, and that S3 keeps all nine.
// Commons Net 3.9 parses a fraction as "SSS", basic-ftp takes its first three digits as milliseconds
// (parseListMLSD.js), and FtpWebRequest of .NET takes all digits. rclone sets the times of objects with
// nanoseconds.
func TestFractionsOfSeconds(t *testing.T) {
	times := regexp.MustCompile(`\d{14}(\.\d+)?`)
	for _, test := range []struct{ mtime, want string }{
		{"1700000000.123456789", "20231114221320.123"},
		{"1700000000.123456", "20231114221320.123"},
		{"1700000000.5", "20231114221320.500"},
		{"1700000000.999999999", "20231114221320.999"},
		{"1700000000.000999999", "20231114221320"},
		{"1700000000.000000000", "20231114221320"},
		{"1700000000", "20231114221320"},
		{"-0.25", "19691231235959.750"},
	} {
		t.Run(test.mtime, func(t *testing.T) {
			s := newSite(t, nil)
			s.put(&s3.PutObjectInput{
				Key: aws.String("file"), Body: strings.NewReader("x"), Metadata: map[string]string{"mtime": test.mtime},
			})
			c := s.login()
			c.do("OPTS MLST modify;create;", "200 ")
			for _, r := range []string{c.do("MDTM file", "213 "), c.facts("file")} {
				if got := times.FindString(r); got != test.want {
					t.Errorf("got %q; want %s", r, test.want)
				}
			}
			for name, facts := range c.mlsd("") {
				for _, got := range times.FindAllStringSubmatch(facts, -1) {
					if n := len(got[1]); n != 0 && n != len(".123") {
						t.Errorf("MLSD of %s: %q", name, facts)
					}
				}
			}
		})
	}
	s := newSite(t, nil)
	c := s.login()
	c.Store("file", "x")
	c.do("MFMT 20020717210715.123456789 file", "213 Modify=20020717210715.123; file")
	out, err := s.client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String("file")})
	must.OK(t, err)
	if got := out.Metadata["mtime"]; got != "1026940035.123456789" {
		t.Errorf("unexpected time in S3: %s", got)
	}
}

// A user who may not rename gets the error from RNFR, before sending the new name.
func TestRenameWithoutRight(t *testing.T) {
	demo := loginTo(config.Tenant{})
	demo.Policy = may(
		view.Rights{List: true, Write: true, Rename: true}, map[string]view.Rights{"/fixed": {List: true}})
	s := newTenantSite(t, demo)
	s.putNames("fixed", "free")
	c := s.login()
	c.do("RNFR fixed", "550 Permission denied. (fixed)")
	c.do("RNTO x", "503 ")
	c.do("RNFR free", "350 ")
	c.do("RNTO x", "250 ")
}
