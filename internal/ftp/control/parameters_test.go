package control_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestParametersEndWithATransferCommand plays scripts in which REST, RANG or ALLO precede a transfer that does not
// begin. Their parameters must not apply to the next transfer.
//
// A step is a command and the code of its reply. ">data" after a command uploads data and "<data" downloads it,
// each on its own data connection.
func TestParametersEndWithATransferCommand(t *testing.T) {
	const old = "abcdefghij"
	hashOf := func(content string) string {
		return fmt.Sprintf("200 SITE HASH SHA-256 %x", sha256.Sum256([]byte(content)))
	}
	hash := hashOf("new")
	for _, tt := range []struct {
		name   string
		script string
		want   string // expected content of b; a never changes
	}{
		{"no-data-connection", "350 REST 4|425 RETR a|226 STOR b >new", "new"},
		{"no-data-connection-for-an-upload", "350 REST 4|425 STOR b|226 STOR b >new", "new"},
		{"no-data-connection-for-an-append", "350 REST 4|425 APPE b|226 APPE b >new", old + "new"},
		{"no-data-connection-for-a-listing", "350 REST 4|425 NLST|226 STOR b >new", "new"},
		{"no-data-connection-for-a-range", "350 RANG 4 6|425 RETR a|226 STOR b >new", "new"},
		{"range-twice", "350 RANG 4 6|425 RETR a|226 RETR a <0123456789", old},
		{"nothing-connects", "350 REST 4|229 EPSV|425 RETR a|226 STOR b >new", "new"},
		{"the-client-tries-again", "350 REST 4|425 APPE b|350 REST 4|226 APPE b >new", "abcdnewhij"},
		{"offset-undone-in-ascii",
			"200 TYPE I|350 REST 4|200 TYPE A|350 REST 0|226 RETR a <0123456789|200 TYPE I|226 STOR b >new", "new"},
		{"offset-undone-in-ascii-and-no-data-connection",
			"200 TYPE I|350 REST 4|200 TYPE A|350 REST 0|425 RETR a|200 TYPE I|226 STOR b >new", "new"},
		{"offset-given-in-binary-refused-in-ascii", "350 REST 4|200 TYPE A|554 RETR a|200 TYPE I|226 STOR b >new",
			"new"},
		{"offset-given-in-ascii-refused-in-binary", "200 TYPE A|350 REST 4|200 TYPE I|554 STOR b|226 STOR b >new",
			"new"},
		{"nlst", "350 REST 4|226 NLST <a\r\nb\r\n|226 STOR b >new", "new"},
		{"list-of-nothing", "350 REST 4|550 LIST nowhere|226 STOR b >new", "new"},
		{"mlsd-of-a-file", "350 REST 4|501 MLSD a|226 STOR b >new", "new"},
		{"name-of-a-directory", "350 REST 4|550 STOR dir/|226 STOR b >new", "new"},
		{"no-name", "350 REST 4|501 STOR|226 STOR b >new", "new"},
		{"name-not-in-utf-8", "350 REST 4|501 RETR \xfe|226 STOR b >new", "new"},
		{"name-too-long", "350 REST 4|553 STOR " + strings.Repeat("x", 1025) + "|226 STOR b >new", "new"},
		{"missing-file", "350 REST 4|550 RETR nothing|226 STOR b >new", "new"},
		{"beyond-the-end", "350 REST 11|554 RETR a|226 STOR b >new", "new"},
		{"beyond-the-end-of-an-upload", "350 REST 11|554 STOR b|226 APPE b >new", old + "new"},
		{"stou", "350 REST 4|550 STOU|226 APPE b >new", old + "new"},
		{"stou-and-no-data-connection", "350 REST 4|425 STOU|226 STOR b >new", "new"},
		{"stou-of-a-range", "350 RANG 4 6|504 STOU|226 RETR a <0123456789", old},
		{"range-of-an-upload", "350 RANG 4 6|504 STOR b|226 STOR b >new", "new"},
		{"range-in-ascii", "200 TYPE A|350 RANG 4 6|551 RETR a|200 TYPE I|226 RETR a <0123456789", old},
		{"number-too-large", "350 REST 4|501 REST 99999999999999999999|350 REST 0|226 STOR b >new", "new"},
		{"range", "350 RANG 4 6|226 RETR a <456|226 RETR a <0123456789|226 STOR b >new", "new"},
		{"range-beyond-the-end", "350 RANG 7 99|226 RETR a <789|226 STOR b >new", "new"},
		{"offset-after-a-range", "350 RANG 4 6|350 REST 7|226 RETR a <789|226 STOR b >new", "new"},
		{"range-after-an-offset", "350 REST 7|350 RANG 4 6|226 RETR a <456|226 STOR b >new", "new"},
		{"whole-file-after-an-offset", "350 REST 7|350 RANG 1 0|226 RETR a <0123456789|226 STOR b >new", "new"},
		{"other-commands-between",
			"350 REST 4|200 NOOP|200 TYPE I|200 MODE S|213 SIZE b|213 MDTM b|250 CWD /|227 PASV|226 STOR b >new",
			"abcdnewhij"},
		{"login", "350 REST 4|220 REIN|331 USER demo|230 PASS demo|226 STOR b >new", "new"},
		{"download-and-upload", "350 REST 4|226 RETR a <456789|350 REST 4|226 STOR b >new|226 RETR b <abcdnewhij",
			"abcdnewhij"},
		{"ascii-until-said-otherwise",
			"200 TYPE A|226 RETR a <0123456789|550 SIZE a|226 STOR b >one\r\n|425 RETR b|200 TYPE I|213 SIZE b|226 " +
				"RETR b <one\n", "one\n"},
		{"hash", hash + "|226 STOR b >new", "new"},
		{"hash-of-another-file", hash + "|550 STOR b >other", old},
		{"hash-of-another-file-is-for-one-upload", hash + "|550 STOR b >other|226 STOR b >other", "other"},
		{"hash-of-an-empty-file", hashOf("") + "|226 STOR b >", ""},
		{"hash-of-an-empty-file-and-bytes", hashOf("") + "|550 STOR b >x", old},
		{"hash-in-capitals", "200 site hash sha-256 " + strings.ToUpper(hash[len(hash)-64:]) + "|226 STOR b >new", "new"},
		{"hash-with-spaces-at-the-end", hash + "  |550 STOR b >other", old},
		{"hash-is-for-one-upload", hash + "|226 STOR b >new|226 STOR b >other", "other"},
		{"hash-and-no-data-connection", hash + "|425 STOR b|226 STOR b >other", "other"},
		{"hash-and-no-name", hash + "|501 STOR|226 STOR b >other", "other"},
		{"hash-replaced", hashOf("first") + "|" + hash + "|550 STOR b >first|226 STOR b >new", "new"},
		{"hash-removed", hash + "|200 SITE HASH|226 STOR b >other", "other"},
		{"hash-removed-by-an-invalid-one", hash + "|501 SITE HASH SHA-256 12|226 STOR b >other", "other"},
		{"hash-removed-by-an-unknown-one", hash + "|504 SITE HASH MD5 12|226 STOR b >other", "other"},
		{"hash-and-login", hash + "|220 REIN|331 USER demo|230 PASS demo|226 STOR b >other", "other"},
		{"hash-and-other-commands", hash + "|200 NOOP|200 TYPE I|200 MODE S|213 SIZE b|213 HASH b|350 RNFR a|250 RNTO c|" +
			"350 RNFR c|250 RNTO a|200 ALLO 3|350 REST 0|227 PASV|550 STOR b >other", old},
		{"hash-and-a-listing", hash + "|226 NLST <a\r\nb\r\n|550 STOR b >other", old},
		{"hash-and-a-download", hash + "|226 RETR a <0123456789|550 STOR b >other", old},
		{"hash-and-a-range", hash + "|350 RANG 0 2|504 STOR b|226 STOR b >other", "other"},
		{"hash-and-an-offset", hash + "|350 REST 4|504 STOR b|226 STOR b >other", "other"},
		{"hash-and-an-append", hash + "|504 APPE b|226 APPE b >new", old + "new"},
		{"hash-in-ascii", hash + "|200 TYPE A|504 STOR b|200 TYPE I|226 STOR b >other", "other"},
		{"hash-with-a-new-name", hash + "|550 STOU >other", old},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, func(cfg *control.Config) {
				if strings.Contains(tt.script, "229 EPSV") { // no client connects to the first port
					cfg.Data.OpenTimeout = 2 * time.Second
				}
			})
			content := map[string]string{"a": "0123456789", "b": old}
			for name, data := range content {
				s.put(&s3.PutObjectInput{Key: &name, Body: strings.NewReader(data)})
			}
			c := s.login()
			for step := range strings.SplitSeq(tt.script, "|") {
				c.play(step)
			}
			content["b"] = tt.want
			if got := s.contents(); !maps.Equal(got, content) {
				t.Errorf("the bucket has %q, want %q", got, content)
			}
		})
	}
}

// play runs one step of a script.
func (c *client) play(step string) {
	c.t.Helper()
	code, command, _ := strings.Cut(step, " ")
	if command, want, download := strings.Cut(command, " <"); download {
		c.Want(want, command)
		return
	}
	if command, data, upload := strings.Cut(command, " >"); upload {
		if r := c.upload(command, data); !strings.HasPrefix(r, code) {
			c.t.Fatalf("%s: got %q, want %s", command, r, code)
		}
		return
	}
	if needsDataConnection(command) && code != "425" {
		c.Data()
	}
	r := c.do(command, "")
	if strings.HasPrefix(r, "150 ") { // no client connects to the port
		r = c.reply()
	}
	if !strings.HasPrefix(r, code+" ") {
		c.t.Fatalf("%s: reply %q, want %q", command, r, code)
	}
}

func needsDataConnection(command string) bool {
	switch verb, _, _ := strings.Cut(command, " "); verb {
	case "RETR", "STOR", "APPE", "STOU", "LIST", "NLST", "MLSD":
		return true
	}
	return false
}

// contents returns the content of each object.
func (s *site) contents() map[string]string {
	s.t.Helper()
	contents := make(map[string]string)
	for _, key := range s3test.Objects(s.t, s.client, s.bucket) {
		contents[key] = s3test.Content(s.t, s.client, s.bucket, key)
	}
	return contents
}

// TestALLOIsAHint: an upload may be larger or smaller than the announced size. Net::FTP of Perl announces the size
// of the local file but sends text with CR LF, and some devices announce more than they send.
func TestALLOIsAHint(t *testing.T) {
	const old = "0123456789"
	for _, tt := range []struct {
		name   string
		script string
		want   string // expected content of f
	}{
		{"exact", "200 ALLO 3|226 STOR f >new", "new"},
		{"fewer-bytes", "200 ALLO 4|226 STOR f >new", "new"},
		{"no-bytes", "200 ALLO 4|226 STOR f >", ""},
		{"more-bytes", "200 ALLO 2|226 STOR f >new", "new"},
		{"text-in-binary", "200 ALLO 8|226 STOR f >one\r\ntwo\r\n", "one\r\ntwo\r\n"},
		{"text-in-ascii", "200 TYPE A|200 ALLO 8|226 STOR f >one\r\ntwo\r\n", "one\ntwo\n"},
		{"zero", "200 ALLO 0|226 STOR f >new", "new"},
		{"records", "200 ALLO 9 R 3|226 STOR f >new", "new"},
		{"records-in-lower-case", "200 allo 9 r 3|226 STOR f >new", "new"},
		{"more-than-any-file", "200 ALLO 99999999999999999999|226 STOR f >new", "new"},
		{"restart", "200 ALLO 9|350 REST 4|226 STOR f >new", "0123new789"},
		{"append", "200 ALLO 9|226 APPE f >new", old + "new"},
		{"no-upload", "200 ALLO 9|226 RETR f <" + old + "|226 STOR f >new", "new"},
		{"after-a-refused-one", "200 ALLO 9|425 STOR f|226 STOR f >new", "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, nil)
			s.put(&s3.PutObjectInput{Key: aws.String("f"), Body: strings.NewReader(old)})
			c := s.login()
			for step := range strings.SplitSeq(tt.script, "|") {
				c.play(step)
			}
			if got := s.contents()["f"]; got != tt.want {
				t.Errorf("the file has %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("large", func(t *testing.T) {
		c := newSite(t, nil).login()
		for _, announced := range []string{"13000000", "12582912", "5242880"} {
			c.do("ALLO "+announced, "200 ")
			c.Store("f", strings.Repeat("x", 12<<20))
			c.do("SIZE f", "213 12582912")
		}
	})
}

// TestAnnouncedSizeIsLogged: the announced size is logged for the next upload only.
func TestAnnouncedSizeIsLogged(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(cfg *control.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	c := s.login()
	c.do("ALLO 9", "200 ")
	c.Store("first", "new")
	c.Store("second", "new")
	s.shutdown()
	var announced []string
	for line := range strings.Lines(log.String()) {
		if _, size, ok := strings.Cut(line, " announced="); ok {
			announced = append(announced, strings.Fields(size)[0])
		}
	}
	if !slices.Equal(announced, []string{"9"}) {
		t.Errorf("unexpected announced sizes in the log: %q", announced)
	}
}
