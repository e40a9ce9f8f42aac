package control_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

var update = flag.Bool("update", false, "rewrite the golden transcript")

// transcriptScript provokes most replies once. A command that begins with "|" transfers the text after the second
// "|", which may be missing.
var transcriptScript = []string{
	"FEAT", "HELP", "HELP RETR", "HELP NONE", "SYST", "NOOP", "STAT", "FOO", "PWD", "PASS x",
	"LANG x_y", "LANG tlh", "HOST ftp.example.org", "HOST ftp.example.com:21", "ACCT x", "AUTH GSSAPI", "PBSZ 0",
	"PROT P", "CCC",
	"OPTS UTF8 ON", "OPTS UTF8 OFF", "OPTS MLST type;size;", "OPTS FOO", "CLNT test",
	"USER demo", "PASS wrong", "USER marie", "PASS demo", "USER demo", "HOST ftp.example.com",
	"TYPE A", "SIZE x", "REST 1", "RETR x", "TYPE I", "TYPE X", "MODE S", "MODE Z", "STRU F", "STRU R", "ALLO 5",
	"SMNT x", "NOOP x",
	"MKD /home", "MKD /home", "MKD caf\u00e9 \"d'été\"", "CWD caf\u00e9 \"d'été\"", "PWD", "CDUP", "CWD nowhere",
	"RMD nowhere",
	"STOR x", "EPSV", "EPSV 2", "EPSV ALL", "PASV", "PORT 127,0,0,1,200,1", "EPRT |9|x|1|",
	"|STOR file|content", "|RETR file", "|RETR nothing", "|LIST", "|NLST", "|MLSD", "|MLSD file", "REST 100",
	"|RETR file", "|APPE file|more", "REST 3",
	"MLST file", "SIZE file", "MDTM nothing", "MFMT 20260102030405 file", "MDTM file",
	"MFF Modify=20260102030405; file", "MFF CREATE=20260102030405; file",
	"HASH file", "OPTS HASH", "OPTS HASH md5", "OPTS HASH CRC-37", "RANG 2 4", "HASH file", "RANG 1 0", "HASH .",
	"XCRC \"file\" 0 3",
	"STAT file", "STAT *", "STAT .", "MLST nothing",
	"CWD file", "RNTO x", "RNFR nothing", "RNFR file", "RNTO renamed", "DELE nothing", "DELE \xfe", "DELE renamed",
	"RMD ../home",
	"RMD caf\u00e9 \"d'été\"", "SITE HELP", "SITE FOO", "SITE CPTO x", "SITE MKDIR deep/er", "SITE CPFR deep",
	"SITE CPTO /copy", "SITE RMDIR deep", "ABOR", "LANG", "REIN", "QUIT",
}

// TestTranscript plays the same session in every language and checks that the other languages contain nothing of
// the English transcript in testdata, which -update rewrites. To read a session in Swedish:
//
//	go test -short ./internal/ftp/control -v -run TestTranscript/sv
func TestTranscript(t *testing.T) {
	bundle, err := i18n.Load()
	must.OK(t, err)
	english := playTranscript(newSite(t, nil), "en", nil)
	for _, tag := range bundle.Tags() {
		t.Run(tag.String(), func(t *testing.T) {
			if tag != language.English {
				played := playTranscript(newSite(t, nil), i18n.FeatTag(tag), nil)
				t.Log(strings.Join(played, ""))
				control.CheckNoEnglish(t, tag, english, played)
				return
			}
			got := strings.Join(english, "")
			if *update {
				must.OK(t, os.WriteFile(goldenTranscript, []byte(got), 0o644))
			}
			want := must.ReadFile(t, goldenTranscript)
			if got != want {
				t.Errorf("the transcript differs from %s (rewrite it with -update):\n%s", goldenTranscript,
					firstDifference(got, want))
			}
		})
	}
}

var goldenTranscript = filepath.Join("testdata", "transcript.txt")

// TestIdleEngine: the client does not notice that its engine stops when idle, even before each command.
func TestIdleEngine(t *testing.T) {
	s := newSite(t, func(cfg *control.Config) { cfg.EngineIdle = time.Nanosecond })
	got := strings.Join(playTranscript(s, "en", func(before string) {
		if !strings.HasPrefix(before, "RNFR") {
			wantNoGoroutines(t.Context(), t, ofEngines...)
		}
	}), "")
	if want := must.ReadFile(t, goldenTranscript); got != want {
		t.Errorf("the transcript differs from %s:\n%s", goldenTranscript, firstDifference(got, want))
	}
}

// Parts of a transcript that differ between runs, and the list of languages, which grows.
var (
	portInReply = regexp.MustCompile(`\(\|\|\|\d+\|\)`)
	tagsInReply = regexp.MustCompile(`[A-Z-]+\*?(?:;[A-Z-]+\*?){9,}`)
	nameInReply = regexp.MustCompile(`English \(en\).*\(zh-Hant\)`)
	timeInReply = regexp.MustCompile(`modify=\d{14}|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d`)
)

// playTranscript returns the exchanges of a session, each a command and its replies. The first command selects the
// language and is not part of the transcript. If pause is not nil, it is called between two commands, with the earlier
// one.
func playTranscript(s *site, language string, pause func(before string)) []string {
	var exchanges []string
	before := ""
	c := s.connect()
	answer := func(reply string) {
		reply = portInReply.ReplaceAllString(reply, "(|||PORT|)")
		reply = tagsInReply.ReplaceAllString(reply, "TAGS")
		reply = nameInReply.ReplaceAllString(reply, "LANGUAGES")
		reply = timeInReply.ReplaceAllString(reply, "TIME")
		exchanges[len(exchanges)-1] += reply + "\n"
	}
	say := func(command string) string {
		if pause != nil {
			pause(before)
		}
		before = command
		exchanges = append(exchanges, "> "+strings.ToValidUTF8(command, "\\xfe")+"\n")
		c.write(command + "\r\n")
		reply := c.reply()
		answer(reply)
		return reply
	}
	say("LANG " + language)
	exchanges[0] = strings.Replace(exchanges[0], "> LANG "+language, "> LANG", 1)
	for _, command := range transcriptScript {
		transfer, isTransfer := strings.CutPrefix(command, "|")
		if !isTransfer {
			say(command)
			continue
		}
		transfer, content, _ := strings.Cut(transfer, "|")
		data := c.Data()
		if strings.HasPrefix(say(transfer), "150 ") {
			if content != "" {
				must.Write(c.t, data, content)
				data.Close()
			}
			answer(c.reply())
		}
	}
	return exchanges
}

func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range gotLines {
		if i >= len(wantLines) || gotLines[i] != wantLines[i] {
			return "got  " + gotLines[i] + "\nwant " + strings.Join(wantLines[i:min(i+1, len(wantLines))], "")
		}
	}
	return "want more lines"
}
