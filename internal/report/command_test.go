package report

import (
	"strings"
	"testing"
)

const secret = "correct-horse"

// Secrets are never logged, neither in their usual place nor where people type them by mistake.
func TestCommandIsMasked(t *testing.T) {
	for _, test := range []struct {
		command Command
		want    string
	}{
		{Command{Verb: "PASS", Argument: secret, Known: true}, "PASS ***"},
		{Command{Verb: "PASS", Argument: "", Known: true}, "PASS"},
		{Command{Verb: "ACCT", Argument: secret, Known: true}, "ACCT ***"},
		{Command{Verb: "USER", Argument: secret, Known: true}, "USER ***"},
		{Command{Verb: "QUOT", Argument: "PASS " + secret, Known: false}, "QUOT ***"},
		{Command{Verb: strings.ToUpper(secret), Argument: "", Known: false}, "***"},
		{Command{Verb: strings.ToUpper(secret), Argument: "battery", Known: false}, "***"},
		{Command{Verb: "XYZ", Argument: "", Known: false}, "XYZ"},
		{Command{Verb: "", Argument: "", Known: false}, ""},
		{Command{Verb: "SITE", Argument: "PSWD old " + secret, Known: false}, "SITE PSWD ***"},
		{Command{Verb: "SITE", Argument: "pswd old " + secret, Known: true, Kind: SetPassword}, "SITE pswd ***"},
		{Command{Verb: "SITE", Argument: "PSWD", Known: true, Kind: SetPassword}, "SITE PSWD"},
		{Command{Verb: "SITE", Argument: "HELP", Known: true}, "SITE HELP"},
		{Command{Verb: "SITE", Argument: "COPY a b", Known: true}, "SITE COPY a b"},
		{Command{Verb: "STOR", Argument: "été.txt", Known: true}, "STOR été.txt"},
	} {
		if got := test.command.String(); got != test.want {
			t.Errorf("%+v is %q in the log, want %q", test.command, got, test.want)
		}
	}
}

// The replies to USER and SITE PRESIGN contain text that must not be logged.
func TestReplyIsMasked(t *testing.T) {
	for _, test := range []struct {
		command Command
		lines   []string
		want    string
	}{
		{Command{Verb: "USER", Argument: secret}, []string{"Password required for " + secret}, "***"},
		{Command{Verb: "SITE", Argument: "presign f", Kind: Presign},
			[]string{"Link", " https://s3.example/f?X-Amz-Signature=" + secret}, "***"},
		{Command{Verb: "PWD"}, []string{`"/" is the current directory`}, `"/" is the current directory`},
	} {
		if got := test.command.ReplyText(test.lines); got != test.want {
			t.Errorf("the log has %q of the reply to %s, want %q", got, test.command.Verb, test.want)
		}
	}
}
