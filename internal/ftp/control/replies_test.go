package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/locales"
)

// engineWords is an error text that must not reach clients.
const engineWords = "words of the engine"

// quietSession returns a logged-in session in a language. Its replies and log are discarded.
func quietSession(t *testing.T, bundle *i18n.Bundle, tag language.Tag) *session {
	t.Helper()
	conn, client := net.Pipe()
	t.Cleanup(func() { conn.Close(); client.Close() })
	server := New(Config{
		Bundle: bundle, Logger: slog.New(slog.DiscardHandler), Ports: dataconn.NewPorts(dataconn.PortOptions{}),
		Backend: account.NewRegistry(slog.New(slog.DiscardHandler), nil),
	})
	s := newSession(t.Context(), &server.shared, server.cfg.Load(), conn, false)
	t.Cleanup(func() { s.cancel(nil) })
	s.identity.locale.Select(tag) // because a login may change it
	s.identity.name = "ALICE"
	s.identity.login = &account.Login{Usage: func() *account.Usage { return nil }, User: &account.User{
		Name: "ALICE", User: &config.User{}, Tenant: &account.Tenant{Name: "ACME", Tenant: &config.Tenant{}},
	}}
	t.Cleanup(s.engine.Stop)
	s.op = &operation{Operation: engine.Operation{Context: t.Context(), Path: `/d"é`},
		command: report.Command{Name: "REST", Argument: "4071"}}
	s.state.directory = s.op.Path
	return s
}

// TestRepliesInEveryLanguage compares replies with the English ones: codes and protocol fields must be equal, and
// all words must be translated.
func TestRepliesInEveryLanguage(t *testing.T) {
	bundle := loadBundle(t)
	replies := map[string]func(*session) wire.Reply{
		"CWD":           func(s *session) wire.Reply { return directoryChanged(s.request()) },
		"DELE":          func(s *session) wire.Reply { return confirms(i18n.FileDeleted)(s.request()) },
		"MKD":           func(s *session) wire.Reply { return directoryCreated(s.request()) },
		"PWD":           func(s *session) wire.Reply { r, _ := s.pwd(""); return r },
		"PASS accepted": func(s *session) wire.Reply { r, _ := s.loggedIn(s.identity.login); return r },
		"PASS refused":  func(s *session) wire.Reply { r, _ := s.loginFailed(account.ErrLoginRefused); return r },
		"PASS failed":   func(s *session) wire.Reply { r, _ := s.loginFailed(errors.New(engineWords)); return r },
	}
	for cause, name := range map[error]string{
		dataconn.ErrAborted: "aborted", dataconn.ErrStalled: "stalled", dataconn.ErrLost: "lost", dataconn.ErrTLS: "TLS", nil: "",
	} {
		for of, upload := range map[string]bool{"RETR ": false, "STOR ": true} {
			for _, err := range []error{nil, fs.ErrNotExist, engine.ErrFailed, engine.ErrUnexpected} {
				replies[fmt.Sprint(of, name, " ", err)] = func(s *session) wire.Reply {
					s.op.data = stoppedTransfer(t, cause)
					s.op.data.upload = upload
					defer func() { s.op.data = nil }()
					return s.errorReply(s.op.failure(err))
				}
			}
		}
	}
	for _, tag := range bundle.Tags() {
		t.Run(tag.String(), func(t *testing.T) {
			english := quietSession(t, bundle, language.English)
			s := quietSession(t, bundle, tag)
			for what, reply := range replies {
				checkReply(t, tag, what, reply(english), reply(s))
			}
		})
	}
}

// TestLateStop stops a transfer after it is complete. The file is stored, so the client gets 226.
func TestLateStop(t *testing.T) {
	s := quietSession(t, loadBundle(t), language.English)
	s.op.data = stoppedTransfer(t, nil)
	s.op.data.Stored()
	s.op.data.Stop(dataconn.ErrAborted)
	if err := s.op.failure(nil); err != nil {
		t.Errorf("error of a complete transfer: %v", err)
	}
}

// stoppedTransfer returns a transfer without a connection, stopped with cause if it is not nil.
func stoppedTransfer(t *testing.T, cause error) *dataTransfer {
	source := dataconn.Dial(t.Context(), netip.AddrPort{}, netip.Addr{})
	stopped := &dataTransfer{Transfer: dataconn.NewTransfer(source, dataconn.Options{})}
	if cause != nil {
		stopped.Stop(cause)
	}
	return stopped
}

// TestFailuresInEveryLanguage renders every error of the storage in every language.
func TestFailuresInEveryLanguage(t *testing.T) {
	bundle := loadBundle(t)
	for _, tag := range bundle.Tags() {
		t.Run(tag.String(), func(t *testing.T) {
			english := quietSession(t, bundle, language.English)
			s := quietSession(t, bundle, tag)
			for _, f := range reply.Errors {
				err := &fs.PathError{Op: "open", Path: engineWords, Err: f.Err}
				got := s.errorReply(err)
				checkReply(t, tag, err.Error(), english.errorReply(err), got)
				if got.Code != f.Code {
					t.Errorf("%v: got reply %d, want %d", err, got.Code, f.Code)
				}
			}
		})
	}
}

// TestCausesOfErrors: errors with the same code have different messages if their causes differ.
func TestCausesOfErrors(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
		want i18n.ID
	}{
		{&limits.Error{Limit: "address.command_rate"}, 450, i18n.TooManyCommands},
		{&limits.Error{Limit: "address.transfers"}, 450, i18n.TooManyOperations},
		{&limits.Error{Limit: limits.Bans}, 450, i18n.SessionEnded},
		{&limits.Error{Limit: limits.UserDisabled}, 450, i18n.SessionEnded},
		{&limits.Error{Limit: limits.UserExpired}, 450, i18n.SessionEnded},
		{syscall.EFBIG, 552, i18n.FileTooLarge},
		{syscall.EDQUOT, 552, i18n.QuotaExceeded},
		{syscall.ENOSPC, 452, i18n.StorageFull},
		{reply.ErrShuttingDown, 451, i18n.ShuttingDown},
		{dataconn.ErrDisconnected, 451, i18n.Disconnected},
		{syscall.ESTALE, 451, i18n.FileChanged},
		{syscall.EAGAIN, 451, i18n.StorageUnavailable},
		{dataconn.ErrAborted, 426, i18n.CommandAborted},
	} {
		if code, id, _ := reply.ForError(tt.err); code != tt.code || id != tt.want {
			t.Errorf("%v: %d %s, want %d %s", tt.err, code, id, tt.code, tt.want)
		}
	}
	for _, tt := range []struct {
		err  error
		code int
		want i18n.ID
	}{
		{nil, 451, i18n.CommandFailed},
		{dataconn.ErrLost, 426, i18n.TransferInterrupted},
		{dataconn.ErrStalled, 426, i18n.TransferStalled},
		{dataconn.ErrAborted, 426, i18n.TransferAborted},
		{dataconn.ErrTLS, 522, i18n.TLSFailed},
		{dataconn.ErrNotResumed, 522, i18n.SessionReuseRequired},
		{&limits.Error{Limit: limits.Bans}, 426, i18n.SessionEnded},
		{&limits.Error{Limit: limits.UserDisabled}, 426, i18n.SessionEnded},
		{context.Canceled, 426, i18n.ShuttingDown},
	} {
		if code, id := reply.ForTransfer(tt.err); code != tt.code || id != tt.want {
			t.Errorf("transfer, %v: %d %s, want %d %s", tt.err, code, id, tt.code, tt.want)
		}
	}
	for limit, want := range map[string]i18n.ID{
		"address.login_rate": i18n.LoginUnavailable, limits.Bans: i18n.LoginUnavailable,
		limits.Deny: i18n.AddressRefused, "sessions": i18n.TooManySessions,
		limits.AddressSessions: i18n.TooManySessionsAddress, limits.UserSessions: i18n.TooManySessionsUser,
	} {
		if id := reply.ForRefusal(&limits.Error{Limit: limit}); id != want {
			t.Errorf("a connection refused by %s: got %s, want %s", limit, id, want)
		}
	}
}

// TestFailuresOfTheEngine: an unexpected reply of ftpserverlib fails the command. If the session of ftpserverlib
// ends, this session ends too.
func TestFailuresOfTheEngine(t *testing.T) {
	s := quietSession(t, loadBundle(t), language.English)
	if r := s.errorReply(engine.ErrUnexpected); r.Code != 451 {
		t.Errorf("unexpected reply of the library: got %v", r)
	}
	if r := s.errorReply(fmt.Errorf("%w: %w", engine.ErrFailed, io.EOF)); r.Code != 421 {
		t.Errorf("end of the library's session: got %v", r)
	}
}

func loadBundle(t *testing.T) *i18n.Bundle {
	t.Helper()
	bundle, err := i18n.Load()
	must.OK(t, err)
	return bundle
}

// protocolFields match the parts of replies that clients parse, which are the same in all languages.
var protocolFields = map[int]*regexp.Regexp{
	150: regexp.MustCompile(` \(\d+ bytes\)`),
	213: regexp.MustCompile(`^\d+$|^Modify=.*`), // SIZE, MDTM and MFMT (RFC 3659), not STAT
	215: regexp.MustCompile(`.*`),
	227: regexp.MustCompile(`\(\d+,\d+,\d+,\d+,\d+,\d+\)$`),
	229: regexp.MustCompile(`\(\|\|\|\w+\|\)$`), // RFC 2428 3
	250: regexp.MustCompile(`^"(?:[^"]|"")*" `), // CWD
	257: regexp.MustCompile(`^"(?:[^"]|"")*" `), // RFC 959, appendix II
	522: regexp.MustCompile(`\([\d,]+\)$`),      // RFC 2428 2
}

// checkReply compares a reply with the English reply.
func checkReply(t *testing.T, tag language.Tag, what string, english, got wire.Reply) {
	t.Helper()
	if got.Code != english.Code || len(got.Lines) != len(english.Lines) {
		t.Errorf("%s: got %v, want %v as in English", what, got, english)
		return
	}
	text, englishText := strings.Join(got.Lines, "\n"), strings.Join(english.Lines, "\n")
	if field, ok := protocolFields[got.Code]; ok {
		if want := field.FindString(englishText); field.FindString(text) != want {
			t.Errorf("%s: %q lacks the field %q", what, text, want)
		}
		text, englishText = field.ReplaceAllString(text, ""), field.ReplaceAllString(englishText, "")
	}
	if strings.Contains(text, engineWords) {
		t.Errorf("%s: shows the text of an error: %q", what, text)
	}
	checkText(t, tag, what, englishText, text)
}

// checkText checks that a text has no English words and no bidirectional controls.
func checkText(t *testing.T, tag language.Tag, what, english, text string) {
	t.Helper()
	if words := englishIn(rulesOf(t, tag), tag, english, text); len(words) > 0 {
		t.Errorf("%s: the English %q is left over in %q", what, words, text)
	}
	if script, _ := tag.Script(); script.String() == "Arab" || script.String() == "Hebr" {
		text = withoutIsolates(text)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }); i >= 0 {
		t.Errorf("%s: bidirectional control character in %+q", what, text)
	}
}

var (
	// added by the locale, not in the catalog
	isolated    = regexp.MustCompile("[\u2066-\u2068]([^\u2066-\u2069]*)\u2069")
	syntaxShown = regexp.MustCompile(
		`[A-Z]+(?: [A-Z]+)* \[?<SP>.*`) // syntax such as RETR <SP> pathname, whose words TestWordsOfCommands checks
	latinWord = regexp.MustCompile(`\p{Latin}+`)
)

// withoutIsolates removes isolates, including nested ones.
func withoutIsolates(text string) string {
	for isolated.MatchString(text) {
		text = isolated.ReplaceAllString(text, "$1")
	}
	return text
}

// rulesByTag caches [i18n.Rules], because every text is checked with them.
var rulesByTag sync.Map

// rulesOf returns the rules of a language, including the words that it shares with English.
func rulesOf(t *testing.T, tag language.Tag) *i18n.Rules {
	t.Helper()
	if r, ok := rulesByTag.Load(tag); ok {
		return r.(*i18n.Rules)
	}
	r, err := i18n.ReadRules(locales.FS(), tag)
	must.OK(t, err)
	rulesByTag.Store(tag, r)
	return r
}

// englishIn returns the English words in a text. For languages in Latin script these are the words that also occur
// in the English text; for other scripts all Latin words except names. Words in capitals are commands.
func englishIn(r *i18n.Rules, tag language.Tag, english, text string) []string {
	if tag == language.English {
		return nil
	}
	english, text = syntaxShown.ReplaceAllString(english, ""), syntaxShown.ReplaceAllString(text, "")
	for _, tag := range locales.Tags() {
		text = strings.ReplaceAll(text, i18n.LanguageName(language.MustParse(tag)), "")
	}
	found := latinWord.FindAllString(text, -1)
	if script, _ := tag.Script(); script.String() == "Latn" {
		found = r.LeftOver(english, text)
	}
	return slices.DeleteFunc(found, func(w string) bool {
		return w == strings.ToUpper(w) || slices.Contains([]string{"babelftp", "ipv", "utf"}, strings.ToLower(w))
	})
}

// CheckNoEnglish compares the transcript of a whole session, including long replies, with the English transcript.
func CheckNoEnglish(t *testing.T, tag language.Tag, inEnglish, transcript []string) {
	t.Helper()
	english, played := newExchanges(inEnglish), newExchanges(transcript)
	if len(played) != len(english) {
		t.Fatalf("got %d commands, want %d as in English", len(played), len(english))
	}
	for i, e := range played {
		if i == 0 { // selects the language
			continue
		}
		if e.command == "LANG" { // restores the default language
			break
		}
		if e.command == "PASS demo" { // the reply has the tenant's own text
			continue
		}
		checkExchange(t, tag, english[i], e)
	}
}

// An exchange is a command and the lines of its replies.
type exchange struct {
	command string
	lines   []string
}

// newExchanges splits a transcript into exchanges.
func newExchanges(transcript []string) []exchange {
	var exchanges []exchange
	for _, text := range transcript {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		exchanges = append(exchanges, exchange{strings.TrimPrefix(lines[0], "> "), lines[1:]})
	}
	return exchanges
}

var (
	codeOfLine          = regexp.MustCompile(`^\d{3}[ -]`)
	sameInEveryLanguage = regexp.MustCompile(`^211 End$|^200 MLST OPTS|^213 [A-Z0-9-]+ \d+-\d+ [0-9a-f]+ `)
)

// checkExchange compares the replies to a command with the English replies, line by line.
func checkExchange(t *testing.T, tag language.Tag, english, got exchange) {
	t.Helper()
	if got.command != english.command || len(got.lines) != len(english.lines) {
		t.Errorf(
			"%s has %d lines, but in English %s has %d", got.command, len(got.lines), english.command, len(english.lines))
		return
	}
	for i, line := range got.lines {
		want := english.lines[i]
		code := codeOfLine.FindString(want)
		switch {
		case code == "" && got.command != "STAT" && got.command != "SITE HELP" || sameInEveryLanguage.MatchString(want):
			// Ignore the mark after the current language.
			if strings.ReplaceAll(line, "*", "") != strings.ReplaceAll(want, "*", "") {
				t.Errorf("%s: got %q, in English %q", got.command, line, want)
			}
		case codeOfLine.FindString(line) != code:
			t.Errorf("%s: %q begins differently from %q", got.command, line, want)
		default:
			number, _ := strconv.Atoi(strings.TrimRight(code, " -")) // 0 if there is no code
			checkReply(
				t, tag, got.command, wire.NewReply(number, got.withoutSent(want)),
				wire.NewReply(number, got.withoutSent(line)))
		}
	}
}

// withoutSent removes the code and the text that the client itself sent from a line.
func (e exchange) withoutSent(line string) string {
	line = codeOfLine.ReplaceAllString(line, "")
	switch name, argument, _ := strings.Cut(e.command, " "); name {
	case "USER", "LANG", "RETR", "STOR", "APPE":
		line = strings.ReplaceAll(line, argument, "")
	default: // an error ends with the name of the file
		line = strings.TrimSuffix(withoutIsolates(line), " ("+argument+")")
	}
	return line
}
