package engine

import (
	"regexp"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// A Meaning is what a reply of the engine tells.
type Meaning int

// The meanings. The session has more to say about all of them but Message and
// Verbatim.
const (
	Unexpected Meaning = iota // what the session has checked before or answers itself
	Message                   // Answer.Code and Answer.Text
	Verbatim                  // protocol text, the same in every language
	LoggedIn
	LoginFailed
	ParameterNotImplemented
	CurrentDirectory
	DirectoryChanged
	DirectoryCreated
	TransferStarting
	TransferEnded // complete or not: see [dataconn.Outcome]
	DataConnectionFailed
	StorageFailed // for the reason in Operation.Err
)

// An Answer is what becomes of a reply of the engine.
type Answer struct {
	Meaning Meaning
	Code    int     // of Message
	Text    i18n.ID // of Message
}

// A Rule gives the answer to one reply of the engine, chosen by its code and the
// text that follows, or the beginning of it. A test holds the rules against the
// engine's source.
type Rule struct {
	Code   int
	Text   *regexp.Regexp
	Answer Answer
}

// Rules are all there are.
type Rules []Rule

// Answer finds the first rule for a reply.
func (rules Rules) Answer(r wire.Reply) Answer {
	text := strings.Join(r.Lines, "\n")
	for _, rule := range rules {
		if rule.Code == r.Code && rule.Text.MatchString(text) {
			return rule.Answer
		}
	}
	return Answer{}
}

func special(m Meaning) Answer              { return Answer{Meaning: m} }
func message(code int, text i18n.ID) Answer { return Answer{Message, code, text} }

// NewRules makes the table, in the order in which it is searched.
func NewRules() Rules {
	row := func(code int, text string, answer Answer) Rule {
		return Rule{code, regexp.MustCompile(`^(?s:` + text + `)$`), answer}
	}
	return []Rule{
		// Login.
		row(230, `Password ok, continue`, special(LoggedIn)),
		row(530, `Authentication error: .*`, special(LoginFailed)),
		row(530, `Please login with USER and PASS`, message(530, i18n.NotLoggedIn)),

		// Parameters.
		row(200, `Using stream mode`, message(200, i18n.ModeStream)),
		row(504, `Unimplemented MODE type`, special(ParameterNotImplemented)),
		row(504, `Unsupported mode`, special(ParameterNotImplemented)),

		// Directories.
		row(250, `CD worked on .*`, special(DirectoryChanged)),
		row(550, `Can't change directory to .*: Not a Directory`, message(550, i18n.NotADirectory)),
		row(550, `CD issue: .*`, special(StorageFailed)),
		row(250, `CDUP worked on .*`, message(250, i18n.DirectoryChanged)),
		row(550, `CDUP issue: .*`, special(StorageFailed)),
		row(257, `".*" is the current directory`, special(CurrentDirectory)),
		row(257, `Created dir ".*"`, special(DirectoryCreated)),
		row(550, `Could not create ".*" : .*`, special(StorageFailed)),
		row(250, `Created dir .*`, message(250, i18n.DirectoryCreated)),
		row(550, `Couldn't create dir .*: .*`, special(StorageFailed)),
		row(250, `Deleted dir .*`, message(250, i18n.DirectoryRemoved)),
		row(550, `Could not delete dir .*: .*`, special(StorageFailed)),
		row(250, `Removed dir .*`, message(250, i18n.DirectoryRemoved)),
		row(550, `Couldn't remove dir .*: .*`, special(StorageFailed)),

		// Files.
		row(250, `Removed file .*`, message(250, i18n.FileDeleted)),
		row(550, `Couldn't delete .*: .*`, special(StorageFailed)),
		row(350, `Sure, give me a target`, message(350, i18n.RenameReady)),
		row(250, `Done !`, message(250, i18n.Renamed)),
		row(550, `Couldn't rename .* to .*: .*`, special(StorageFailed)),
		row(503, `RNFR is expected before RNTO`, message(503, i18n.RenameFromFirst)),
		row(550, `.* is a directory`, message(550, i18n.IsADirectory)),
		row(213, `\d+`, special(Verbatim)), // SIZE and MDTM
		row(213, `Modify=.*; .*`, special(Verbatim)),
		row(550, `Couldn't set mtime .* for .*, err: .*`, special(StorageFailed)),
		row(550, `Couldn't access .*: .*`, special(StorageFailed)),

		// Transfers.
		row(150, `Using transfer connection`, special(TransferStarting)),
		row(226, `Closing transfer connection`, special(TransferEnded)),
		row(550, `unable to open transfer: no transfer connection`, special(DataConnectionFailed)),
		row(425, `.*`, special(DataConnectionFailed)),
		row(550, `Issue during transfer close: .*`, special(TransferEnded)),
		row(550, `Issue during transfer: .*`, special(TransferEnded)),
		row(550, `Could not access file: .*`, special(StorageFailed)),
		row(550, `Could not seek file: .*`, special(StorageFailed)),
		row(450, `Could not list: .*`, special(StorageFailed)),
		row(550, `Could not list: .*`, special(StorageFailed)),
		row(451, `Could not list: .*`, special(StorageFailed)),
	}
}
