package control_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestPatterns checks that LIST, NLST and STAT treat a pathname that does not exist as a pattern, and that other
// commands do not.
func TestPatterns(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	for _, key := range []string{
		"a.csv", "b.csv", "c.txt", "star*", "d/x.txt", "d/x.tat", "d/y.csv", "d/sub/z", "été.csv", "[b].csv", "?/in",
		"w*/x",
	} {
		s.put(&s3.PutObjectInput{Key: &key})
	}
	names := func(lines ...string) string {
		if len(lines) == 0 {
			return ""
		}
		return strings.Join(lines, "\r\n") + "\r\n"
	}
	for pattern, want := range map[string]string{
		"*.csv":        names("[b].csv", "a.csv", "b.csv", "été.csv"),
		"-la *.csv":    names("[b].csv", "a.csv", "b.csv", "été.csv"),
		"[a-b].csv":    names("a.csv", "b.csv"),
		"[^a].csv":     names("b.csv"),
		"???.csv":      names("[b].csv", "été.csv"),
		"/?.txt":       names("/c.txt"),
		"d/x.t?t":      names("d/x.tat", "d/x.txt"),
		"/d/*":         names("/d/sub", "/d/x.tat", "/d/x.txt", "/d/y.csv"),
		"d/../d/*.csv": names("d/../d/y.csv"),
		"d/s*":         names("d/sub"), // not its entries
		"star*":        names("star*"), // the file with this name
		`st*\*`:        names("star*"),
		"?":            names("?/in"), // the directory with this name
		"w*/*":         names("w*/x"),
		"*.none":       "",
		"d/*.none":     "",
		"[b].csv":      names("[b].csv"),
		"\\[b\\].c*":   names("[b].csv"),
	} {
		c.Want(want, "NLST "+pattern)
		if got := c.Transfer("LIST " + pattern); strings.Count(got, "\n") != strings.Count(want, "\n") {
			t.Errorf("LIST %s: got %q, want %q", pattern, got, want)
		}
		code := "212-"
		if pattern == "star*" || pattern == "[b].csv" {
			code = "213-"
		}
		if r := c.do("STAT "+pattern, code); strings.Count(r, "\n") != strings.Count(want, "\n")+1 {
			t.Errorf("STAT %s: got %q, want %q", pattern, r, want)
		}
	}
	for _, none := range []string{"*/x.txt", "nowhere/*", "a.csv/*", "[z", `d/x[`, "d*/", `a\.csv`, "none"} {
		for _, command := range []string{"NLST ", "LIST "} {
			c.do("EPSV", "229 ")
			c.do(command+none, "550 ")
		}
		c.do("STAT "+none, "550 ")
	}
	for _, command := range []string{"MLSD", "RETR"} {
		c.do("EPSV", "229 ")
		c.do(command+" *.csv", "550 ")
	}
	for _, command := range []string{"MLST", "SIZE", "MDTM", "DELE", "CWD", "RNFR", "MFMT 20260101000000"} {
		c.do(command+" *.csv", "550 ")
	}
}

// TestStatusOfPathname checks that STAT shows the lines of LIST, each after a space.
func TestStatusOfPathname(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	for _, key := range []string{"d/212 End of status.", "d/212-x", "d/ x", "d/sub/x", "d/213 x"} {
		s.put(&s3.PutObjectInput{Key: &key})
	}
	want := strings.Split(strings.TrimSuffix(c.Transfer("LIST d"), "\r\n"), "\r\n")
	for _, command := range []string{"STAT d", "STAT -la d", "STAT d/*", "STAT /d/"} {
		lines := strings.Split(c.do(command, "212-"), "\n")
		if len(lines) != len(want)+2 {
			t.Fatalf("%s: %q", command, lines)
		}
		for i, line := range lines[1 : len(lines)-1] {
			if line != " "+want[i] {
				t.Errorf("%s: got %q, want %q", command, line, want[i])
			}
		}
	}
	c.do("CWD d", "250 ")
	for _, command := range []string{"STAT -la", "STAT ."} {
		if r := c.do(command, "212-"); strings.Count(r, "\n") != len(want)+1 {
			t.Errorf("%s: %q", command, r)
		}
	}
	if r := c.do("STAT  x", "213-"); !strings.Contains(r, "\n -rw-r--r-- ") || !strings.Contains(r, "  x\n213 ") {
		t.Errorf("STAT of a file: %q", r)
	}
	c.do("STAT nothing", "550 ")
}

// TestListOptions checks that LIST, NLST and STAT skip options of ls, and otherwise accept names that begin with
// "-".
//
// Reported for FileZilla Server: thephpleague/flysystem#1387 and #1397, which sends "-aln" and "-alnR".
func TestListOptions(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("top", "-x", "-", "-2024", "-dir/inside", "a b/spaced", "d/one", "d/two", "d/-deep/three", "l", `"q r"/quoted`)
	const root = `"q r",-,-2024,-dir,-x,a b,d,l,top`
	for _, test := range []struct{ arg, names string }{
		{"-aln", root}, {"-alnR", root}, {"-aln ", root}, {"-lT", root}, {"-ls", root}, {"-lgo", root}, {"-p", root},
		{"-n", root}, {"-1", root}, {"-1t", root}, {"-a -l", root}, {"-x", root}, {"-dir", root}, {"--", root},
		{"-aln /d/", "-deep,one,two"}, {"-alnR d", "-deep,one,two"}, {"-a -l d", "-deep,one,two"},
		{"-la a b", "spaced"}, {"-l -- a b/", "spaced"}, {`-la "q r"`, "quoted"}, {"-aln d/t*", "two"}, {"-aln .", root},
		{"-la  d", "-deep,one,two"}, {"-a   -l  d/", "-deep,one,two"}, {"-la   ", root},
		{"./-x", "-x"}, {"/-x", "-x"}, {"-- -x", "-x"}, {"-la ./-x", "-x"}, {"-la -- -x", "-x"},
		{"./-dir", "inside"}, {"-l ./-dir/", "inside"}, {"-- -dir", "inside"}, {"d/-deep", "three"},
		{"-", "-"}, {"-l -", "-"}, {"-2024", "-2024"}, {"-*", "-,-2024,-dir,-x"}, {"-la -?", "-x"}, {"-la l", "l"},
	} {
		t.Run(strings.ReplaceAll(test.arg, "/", "|"), func(t *testing.T) {
			c := s.login()
			status := strings.Split(c.do("STAT "+test.arg, "21"), "\n")
			for _, lines := range []string{
				c.Transfer("LIST " + test.arg), c.Transfer("NLST " + test.arg), strings.Join(status[1:len(status)-1], "\n"),
			} {
				var names []string
				for line := range strings.Lines(lines) {
					line = strings.TrimSpace(line)
					if strings.Contains(line, " ftp ") {
						const columns = len("-rw-r--r-- 1 ftp ftp             0 Jan  2 15:04 ")
						line = line[columns:]
					}
					names = append(names, path.Base(line))
				}
				slices.Sort(names)
				if got := strings.Join(names, ","); got != test.names {
					t.Errorf("%q: got %s, want %s", lines, got, test.names)
				}
			}
		})
	}
	c := s.login()
	for _, command := range []string{"LIST -aln nothing", "NLST -n nothing", "LIST -- -y"} {
		c.do("EPSV", "229 ")
		c.do(command, "550 ")
	}
	for _, command := range []string{"STAT -aln nothing", "MLST -aln", "MLST -aln d"} {
		c.do(command, "550 ")
	}
	c.do("EPSV", "229 ")
	c.do("MLSD -aln", "550 ")
	c.do("MLST -x", "250-")
	c.do("SIZE -x", "213 ")
}

// TestSpacesBehindOptions: any number of spaces separates options from a pathname. Without options, extra spaces
// belong to the pathname (RFC 2640, 3.1).
func TestSpacesBehindOptions(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("dir/plain", " dir/spaced", "  dir/spaced-twice")
	c := s.login()
	for _, test := range []struct{ command, want string }{
		{"LIST dir", "plain"}, {"LIST  dir", "spaced"}, {"LIST   dir", "spaced-twice"},
		{"LIST -la dir", "plain"}, {"LIST -la  dir", "plain"}, {"LIST -la   dir", "plain"}, {"LIST -a  -l   dir/", "plain"},
		{"LIST -la --  dir", "spaced"}, {"LIST -la  ./ dir", "spaced"}, {"NLST -1  dir", "plain"},
	} {
		lines := strings.TrimSpace(c.Transfer(test.command))
		if got := lines[strings.LastIndexAny(lines, " /")+1:]; got != test.want {
			t.Errorf("%s: got %q, want %s", test.command, lines, test.want)
		}
	}
	c.do("STAT -la  dir", "212-")
}
