package control_test

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
)

const hashed = "the quick brown fox"

func TestHash(t *testing.T) {
	s := newSite(t, nil)
	s.put(&s3.PutObjectInput{Key: aws.String("f o x"), Body: strings.NewReader(hashed)})
	s.put(&s3.PutObjectInput{Key: aws.String("home/" + composed), Body: strings.NewReader(hashed)})
	s.put(&s3.PutObjectInput{Key: aws.String("empty")})
	c := s.login()
	sha := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	for _, step := range []struct{ command, want string }{
		{"HASH f o x", "213 SHA-256 0-18 " + sha(hashed) + " f o x"},
		{"hash /f o x", "213 SHA-256 0-18 " + sha(hashed) + " /f o x"},
		{"HASH empty", "213 SHA-256 0-0 " + sha("") + " empty"},
		{"HASH home/" + decomposed, "213 SHA-256 0-18 " + sha(hashed) + " home/" + decomposed},
		{"OPTS HASH", "200 SHA-256"},
		{"OPTS HASH sha-1", "200 SHA-1"},
		{"HASH f o x", fmt.Sprintf("213 SHA-1 0-18 %x f o x", sha1.Sum([]byte(hashed)))},
		{"OPTS HASH CRC-37", "501 "},
		{"OPTS HASH", "200 SHA-1"},
		{"OPTS HASH SHA-512", "200 SHA-512"},
		{"HASH f o x", fmt.Sprintf("213 SHA-512 0-18 %x f o x", sha512.Sum512([]byte(hashed)))},
		{"OPTS HASH MD5", "200 MD5"},
		{"HASH f o x", fmt.Sprintf("213 MD5 0-18 %x f o x", md5.Sum([]byte(hashed)))},
		{"OPTS HASH CRC32", "200 CRC32"},
		{"HASH f o x", fmt.Sprintf("213 CRC32 0-18 %08x f o x", crc32.ChecksumIEEE([]byte(hashed)))},
		{"OPTS HASH SHA-256", "200 SHA-256"},
		{"RANG 4 8", "350 The next transfer covers bytes 4 through 8."},
		{"HASH f o x", "213 SHA-256 4-8 " + sha("quick") + " f o x"},
		{"HASH f o x", "213 SHA-256 0-18 " + sha(hashed) + " f o x"},
		{"RANG 16 1000", "350 "},
		{"HASH f o x", "213 SHA-256 16-18 " + sha("fox") + " f o x"},
		{"RANG 4 8", "350 "},
		{"RANG 1 0", "350 OK."},
		{"HASH f o x", "213 SHA-256 0-18 " + sha(hashed) + " f o x"},
		{"RANG 4 8", "350 "},
		{"RANG 8 4", "501 Syntax: RANG <SP> start <SP> end"},
		{"HASH f o x", "213 SHA-256 0-18 " + sha(hashed) + " f o x"},
		{"RANG 19 20", "350 "},
		{"HASH f o x", "554 The position is beyond the end of the file."},
		{"RANG 99 100", "350 "},
		{"HASH f o x", "554 "},
		{"RANG 0 9223372036854775806", "350 "},
		{"HASH f o x", "213 SHA-256 0-18 "},
		{"RANG 0 9223372036854775807", "501 "},
		{"RANG -1 5", "501 "},
		{"RANG 5", "501 "},
		{"RANG 1 2 3", "501 "},
		{"HASH", "501 Syntax: HASH <SP> pathname"},
		{"HASH nothing", "550 No such file or directory. (nothing)"},
		{"HASH home", "553 This is a directory, not a file. (home)"},
		{"HASH /", "553 "},
		{"HASH \xfe", "501 "},
	} {
		c.do(step.command, step.want)
	}
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "\n HASH SHA-256*;SHA-512;SHA-1;MD5;CRC32\n") ||
		!strings.Contains(r, "\n RANG STREAM\n") {
		t.Errorf("FEAT: %q", r)
	}
	c.do("OPTS HASH md5", "200 MD5")
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "\n HASH SHA-256;SHA-512;SHA-1;MD5*;CRC32\n") {
		t.Errorf("FEAT: %q", r)
	}
	c.do("REIN", "220 ")
	c.do("OPTS HASH", "200 SHA-256")
	c.do("HASH empty", "530 ")
}

// TestSiteHash: a client learns which hashes SITE HASH accepts, and why an upload with a hash was refused.
func TestSiteHash(t *testing.T) {
	s := newSite(t, nil)
	c := s.login()
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(hashed)))
	const syntax = "Syntax: SITE HASH [<SP> SHA-256 <SP> 64HEXDIG]"
	for _, arg := range []string{"SHA-256", "SHA-256 ", "SHA-256 " + sum[1:], "SHA-256 0" + sum, "SHA-256 " + sum[1:] + "g",
		"SHA-256  " + sum, "SHA-256 " + sum + " f", "SHA-256 0-18 " + sum, "SHA-256\t" + sum} {
		code := "501 "
		if strings.Contains(arg, "\t") {
			code = "504 "
		}
		c.do("SITE HASH "+arg, code+syntax)
	}
	for _, arg := range []string{sum, "SHA256 " + sum, "SHA-512 " + sum + sum, "MD5 0123456789abcdef0123456789abcdef",
		"CRC32", "f o x"} {
		c.do("SITE HASH "+arg, "504 "+syntax)
	}
	c.do("HELP SITE HASH", "214 "+syntax)
	if r := c.do("FEAT", "211-"); !strings.Contains(r, "\n SITE HASH SHA-256\n") {
		t.Errorf("FEAT: %q", r)
	}
	c.do("SITE HASH", "200 OK.")
	c.do("SITE HASH SHA-256 "+sum, "200 The next upload must have this hash.")
	if r := c.upload("STOR f o x", hashed+"!"); r != "550 The received file has a different hash. Nothing was stored. (f o x)" {
		t.Errorf("STOR of another file: %q", r)
	}
	s.wantObjects()
	c.do("SITE HASH SHA-256 "+sum, "200 ")
	c.do("TYPE A", "200 ")
	c.do("STOR f o x", "504 SITE HASH applies to whole files only; please send TYPE I, and STOR without REST.")
	c.do("TYPE I", "200 ")
	c.do("SITE HASH SHA-256 "+sum, "200 ")
	if r := c.upload("STOR f o x", hashed); !strings.HasPrefix(r, "226 ") {
		t.Errorf("STOR: %q", r)
	}
	c.do("HASH f o x", "213 SHA-256 0-18 "+sum+" f o x")
	c.do("REIN", "220 ")
	c.do("SITE HASH SHA-256 "+sum, "530 ")
}

// A tenant that keeps line ends transfers texts unchanged, so a hash is possible in TYPE A.
func TestSiteHashOfKeptLineEnds(t *testing.T) {
	quirks := config.Compatibility{ASCII: config.KeepLineEnds}
	s := newTenantSite(t, loginTo(config.Tenant{Compatibility: quirks}))
	c := s.login()
	c.do("TYPE A", "200 ")
	for content, code := range map[string]string{"a\r\nb": "226 ", "a\nb": "550 "} {
		c.do(fmt.Sprintf("SITE HASH SHA-256 %x", sha256.Sum256([]byte("a\r\nb"))), "200 ")
		if r := c.upload("STOR f", content); !strings.HasPrefix(r, code) {
			t.Errorf("STOR of %q: %q", content, r)
		}
	}
}

func TestXHash(t *testing.T) {
	s := newSite(t, nil)
	for key, content := range map[string]string{
		"f o x": hashed, "fox 4": "four", `"fox"`: "quoted", `say "hi"`: "hi", "fox": hashed, "dir/x": "",
		"fox 4 9 9": "nine",
	} {
		s.put(&s3.PutObjectInput{Key: &key, Body: strings.NewReader(content)})
	}
	c := s.login()
	crc := func(text string) string { return fmt.Sprintf("250 %08X", crc32.ChecksumIEEE([]byte(text))) }
	for _, step := range []struct{ command, want string }{
		{"XCRC fox", crc(hashed)},
		{`XCRC "f o x"`, crc(hashed)},
		{`xcrc "/f o x"`, crc(hashed)},
		{`XCRC "fox" 4`, crc(hashed[4:])},
		{`XCRC "fox" 4 9`, crc("quick")},
		{`XCRC "fox"  0  19`, crc(hashed)},
		{`XCRC "fox" 0 0`, crc("")},
		{"XCRC f o x", crc(hashed)},
		{"XCRC f o x 4 9", crc("quick")},
		{"XCRC f o x 4", crc(hashed[4:])},
		{"XCRC fox 4", crc("four")}, // the file with this name
		{"XCRC fox 4 9", crc("quick")},
		{"XCRC fox 4 9 9", crc("nine")},
		{`XCRC "say ""hi"""`, crc("hi")},
		{`XCRC say "hi"`, crc("hi")},
		{`XCRC """fox"""`, crc("quoted")},
		{`XCRC "fox" 0 20`, "550 The position is beyond the end of the file."},
		{`XCRC "fox" 20`, "550 "},
		{`XCRC "fox" 9 4`, "550 "},
		{`XCRC "nothing"`, `550 No such file or directory. ("nothing")`},
		{`XCRC "`, "550 "},
		{"XCRC", "501 Syntax: XCRC <SP> pathname [<SP> start [<SP> end]]"},
		{"XCRC dir", "550 This is a directory, not a file. (dir)"},
		{`XMD5 "fox" 4 9`, fmt.Sprintf("250 %X", md5.Sum([]byte("quick")))},
		{"XSHA fox", fmt.Sprintf("250 %X", sha1.Sum([]byte(hashed)))},
		{"XSHA1 fox", fmt.Sprintf("250 %X", sha1.Sum([]byte(hashed)))},
		{"XSHA256 fox", fmt.Sprintf("250 %X", sha256.Sum256([]byte(hashed)))},
		{"XSHA512 fox", fmt.Sprintf("250 %X", sha512.Sum512([]byte(hashed)))},
	} {
		c.do(step.command, step.want)
	}
}
