package control_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestNamesInErrors: an error about a file names it as the client has, and one about something else names none.
func TestNamesInErrors(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file", "full/f", "other/f")
	long := strings.Repeat("long/", 210)[:1040]
	c := s.login()
	for _, tt := range []struct{ command, want string }{
		{"CWD nowhere", "550 nowhere: No such file or directory."},
		{"CWD /nowhere", "550 /nowhere: No such file or directory."},
		{"CWD file", "550 file: Not a directory."},
		{"SIZE ../nowhere", "550 ../nowhere: No such file or directory."},
		{"MDTM nowhere", "550 nowhere: No such file or directory."},
		{"MLST no where", "550 no where: No such file or directory."},
		{"STAT nowhere", "550 nowhere: No such file or directory."},
		{"HASH nowhere", "550 nowhere: No such file or directory."},
		{`XCRC nowhere 0 5`, "550 nowhere: No such file or directory."},
		{"RNTO x", "503 Please send RNFR first."},
		{"MFMT 20260102030405 nowhere", "550 nowhere: No such file or directory."},
		{"DELE nowhere", "550 nowhere: No such file or directory."},
		{"DELE full", "550 full: Is a directory, not a file."},
		{"RMD full", "550 full: Directory not empty."},
		{"RMD file", "550 file: Not a directory."},
		{"RMD /", "550 /: Permission denied."},
		{"MKD " + long, "553 " + long + ": The file name is too long."},
		{"MDTM " + long, "553 " + long + ": The file name is too long."},
		{"SITE CPFR " + long, "553 " + long + ": The file name is too long."},
		{"SITE COPY file " + long, "553 " + long + ": The file name is too long."},
		{"STOR a\x00b", "553 a\u2400b: File name not allowed."},
		{"MKD full", "550 full: File or directory already exists."},
		{"SITE RMDIR nowhere", "550 nowhere: No such file or directory."},
		{"SITE CPFR nowhere", "550 nowhere: No such file or directory."},
		{"RNFR nowhere", "550 nowhere: No such file or directory."},
		{"STOR full/", "550 full/: Is a directory, not a file."},
		{"DELE \xfe", "501 The file name is not valid UTF-8."},
		// as 257 shows line ends
		{"CWD no\r\x00\nwhere", "550 no" + "\u240d\u240a" + "where: No such file or directory."},
		{"CWD 日本語 ", "550 日本語 : No such file or directory."},
		{"CDUP", "250 "},
	} {
		if r := c.do(tt.command, tt.want[:4]); r != tt.want && len(tt.want) > len("250 ") {
			t.Errorf("%q: %q, want %q", tt.command, r, tt.want)
		}
	}
	c.do("RNFR other", "350 ")
	c.do("RNTO full", "550 full: Directory not empty.")
	c.do("RNFR file", "350 ")
	c.do("RNTO full", "550 full: Is a directory, not a file.")
	c.do("SITE CPFR other", "350 ")
	c.do("SITE CPTO full", "550 full: Directory not empty.")
	c.do("RNFR full", "350 ")
	c.do("RNTO file", "550 file: Not a directory.")
	c.do("RNFR full", "350 ")
	c.do("RNTO /", "550 full -> /: Permission denied.")
	const intoItself = ": A directory cannot be moved or copied into itself."
	for _, to := range []string{"full/deep/er", "/full/new", "./full/./new", "full//new/", "other/../full/new"} {
		c.do("RNFR /full", "350 ")
		c.do("RNTO "+to, "550 /full -> "+to+intoItself)
		c.do("SITE CPFR full/", "350 ")
		c.do("CWD other", "250 ")
		c.do("SITE CPTO /"+to, "550 full/ -> /"+to+intoItself)
		c.do("CDUP", "250 ")
	}
	c.do("SITE COPY full full/new", "550 full -> full/new"+intoItself)
	c.do("SITE CPFR /", "350 ")
	c.do("SITE CPTO /new", "550 / -> /new"+intoItself)
	c.do("SITE COPY full /", "550 /: Permission denied.")
	c.do("RNFR full", "350 ")
	c.do("RNTO /full", "250 ") // its own name
	c.do("RNFR other", "350 ")
	if _, err := s.client.DeleteObject(
		t.Context(), &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String("other/f")}); err != nil {
		t.Fatal(err)
	}
	c.do("RNTO new", "550 other -> new: No such file or directory.")
	c.do("RNFR file", "350 ")
	c.do("RNTO "+long, "553 "+long+": The file name is too long.")
	c.epsv()
	c.do("RETR nowhere", "550 nowhere: No such file or directory.")
	c.epsv()
	c.do("LIST nowhere", "550 nowhere: No such file or directory.")
	c.epsv()
	c.do("MLSD file", "501 file: Not a directory.")
}

// TestFileIn150: a reply 150 names the file, and the size where that is what will come.
func TestFileIn150(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file", "odd (7 bytes)")
	c := s.login()
	begins := func(command, end string) {
		t.Helper()
		conn := c.epsv()
		r := c.do(command, "150 ")
		if name := command[len("RETR "):]; name != "" && !strings.Contains(r, name) || end != "" &&
			!strings.HasSuffix(r, end) || end == "" && strings.Contains(r, "bytes)") {
			t.Errorf("%s: %q, want %q at the end", command, r, end)
		}
		conn.Close()
		if r := c.reply(); r[0] != '2' && r[0] != '4' { // the client has not read
			t.Errorf("%s: %q", command, r)
		}
	}
	begins("RETR file", " (4 bytes)")
	begins("RETR odd (7 bytes)", " (13 bytes)")
	begins("STOR new", "")
	begins("APPE new", "")
	begins("LIST ", "")
	c.do("REST 2", "350 ")
	begins("RETR file", "") // clients do not agree on what would be counted
	c.do("RANG 1 2", "350 ")
	begins("RETR file", "")
	c.do("TYPE A", "200 ")
	begins("RETR file", "") // line ends grow
}

// TestIsolates: in a language from right to left, arguments and names are isolated where the client reads UTF-8, and
// nothing else is.
func TestIsolates(t *testing.T) {
	c := newSite(t, nil).login()
	for _, tt := range []struct{ lang, command, want string }{
		{"AR", "CWD nowhere", "550 \u2068nowhere\u2069: لا يوجد ملف أو دليل بهذا الاسم."},
		{"HE", "HELP PWD", "214 תחביר: \u2068PWD\u2069"},
		{"HE", "REST 5", "350 ההעברה הבאה תתחיל מבית מספר 5."},
		{"HE", "PWD", `257 "/" היא התיקייה הנוכחית.`},
		{"FR", "CWD nowhere", "550 nowhere: Fichier ou répertoire introuvable."},
	} {
		c.do("LANG "+tt.lang, "200 ")
		if r := c.do(tt.command, tt.want[:4]); r != tt.want {
			t.Errorf("%s, %s: %+q, want %+q", tt.lang, tt.command, r, tt.want)
		}
	}
}

// No charset but UTF-8 has isolates.
func TestNoIsolatesInACharset(t *testing.T) {
	demo := loginTo(config.Tenant{PathnameEncoding: servicetest.Encoding(t, "windows-1256")})
	demo.Tenant.DefaultLanguage = language.Arabic
	c := newTenantSite(t, demo).login()
	if r := c.do("CWD nowhere", "550 nowhere: "); utf8.ValidString(r) {
		t.Errorf("%+q is not in the charset", r)
	}
}
