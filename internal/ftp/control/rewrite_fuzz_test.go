package control

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/users/account"
)

// FuzzRewrite: whatever the engine says, the client gets a well-formed reply
// that can be read back, in UTF-8, and none of it is an error's own text.
func FuzzRewrite(f *testing.F) {
	bundle, err := i18n.Load()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"226 Closing transfer connection\r\n", "257 \"/a\"\"b\x10r\x10n\" is the current directory\r\n",
		"550-Could not access file: one\r\n550 two\r\n", "550 Couldn't rename a to b: c\r\n", "213 65535\r\n",
		"425 x\r\n",
		"331 OK\r\n", "230 Password ok, continue\r\n", "530 Authentication error: x\r\n",
		"150 Using transfer connection\r\n",
		"350 OK\r\n", "999 \r\n", "250-\r\n x\r\n250 End\r\n",
	} {
		f.Add([]byte(seed), true)
	}
	server := &Server{commands: commands(), rules: engine.NewRules()}
	running, err := engine.Start(f.Context(), engine.Config{Local: &net.TCPAddr{}, Remote: &net.TCPAddr{}})
	if err != nil {
		f.Fatal(err)
	}
	defer running.Stop()
	const secret = "the error's own text"
	f.Fuzz(func(t *testing.T, b []byte, noted bool) {
		r, err := firstReply(b)
		if err != nil || r.Code < 100 || r.Code > 999 {
			return
		}
		s := &session{
			server:   server,
			cfg:      &Config{Bundle: bundle, DefaultLanguage: language.Arabic, Logger: slog.New(slog.DiscardHandler)},
			conn:     wire.NewConn(nil),
			log:      slog.New(slog.DiscardHandler),
			transfer: stoppedTransfer(t, nil),
			login: &account.Login{User: "u",
				Tenant: &account.Tenant{Name: "t", Greeting: map[string]string{"en": "one\n\n220 two"}}},
			name: "n\r\n220 forged",
			ctx:  t.Context(),
		}
		s.transfer.upload = true
		s.op = &operation{Operation: engine.Operation{Context: t.Context(), Path: "/" + string(b)}}
		s.engine = running
		s.engine.SetWorkingDirectory(s.op.Path)
		s.locale = reply.NewLocale(reply.Preferences{Bundle: bundle, DefaultLanguage: language.Arabic})
		if noted {
			s.op.Err = errors.New(secret)
		}
		sent := s.rewrite(r).AppendTo(nil)
		if strings.Contains(string(sent), secret) {
			t.Fatalf("%q tells %q", b, sent)
		}
		if utf8.Valid(b) && !utf8.Valid(sent) {
			t.Fatalf("%q became %q", b, sent)
		}
		lines := strings.Split(string(sent), "\r\n")
		if lines[len(lines)-1] != "" {
			t.Fatalf("%q does not end with CRLF", sent)
		}
		code := sent[:3]
		for i, line := range lines[:len(lines)-1] {
			last := i == len(lines)-2
			if strings.Contains(strings.ReplaceAll(line, "\r\x00", ""), "\r") {
				t.Fatalf("%q holds a CR that is not padded", sent)
			}
			if last != strings.HasPrefix(line, string(code)+" ") {
				t.Fatalf("%q has its last line elsewhere", sent)
			}
		}
	})
}

// firstReply reads the first reply of what the engine has written.
func firstReply(b []byte) (wire.Reply, error) {
	var r wire.Reply
	for line := range strings.Lines(string(b)) {
		last, err := r.AddLine(strings.TrimRight(line, "\r\n"))
		if err != nil || last {
			return r, err
		}
	}
	return wire.Reply{}, io.ErrUnexpectedEOF
}
