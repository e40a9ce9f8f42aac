package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/pathname"
)

// TestFinalSlash sends each command that takes a pathname the name of a file with a final slash, as if it were a
// directory. The command must fail and change nothing.
func TestFinalSlash(t *testing.T) {
	keys := []string{"archive", "d/x", "new.pdf"}
	for _, command := range []string{
		"RETR %", "STOR %", "APPE %", "STOU %", "LIST %", "NLST %", "MLSD %", "LIST -la %",
		"STAT %", "MLST %", "SIZE %", "MDTM %", "MDTM 20200101000000 %", "MFMT 20200101000000 %",
		"MFF Modify=20200101000000; %", "CWD %", "RMD %", "DELE %", "RNFR %", "HASH %", "XCRC %", "XMD5 %", "XSHA256 % 0 1",
		"SITE CPFR %", "SITE COPY % copy", "SITE RMDIR %", "SITE URL %", "SITE UTIME 20200101000000 %",
		"SITE UTIME % 20200101000000 20200101000000 20200101000000 UTC", "SITE PRESIGN %", "SITE PRESIGN % 1h",
		"SITE COPY new.pdf %", "RNFR new.pdf\r\nRNTO %", "RNFR d/x\r\nRNTO %", "RNFR archive\r\nRNTO %", "SITE CPFR new.pdf\r\nSITE CPTO %",
		"RNFR d\r\nRNTO %", "RNFR d/\r\nRNTO %",
	} {
		t.Run(strings.ReplaceAll(command, "\r\n", " "), func(t *testing.T) {
			s := newTenantSite(t, loginTo(config.Tenant{}))
			s.putNames(keys...)
			c := s.login()
			for _, name := range []string{"archive/", "/archive/", "archive//", "archive/.", "./archive/", "d/../archive/"} {
				for line := range strings.SplitSeq(strings.ReplaceAll(command, "%", name), "\r\n") {
					if verb, _, _ := strings.Cut(line, " "); slices.Contains([]string{
						"RETR", "STOR", "APPE", "STOU", "LIST", "NLST", "MLSD",
					}, verb) {
						c.do("EPSV", "229 ")
					}
					if strings.HasPrefix(line, "RNFR") && !strings.Contains(line, "archive/") && line != command {
						c.do(line, "350 ")
						continue
					}
					if strings.HasPrefix(line, "SITE CPFR new") {
						c.do(line, "350 ")
						continue
					}
					c.do(line, "550 ")
				}
				s.wantObjects(keys...)
			}
		})
	}
}

// A directory is found with and without a final slash, even next to a file with the same name.
func TestFinalSlashOfDirectories(t *testing.T) {
	for _, test := range []struct {
		name, script string // commands, each after the code of its reply
		objects      []string
	}{
		{"mkd", "257 MKD new/; 550 MKD new/; 257 MKD new/deeper/", []string{"archive", "archive/x", "new/", "new/deeper/"}},
		{"rmd", "257 MKD new; 250 RMD new/", []string{"archive", "archive/x"}},
		{"rmd-full", "550 RMD archive/", []string{"archive", "archive/x"}},
		{"cwd", "250 CWD archive/; 213 SIZE x; 250 CWD ../; 250 CWD ./archive/.", []string{"archive", "archive/x"}},
		{"dele", "550 DELE archive/; 250 DELE archive", []string{"archive/x"}},
		{"hash", "553 HASH archive/; 213 HASH archive", []string{"archive", "archive/x"}},
		{"mlst", "250 MLST archive/", []string{"archive", "archive/x"}},
		{"stat", "212 STAT archive/", []string{"archive", "archive/x"}},
		{"url", "200 SITE URL archive/", []string{"archive", "archive/x"}},
		{"rename", "350 RNFR archive/; 250 RNTO old/", []string{"archive", "old/x"}},
		{"rename-without-a-slash", "350 RNFR archive/; 250 RNTO old", []string{"archive", "old/x"}},
		{"rename-the-file", "350 RNFR archive; 250 RNTO old", []string{"archive/x", "old"}},
		{"rename-the-file-to-a-directory", "350 RNFR archive; 550 RNTO old/", []string{"archive", "archive/x"}},
		{"rename-after-a-change-of-directory", "250 CWD archive/; 350 RNFR ../archive/; 250 RNTO /old/",
			[]string{"archive", "old/x"}},
		{"copy", "200 SITE COPY archive/ old/", []string{"archive", "archive/x", "old/x"}},
		{"copy-the-file", "200 SITE COPY archive old", []string{"archive", "archive/x", "old"}},
		{"copy-from", "350 SITE CPFR archive/; 250 SITE CPTO old/", []string{"archive", "archive/x", "old/x"}},
		{"copy-from-the-file", "350 SITE CPFR archive; 550 SITE CPTO old/; 550 SITE COPY archive archive/",
			[]string{"archive", "archive/x"}},
		{"remove-all", "250 SITE RMDIR archive/", []string{"archive"}},
		{"make-all", "250 SITE MKDIR a/b/", []string{"a/", "a/b/", "archive", "archive/x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, nil)
			s.putNames("archive", "archive/x")
			c := s.login()
			for step := range strings.SplitSeq(test.script, "; ") {
				code, command, _ := strings.Cut(step, " ")
				c.do(command, code)
			}
			s.wantObjects(test.objects...)
		})
	}
	s := newSite(t, nil)
	s.putNames("archive", "archive/x")
	c := s.login()
	for _, command := range []string{"NLST archive/", "NLST ./archive/", "NLST archive//"} {
		if got := c.Transfer(command); !strings.HasSuffix(got, "/x\r\n") {
			t.Errorf("%s: %q", command, got)
		}
	}
	if got := c.mlsd("archive/"); len(got) != 2 || got["x"] == "" {
		t.Errorf("MLSD: %q", got)
	}
	if r := c.do("MLST archive/", "250-"); !strings.Contains(r, "type=dir;") || !strings.Contains(r, " archive/\n") {
		t.Errorf("MLST of the directory: %q", r)
	}
	if r := c.do("MLST archive", "250-"); !strings.Contains(r, "type=file;") {
		t.Errorf("MLST of the file: %q", r)
	}
}

// A final backslash is a slash if backslashes separate.
func TestFinalBackslash(t *testing.T) {
	settings := config.Compatibility{Backslash: pathname.BackslashSeparates}
	s := newTenantSite(t, loginTo(config.Tenant{Compatibility: settings}))
	s.putNames("file", "dir/x")
	c := s.login()
	c.do(`DELE file\`, "550 ")
	c.do(`RNFR file\`, "550 ")
	c.do(`RNFR dir\`, "350 ")
	c.do(`RNTO new\`, "250 ")
	s.wantObjects("file", "new/x")
}

// A name in another normalization form, or with a line feed, is also found with a final slash.
func TestFinalSlashOfOtherNames(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("e\u0301/x", "o\u0301", "a\nb/x", "c\nd", `file\`)
	c := s.login()
	c.do("DELE \u00f3/", "550 ")
	c.do("DELE c\u240ad/", "550 ")
	c.do("RNFR \u00e9/", "350 ")
	c.do("RNTO n/", "250 ")
	c.do("RNFR a\u240ab/", "350 ")
	c.do("RNTO m/", "250 ")
	c.do(`DELE file\`, "250 ")
	s.wantObjects("c\nd", "m/x", "n/x", "o\u0301")
}
