package control

import (
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/filecmd"
	"github.com/babelftp/babelftp/internal/ftp/syntax"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// A command is one row of the command table.
type command struct {
	run      func(s *session, arg string)
	argument syntax.Argument // how it is read
	login    bool            // refused with 530 before login
	transfer bool            // ends the transfer parameters
	syntax   string          // as HELP and 501 show it, RFC 959 5.3
}

const (
	pathnameSyntax = " <SP> pathname"
	listSyntax     = " [<SP> pathname]"
)

// unknownVerb stands for all verbs that no row has, so that no client chooses the labels of a metric.
const unknownVerb = "other"

// commands is the command table: every verb that this server knows, with answers of its own or the engine's.
func commands() map[string]command {
	table := map[string]command{
		// Login.
		"USER": {run: (*session).user, argument: syntax.Text, syntax: "USER <SP> name"},
		"PASS": {run: (*session).pass, argument: syntax.OptionalText, syntax: "PASS <SP> password"},
		"ACCT": {run: (*session).acct, argument: syntax.Text, syntax: "ACCT <SP> account"},
		"REIN": {run: (*session).rein, syntax: "REIN"},
		"QUIT": {run: (*session).quit, syntax: "QUIT"},
		"HOST": {run: (*session).host, argument: syntax.Text, syntax: "HOST <SP> hostname"},
		"LANG": {run: (*session).language, argument: syntax.OptionalTag, syntax: "LANG [<SP> language-tag]"},
		"CLNT": {run: (*session).noop, argument: syntax.Text, syntax: "CLNT <SP> name"},

		// Encryption.
		"AUTH": {run: (*session).auth, argument: syntax.Words, syntax: "AUTH <SP> TLS"},
		"PBSZ": {run: (*session).pbsz, argument: syntax.Words, syntax: "PBSZ <SP> 0"},
		"PROT": {run: (*session).prot, argument: syntax.Words, syntax: "PROT <SP> P | C"},
		"CCC":  {run: (*session).ccc, syntax: "CCC"},

		// Information.
		"FEAT": {run: (*session).feat, syntax: "FEAT"},
		"OPTS": {run: (*session).opts, argument: syntax.Text, syntax: "OPTS <SP> command [<SP> options]"},
		"HELP": {run: (*session).help, argument: syntax.OptionalWords, syntax: "HELP [<SP> command]"},
		"STAT": {run: (*session).stat, argument: syntax.OptionalText, syntax: "STAT" + listSyntax},
		"SYST": {run: (*session).syst, syntax: "SYST"},
		"NOOP": {run: (*session).noop, syntax: "NOOP"},
		"SITE": {run: (*session).site, argument: syntax.Text, login: true,
			syntax: "SITE <SP> " + siteNames()},

		// Transfer parameters.
		"TYPE": {run: (*session).representation, argument: syntax.Words, login: true,
			syntax: "TYPE <SP> A | I | L <SP> 8"},
		"MODE": {run: (*session).mode, argument: syntax.Words, login: true, syntax: "MODE <SP> S"},
		"STRU": {run: (*session).stru, argument: syntax.Words, login: true, syntax: "STRU <SP> F"},
		"REST": {run: (*session).rest, argument: syntax.Text, login: true, syntax: "REST <SP> offset"},
		"ALLO": {run: (*session).allo, argument: syntax.Words, login: true,
			syntax: "ALLO <SP> bytes [<SP> R <SP> bytes]"},

		// Data connections.
		"PASV": {run: (*session).pasv, login: true, syntax: "PASV"},
		"EPSV": {run: (*session).epsv, argument: syntax.OptionalWords, login: true, syntax: "EPSV [<SP> 1 | 2 | ALL]"},
		"PORT": {run: (*session).port, argument: syntax.Words, login: true, syntax: "PORT <SP> h1,h2,h3,h4,p1,p2"},
		"EPRT": {run: (*session).eprt, argument: syntax.Words, login: true, syntax: "EPRT <SP> |1|address|port|"},

		// Transfers.
		"RETR": {run: (*session).retr, argument: syntax.Text, login: true, transfer: true,
			syntax: "RETR" + pathnameSyntax},
		"STOR": {run: (*session).stor, argument: syntax.Text, login: true, transfer: true,
			syntax: "STOR" + pathnameSyntax},
		"APPE": {run: (*session).stor, argument: syntax.Text, login: true, transfer: true,
			syntax: "APPE" + pathnameSyntax},
		"STOU": {run: (*session).stou, argument: syntax.OptionalText, login: true, transfer: true,
			syntax: "STOU" + listSyntax},
		"LIST": {run: (*session).list, argument: syntax.OptionalText, login: true, transfer: true,
			syntax: "LIST" + listSyntax},
		"NLST": {run: (*session).list, argument: syntax.OptionalText, login: true, transfer: true,
			syntax: "NLST" + listSyntax},
		"MLSD": {run: (*session).list, argument: syntax.OptionalText, login: true, transfer: true,
			syntax: "MLSD" + listSyntax},
		"ABOR": {run: (*session).abor, syntax: "ABOR"},

		// Files and directories.
		"CWD": {run: (*session).cwd, argument: syntax.OptionalText, login: true,
			syntax: "CWD" + pathnameSyntax},
		"CDUP": {run: (*session).cdup, login: true, syntax: "CDUP"},
		"PWD":  {run: (*session).pwd, login: true, syntax: "PWD"},
		"MKD":  {run: changing("MKD"), argument: syntax.Text, login: true, syntax: "MKD" + pathnameSyntax},
		"RMD":  {run: changing("RMD"), argument: syntax.Text, login: true, syntax: "RMD" + pathnameSyntax},
		"DELE": {run: changing("DELE"), argument: syntax.Text, login: true, syntax: "DELE" + pathnameSyntax},
		"RNFR": {run: (*session).rnfr, argument: syntax.Text, login: true, syntax: "RNFR" + pathnameSyntax},
		"RNTO": {run: (*session).rnto, argument: syntax.Text, login: true, syntax: "RNTO" + pathnameSyntax},
		"SIZE": {run: (*session).size, argument: syntax.Text, login: true, syntax: "SIZE" + pathnameSyntax},
		"MDTM": {run: onFile(filecmd.MDTM), argument: syntax.Text, login: true,
			syntax: "MDTM [<SP> YYYYMMDDhhmmss]" + pathnameSyntax},
		"MFMT": {run: onFile(filecmd.MFMT), argument: syntax.Text, login: true,
			syntax: "MFMT <SP> YYYYMMDDhhmmss" + pathnameSyntax},
		"MFF": {run: onFile(filecmd.MFF), argument: syntax.Text, login: true,
			syntax: "MFF <SP> Modify=YYYYMMDDhhmmss;" + pathnameSyntax},
		"AVBL": {run: onFile(filecmd.Available), argument: syntax.OptionalText, login: true,
			syntax: "AVBL" + listSyntax},
		"HASH": {run: (*session).hash, argument: syntax.Text, login: true, syntax: "HASH" + pathnameSyntax},
		"RANG": {run: (*session).rang, argument: syntax.Words, login: true, syntax: "RANG <SP> start <SP> end"},
		"MLST": {run: (*session).mlst, argument: syntax.OptionalText, login: true, syntax: "MLST" + listSyntax},
	}
	for _, verb := range syntax.HashVerbs() {
		usage := verb + pathnameSyntax + " [<SP> start [<SP> end]]"
		table[verb] = command{run: onFile(filecmd.XHash(verb)), argument: syntax.Text, login: true, syntax: usage}
	}
	for old, verb := range syntax.OldVerbs() {
		c := table[verb]
		c.syntax = old + strings.TrimPrefix(c.syntax, verb)
		table[old] = c
	}
	for _, verb := range syntax.UnimplementedVerbs() { // 502 rather than 500
		table[verb] = command{run: (*session).notImplemented, argument: syntax.OptionalText}
	}
	return table
}

// dispatch checks a command line against the table and runs it.
func (s *session) dispatch(line string) {
	verb, arg, hasArg := wire.ParseCommand(line)
	c, known := s.server.commands[verb]
	s.verb, s.argument = verb, arg
	if !known {
		s.verb = unknownVerb
	}
	text := sessionlog.Command{Verb: verb, Argument: arg, Known: known && (verb != "SITE" || isService(arg))}
	s.show(s.verb)
	s.op = s.newOperation(s.trace.Command(s.ctx, s.verb, text))
	s.op.renaming, s.renaming = s.renaming, "" // RNTO must follow RNFR at once (RFC 959 4.1.3)
	sessionlog.LogCommand(s.op.Context, s.log, text)
	defer s.endOperation()
	if !s.pace() {
		return
	}
	switch {
	case !known:
		s.cfg.Limits.Offended(s.conn.Remote())
		s.reply(500, i18n.UnknownCommand)
	case c.login && s.login == nil:
		s.reply(530, i18n.NotLoggedIn)
	default:
		if read, ok := c.argument.Read(arg, hasArg); ok {
			c.run(s, read)
		} else {
			s.syntaxError()
		}
	}
	if c.transfer {
		s.parameters = s.parameters.AfterTransfer()
	}
}

// syntaxError shows the syntax of the command that is being handled.
func (s *session) syntaxError() {
	s.reply(501, i18n.Syntax, s.server.commands[s.verb].syntax)
}
