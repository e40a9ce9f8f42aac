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

// TestNamesInErrors: an error about a file repeats the name that the client sent. Other errors name no file.
func TestNamesInErrors(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file", "full/f", "other/f")
	long := strings.Repeat("long/", 210)[:1040]
	c := s.login()
	for _, tt := range []struct{ command, want string }{
		{"CWD nowhere", "550 No such file or directory. (nowhere)"},
		{"CWD /nowhere", "550 No such file or directory. (/nowhere)"},
		{"CWD file", "550 Not a directory. (file)"},
		{"SIZE ../nowhere", "550 No such file or directory. (../nowhere)"},
		{"MDTM nowhere", "550 No such file or directory. (nowhere)"},
		{"MLST no where", "550 No such file or directory. (no where)"},
		{"STAT nowhere", "550 No such file or directory. (nowhere)"},
		{"HASH nowhere", "550 No such file or directory. (nowhere)"},
		{`XCRC nowhere 0 5`, "550 No such file or directory. (nowhere)"},
		{"RNTO x", "503 Please send RNFR first."},
		{"MFMT 20260102030405 nowhere", "550 No such file or directory. (nowhere)"},
		{"DELE nowhere", "550 No such file or directory. (nowhere)"},
		{"DELE full", "550 This is a directory, not a file. (full)"},
		{"RMD full", "550 Directory not empty. (full)"},
		{"RMD file", "550 Not a directory. (file)"},
		{"RMD /", "550 This directory cannot be moved, replaced or removed. (/)"},
		{"MKD " + long, "553 The file name is too long. (" + long + ")"},
		{"MDTM " + long, "553 The file name is too long. (" + long + ")"},
		{"SITE CPFR " + long, "553 The file name is too long. (" + long + ")"},
		{"SITE COPY file " + long, "553 The file name is too long. (" + long + ")"},
		{"STOR a\x00b", "553 This name contains a control character or another invisible character. (a\u2400b)"},
		{"MKD a\u200b", "553 This name contains a control character or another invisible character. (a\u200b)"},
		{"MKD .babelftp", "553 The name .babelftp is reserved for the server. (.babelftp)"},
		{"MKD a/.babelftp/b", "553 The name .babelftp is reserved for the server. (a/.babelftp/b)"},
		{"MKD full", "550 A file or directory with this name already exists. (full)"},
		{"SITE RMDIR nowhere", "550 No such file or directory. (nowhere)"},
		{"SITE RMDIR file", "550 Not a directory. (file)"},
		{"SITE CPFR nowhere", "550 No such file or directory. (nowhere)"},
		{"RNFR nowhere", "550 No such file or directory. (nowhere)"},
		{"STOR full/", "550 This is a directory, not a file. (full/)"},
		{"DELE \xfe", "501 The file name is not valid UTF-8."},
		// line ends appear as in 257
		{"CWD no\r\x00\nwhere", "550 No such file or directory. (no" + "\u240d\u240a" + "where)"},
		{"CWD 日本語 ", "550 No such file or directory. (日本語 )"},
		{"CDUP", "250 "},
	} {
		if r := c.do(tt.command, tt.want[:4]); r != tt.want && len(tt.want) > len("250 ") {
			t.Errorf("%q: got %q, want %q", tt.command, r, tt.want)
		}
	}
	c.do("RNFR other", "350 ")
	c.do("RNTO full", "550 A file or directory with this name already exists. (full/f)")
	c.do("RNFR file", "350 ")
	c.do("RNTO full", "550 This is a directory, not a file. (full)")
	c.do("SITE CPFR other", "350 ")
	c.do("SITE CPTO full/", "550 A file or directory with this name already exists. (full/f)")
	c.do("RNFR full", "350 ")
	c.do("RNTO file", "550 Not a directory. (file)")
	c.do("RNFR full", "350 ")
	c.do("RNTO /", "550 This directory cannot be moved, replaced or removed. (/)")
	const intoItself = "550 A directory cannot be moved or copied into itself. "
	for _, to := range []string{"full/deep/er", "/full/new", "./full/./new", "full//new/", "other/../full/new"} {
		c.do("RNFR /full", "350 ")
		c.do("RNTO "+to, intoItself+"(/full -> "+to+")")
		c.do("SITE CPFR full/", "350 ")
		c.do("CWD other", "250 ")
		c.do("SITE CPTO /"+to, intoItself+"(full/ -> /"+to+")")
		c.do("CDUP", "250 ")
	}
	c.do("SITE COPY full full/new", intoItself+"(full -> full/new)")
	c.do("SITE CPFR /", "350 ")
	c.do("SITE CPTO /new", intoItself+"(/ -> /new)")
	c.do("SITE COPY full /", "550 This directory cannot be moved, replaced or removed. (/)")
	c.do("RNFR full", "350 ")
	c.do("RNTO /full", "250 ") // both names are the same file
	c.do("RNFR other", "350 ")
	if _, err := s.client.DeleteObject(
		t.Context(), &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String("other/f")}); err != nil {
		t.Fatal(err)
	}
	c.do("RNTO new", "550 No such file or directory. (other -> new)")
	c.do("RNFR file", "350 ")
	c.do("RNTO "+long, "553 The file name is too long. ("+long+")")
	c.Data()
	c.do("RETR nowhere", "550 No such file or directory. (nowhere)")
	c.Data()
	c.do("LIST nowhere", "550 No such file or directory. (nowhere)")
	c.Data()
	c.do("MLSD file", "501 Not a directory. (file)")
}

// TestFileIn150: reply 150 names the file, and the size if it is the size of the data that follows.
func TestFileIn150(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file", "odd (7 bytes)")
	c := s.login()
	begins := func(command, end string) {
		t.Helper()
		conn := c.Data()
		r := c.do(command, "150 ")
		if name := command[len("RETR "):]; name != "" && !strings.Contains(r, name) || end != "" &&
			!strings.HasSuffix(r, end) || end == "" && strings.Contains(r, "bytes)") {
			t.Errorf("%s: got %q, want %q at the end", command, r, end)
		}
		conn.Close()
		if r := c.reply(); r[0] != '2' && r[0] != '4' { // the client has not read the data
			t.Errorf("%s: %q", command, r)
		}
	}
	begins("RETR file", " (4 bytes)")
	begins("RETR odd (7 bytes)", " (13 bytes)")
	begins("STOR new", "")
	begins("APPE new", "")
	begins("LIST ", "")
	c.do("REST 2", "350 ")
	begins("RETR file", "") // clients disagree about the size of a partial transfer
	c.do("RANG 1 2", "350 ")
	begins("RETR file", "")
	c.do("TYPE A", "200 ")
	begins("RETR file", "") // conversion of line ends changes the size
}

// TestIsolates: in right-to-left languages, the text of each reply line is in a bidirectional isolate if the
// client reads UTF-8, and each name and argument is in an isolate of its own. Text that clients parse is the same
// in all languages.
func TestIsolates(t *testing.T) {
	demo := loginTo(config.Tenant{Greeting: map[language.Tag]string{
		language.English: "Hello {User}.", language.Arabic: "أهلًا {User}.\nFTP",
	}})
	s := newTenantSite(t, demo)
	s.putNames("file", "full/f")
	c := s.connect()
	c.do("USER demo", "331 ")
	c.do("PASS demo", "230-Hello ")
	for _, tt := range []struct{ lang, command, want string }{
		{"AR", "CWD nowhere", "550 \u2067لا يوجد ملف أو دليل بهذا الاسم. (\u2068nowhere\u2069)\u2069"},
		{"AR", "LANG AR", "200-\u2067أهلًا \u2068demo\u2069.\u2069\n FTP\n200 \u2067"},
		{"HE", "LANG HE", "200-Hello demo.\n200 \u2067"},
		{"HE", "HELP PWD", "214 \u2067תחביר: \u2068PWD\u2069\u2069"},
		{"HE", "HELP EPRT", "214 \u2067תחביר: \u2068EPRT <SP> |1|\u2068כתובת\u2069|\u2068פורט\u2069|\u2069\u2069"},
		{"HE", "REST 5", "350 \u2067"},
		{"HE", "DELE full", "550 \u2067זו תיקייה ולא קובץ. (\u2068full\u2069)\u2069"},
		{"HE", "PWD", `257 "/" היא התיקייה הנוכחית.`},
		{"HE", "MKD new", `257 "/new" `},
		{"HE", "SYST", "215 UNIX Type: L8"},
		{"HE", "SIZE file", "213 4"},
		{"HE", "PBSZ 0", "503 \u2067"},
		{"HE", "PASV", "227 מעבר "},
		{"HE", "EPSV", "229 מעבר "},
		{"HE", "EPRT |3|::1|5|", "522 פרוטוקול "},
		{"FA", "MFF Type=x; file", "504 "},
		{"FA", "CWD nowhere", "550 \u2067چنین فایل یا پوشه\u200cای وجود ندارد. (\u2068nowhere\u2069)\u2069"},
		{"FR", "CWD nowhere", "550 Fichier ou répertoire introuvable. (nowhere)"},
		{"FR", "LANG FR", "200-Hello demo.\n200 "},
		{"JA", "CWD nowhere", "550 ファイルまたはディレクトリが見つかりません。 (nowhere)"},
		{"ZH-HANT", "CWD nowhere", "550 找不到檔案或目錄。 (nowhere)"},
	} {
		c.do("LANG "+tt.lang, "200")
		r := c.do(tt.command, tt.want[:3])
		if !strings.HasPrefix(strings.ReplaceAll(r, "\r\n", "\n"), tt.want) || !balanced(r) {
			t.Errorf("%s, %s: %+q, want %+q", tt.lang, tt.command, r, tt.want)
		}
	}
}

// balanced reports whether each line closes exactly the isolates that it opens.
func balanced(text string) bool {
	for line := range strings.Lines(text) {
		depth := 0
		for _, r := range line {
			switch r {
			case '\u2066', '\u2067', '\u2068':
				depth++
			case '\u2069':
				depth--
			}
			if depth < 0 {
				return false
			}
		}
		if depth != 0 {
			return false
		}
	}
	return true
}

// TestIsolatesOfTwoNames: each name of a rename is in an isolate of its own.
func TestIsolatesOfTwoNames(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("full/f")
	c := s.login()
	const want = " (\u2068full\u2069 -> \u2068full/new\u2069)\u2069"
	for _, lang := range []string{"AR", "FA", "HE", "UR"} {
		c.do("LANG "+lang, "200 ")
		c.do("RNFR full", "350 \u2067")
		for _, r := range []string{c.do("RNTO full/new", "550 "), c.do("SITE COPY full full/new", "550 ")} {
			if !strings.HasSuffix(r, want) || !balanced(r) {
				t.Errorf("%s: got %+q, want %+q", lang, r, want)
			}
		}
	}
}

// TestIsolatesOfSize: the size in 150 is in an isolate of its own, after the space that ftplib of Python searches
// for.
func TestIsolatesOfSize(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file")
	c := s.login()
	for lang, want := range map[string]string{
		"HE": "\u2068file\u2069\u2069 \u2066 (4 bytes)\u2069", "AR": "\u2068file\u2069\u2069 \u2066 (4 bytes)\u2069", "DE": "file (4 bytes)",
	} {
		c.do("LANG "+lang, "200 ")
		conn := c.Data()
		if r := c.do("RETR file", "150 "); !strings.HasSuffix(r, want) || !balanced(r) {
			t.Errorf("%s: got %+q, want %+q", lang, r, want)
		}
		conn.Close()
		c.reply()
	}
}

// TestIsolatesOfLongReplies: lines of text are isolated, facts and features are not.
func TestIsolatesOfLongReplies(t *testing.T) {
	s := newSite(t, nil)
	s.putNames("file")
	c := s.login()
	c.do("LANG FA", "200 ")
	for command, isolated := range map[string]int{
		"FEAT": 1, "HELP": 2, "STAT": 8, "STAT file": 2, "MLST file": 2, "SITE URL file": 2,
	} {
		r := c.do(command, "2")
		lines := strings.Count(r, "\u2067")
		if lines != isolated || !balanced(r) {
			t.Errorf("%s: %d lines are isolated, want %d: %+q", command, lines, isolated, r)
		}
		for line := range strings.Lines(r) {
			if fact := strings.HasPrefix(line, " Type=") || strings.Contains(line, "demo "); fact &&
				strings.ContainsAny(line, "\u2066\u2067\u2068\u2069") {
				t.Errorf("%s: %+q", command, line)
			}
		}
	}
	if r := c.do("SITE HELP", "214"); !strings.Contains(r, "\n \u2068CPFR <SP> \u2068") || !balanced(r) {
		t.Errorf("got %+q", r)
	}
}

// Charsets other than UTF-8 have no isolates.
func TestNoIsolatesInACharset(t *testing.T) {
	demo := loginTo(config.Tenant{
		Compatibility: config.Compatibility{Charset: servicetest.Encoding(t, "windows-1256")},
	})
	demo.Tenant.DefaultLanguage = language.Arabic
	c := newTenantSite(t, demo).login()
	for _, command := range []string{"CWD nowhere", "RMD /", "HELP PWD"} {
		// no non-ASCII text in windows-1256 is valid UTF-8
		if r := c.do(command, ""); utf8.ValidString(r) || strings.Contains(r, "\xe2\x81\xa7") {
			t.Errorf("%+q is not in the charset", r)
		}
	}
}
