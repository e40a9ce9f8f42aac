package control

import (
	"maps"
	"strings"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
)

// A command is one row of the command table, and all that the server needs to know of the command.
type command struct {
	// run does the command. It returns the reply, or an error that decides the reply. It may return both, and then the
	// error is for the observers.
	run      func(s *session, arg string) (wire.Reply, error)
	argument wire.Argument // how it is read
	login    bool          // refused with 530 before login
	transfer bool          // takes what is prepared for the next transfer, also if it fails
	syntax   string        // as HELP and 501 show it, RFC 959 5.3

	kind   report.Kind // the event in the audit log
	starts bool        // a login
	reads  bool        // it may also just read, and is such an event only where it has asked the storage for a change

	// after does what follows a reply that tells success. A reply that it returns is another one.
	after func(s *session) wire.Reply
}

const (
	pathnameSyntax = " <SP> pathname"
	listSyntax     = " [<SP> pathname]"
)

// unknownVerb stands for all verbs that no row has, so that no client chooses the labels of a metric.
const unknownVerb = "other"

// commands is the command table: every verb that this server knows. The session performs it, or the library.
func commands() map[string]command {
	table := siteCommands()
	maps.Copy(table, map[string]command{
		// Login.
		"USER": {run: (*session).user, argument: wire.Text, starts: true, syntax: "USER <SP> name"},
		"PASS": {run: (*session).pass, argument: wire.OptionalText, starts: true, syntax: "PASS <SP> password"},
		"ACCT": {run: (*session).acct, argument: wire.Text, syntax: "ACCT <SP> account"},
		"REIN": {run: (*session).rein, after: (*session).endTLS, syntax: "REIN"},
		"QUIT": {run: (*session).quit, syntax: "QUIT"},
		"HOST": {run: (*session).host, argument: wire.Text, syntax: "HOST <SP> hostname"},
		"LANG": {run: (*session).language, argument: wire.OptionalTag, syntax: "LANG [<SP> language-tag]"},
		"CLNT": {run: (*session).clnt, argument: wire.Text, syntax: "CLNT <SP> name"},

		// Encryption.
		"AUTH": {run: (*session).auth, argument: wire.Words, after: (*session).beginTLS, syntax: "AUTH <SP> TLS"},
		"PBSZ": {run: (*session).pbsz, argument: wire.Words, syntax: "PBSZ <SP> 0"},
		"PROT": {run: (*session).prot, argument: wire.Words, syntax: "PROT <SP> P | C"},
		"CCC":  {run: (*session).ccc, syntax: "CCC"},

		// Information.
		"FEAT": {run: (*session).feat, syntax: "FEAT"},
		"OPTS": {run: (*session).opts, argument: wire.Text, syntax: "OPTS <SP> command [<SP> options]"},
		"HELP": {run: (*session).help, argument: wire.OptionalWords, syntax: "HELP [<SP> command]"},
		"STAT": {run: (*session).stat, argument: wire.OptionalText, syntax: "STAT" + listSyntax},
		"SYST": {run: (*session).syst, syntax: "SYST"},
		"NOOP": {run: (*session).noop, syntax: "NOOP"},
		"SITE": {run: (*session).site, argument: wire.Text, login: true,
			syntax: "SITE <SP> " + strings.Join(siteNames(table), " | ")},

		// Transfer parameters.
		"TYPE": {run: (*session).representation, argument: wire.Words, login: true,
			syntax: "TYPE <SP> A | I | L <SP> 8"},
		"MODE": {run: (*session).mode, argument: wire.Words, login: true, syntax: "MODE <SP> S"},
		"STRU": {run: (*session).stru, argument: wire.Words, login: true, syntax: "STRU <SP> F"},
		"REST": {run: (*session).rest, argument: wire.Text, login: true, syntax: "REST <SP> offset"},
		"ALLO": {run: (*session).allo, argument: wire.Words, login: true,
			syntax: "ALLO <SP> bytes [<SP> R <SP> bytes]"},

		// Data connections.
		"PASV": {run: (*session).pasv, login: true, syntax: "PASV"},
		"EPSV": {run: (*session).epsv, argument: wire.OptionalWords, login: true, syntax: "EPSV [<SP> 1 | 2 | ALL]"},
		"PORT": {run: (*session).port, argument: wire.Words, login: true, syntax: "PORT <SP> h1,h2,h3,h4,p1,p2"},
		"EPRT": {run: (*session).eprt, argument: wire.Words, login: true, syntax: "EPRT <SP> |1|address|port|"},

		// Transfers.
		"RETR": {run: (*session).retr, argument: wire.Text, login: true, transfer: true, kind: report.Download,
			syntax: "RETR" + pathnameSyntax},
		"STOR": {run: (*session).stor, argument: wire.Text, login: true, transfer: true, kind: report.Upload,
			syntax: "STOR" + pathnameSyntax},
		"APPE": {run: (*session).stor, argument: wire.Text, login: true, transfer: true, kind: report.Upload,
			syntax: "APPE" + pathnameSyntax},
		"STOU": {run: (*session).stou, argument: wire.OptionalText, login: true, transfer: true, kind: report.Upload,
			syntax: "STOU" + listSyntax},
		"LIST": {run: (*session).list, argument: wire.OptionalText, login: true, transfer: true,
			syntax: "LIST" + listSyntax},
		"NLST": {run: (*session).list, argument: wire.OptionalText, login: true, transfer: true,
			syntax: "NLST" + listSyntax},
		"MLSD": {run: (*session).list, argument: wire.OptionalText, login: true, transfer: true,
			syntax: "MLSD" + listSyntax},
		"ABOR": {run: (*session).abor, syntax: "ABOR"},

		// Files and directories.
		"CWD": {run: (*session).cwd, argument: wire.TextAfterSP, login: true,
			syntax: "CWD" + pathnameSyntax},
		"CDUP": {run: (*session).cdup, login: true, syntax: "CDUP"},
		"PWD":  {run: (*session).pwd, login: true, syntax: "PWD"},
		"MKD":  {run: byLibrary("MKD", (*session).directoryCreated), argument: wire.Text, login: true, kind: report.MakeDir, syntax: "MKD" + pathnameSyntax},
		"RMD":  {run: byLibrary("RMD", says(i18n.DirectoryRemoved)), argument: wire.Text, login: true, kind: report.RemoveDir, syntax: "RMD" + pathnameSyntax},
		"DELE": {run: byLibrary("DELE", says(i18n.FileDeleted)), argument: wire.Text, login: true, kind: report.Delete, syntax: "DELE" + pathnameSyntax},
		"RNFR": {run: (*session).rnfr, argument: wire.Text, login: true, kind: report.Rename, syntax: "RNFR" + pathnameSyntax},
		"RNTO": {run: (*session).rnto, argument: wire.Text, login: true, kind: report.Rename, syntax: "RNTO" + pathnameSyntax},
		"SIZE": {run: (*session).size, argument: wire.Text, login: true, syntax: "SIZE" + pathnameSyntax},
		"MDTM": {run: onFile(mdtm), argument: wire.Text, login: true, kind: report.SetTime, reads: true,
			syntax: "MDTM [<SP> YYYYMMDDhhmmss]" + pathnameSyntax},
		"MFMT": {run: onFile(mfmt), argument: wire.Text, login: true, kind: report.SetTime,
			syntax: "MFMT <SP> YYYYMMDDhhmmss" + pathnameSyntax},
		"MFF": {run: onFile(mff), argument: wire.Text, login: true, kind: report.SetTime,
			syntax: "MFF <SP> Modify=YYYYMMDDhhmmss;" + pathnameSyntax},
		"AVBL": {run: onFile(avbl), argument: wire.OptionalText, login: true,
			syntax: "AVBL" + listSyntax},
		"HASH": {run: (*session).hash, argument: wire.Text, login: true, syntax: "HASH" + pathnameSyntax},
		"RANG": {run: (*session).rang, argument: wire.Words, login: true, syntax: "RANG <SP> start <SP> end"},
		"MLST": {run: (*session).mlst, argument: wire.OptionalText, login: true, syntax: "MLST" + listSyntax},
	})
	for _, verb := range wire.HashVerbs() {
		usage := verb + pathnameSyntax + " [<SP> start [<SP> end]]"
		table[verb] = command{run: onFile(xhash(verb)), argument: wire.Text, login: true, syntax: usage}
	}
	for old, verb := range wire.OldVerbs() {
		c := table[verb]
		c.syntax = old + strings.TrimPrefix(c.syntax, verb)
		table[old] = c
	}
	for _, verb := range wire.UnimplementedVerbs() { // 502 rather than 500
		table[verb] = command{run: (*session).notImplemented, argument: wire.OptionalText}
	}
	return table
}

// find finds the row of a command line, and returns what the line has for the row. Each service of SITE is a row.
func (s *session) find(verb, arg string, hasArg bool) (row command, line report.Command, rest string, hasRest bool) {
	row, known := s.server.commands[verb]
	line = report.Command{Name: verb, Verb: verb, Argument: arg, Known: known, Began: time.Now()}
	if !known {
		line.Name = unknownVerb
	}
	rest, hasRest = arg, hasArg
	if verb == "SITE" {
		name, after, more := strings.Cut(arg, " ")
		var service command
		service, line.Known = s.server.commands[siteName(name)]
		if s.offers(name) {
			row, rest, hasRest = service, after, more
		}
	}
	line.Kind = row.kind
	return row, line, rest, hasRest
}

// dispatch runs a command line. This is the way of each command: its row, its turn, its function, its outcome.
func (s *session) dispatch(text string) {
	row, line, arg, hasArg := s.find(wire.ParseCommand(text))
	s.op = s.newOperation(row, line)
	s.op.renaming, s.settings.renaming = s.settings.renaming, nil // RNTO must follow RNFR at once (RFC 959 4.1.3)
	r, err := s.handle(arg, hasArg)
	s.finish(r, err)
	if row.after == nil || err != nil || r.Code >= firstFailure {
		return
	}
	if r = row.after(s); r.Code != 0 {
		s.tell(s.ctx, &report.Outcome{Command: line, Code: r.Code, Lines: r.Lines, Language: s.identity.locale.Tag()})
		s.flush()
	}
}

// handle checks the command against its row and runs it.
func (s *session) handle(arg string, hasArg bool) (wire.Reply, error) {
	if err := s.pace(); err != nil {
		return wire.Reply{}, err
	}
	row := s.op.row
	if op := s.op; row.transfer {
		op.prepared = s.settings.take()
		defer func() { s.settings.giveBack(op.prepared) }()
	}
	switch {
	case row.run == nil:
		s.cfg.Limits.Offended(s.dialogue.conn.Remote())
		return s.reply(500, i18n.UnknownCommand)
	case row.login && s.identity.login == nil:
		return s.reply(530, i18n.NotLoggedIn)
	}
	read, ok := row.argument.Read(arg, hasArg)
	if !ok {
		return s.syntaxError()
	}
	if err := s.unaudited(row); err != nil {
		return wire.Reply{}, err
	}
	return row.run(s, read)
}

// syntaxError shows the syntax of the command that is being handled.
func (s *session) syntaxError() (wire.Reply, error) {
	return s.reply(501, i18n.Syntax, s.op.row.syntax)
}
