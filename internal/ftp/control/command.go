package control

import (
	"maps"
	"strings"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
)

const (
	pathnameSyntax = " <SP> pathname"
	listSyntax     = " [<SP> pathname]"
)

// commandTable returns the command table. It has a row for every verb that the server knows, and one for each SITE
// command (RFC 959, 4.1.3).
func commandTable() map[string]command {
	table := map[string]command{}
	for service, c := range map[string]command{
		chmod: {run: fixedReply(200, i18n.PermissionsNotKept), argument: wire.Text,
			syntax: " <SP> mode" + pathnameSyntax},
		"COPY": {run: onFile(siteCopy), argument: wire.Text, kind: report.Copy,
			syntax: pathnameSyntax + pathnameSyntax},
		"CPFR": {run: onFile(cpfr), argument: wire.Text, kind: report.Copy, syntax: pathnameSyntax},
		"CPTO": {run: onFile(cpto), argument: wire.Text, kind: report.Copy, syntax: pathnameSyntax},
		"HASH": {run: onState(siteHash), argument: wire.OptionalWords, syntax: siteHashSyntax},
		"HELP": {run: onState(siteHelp(table)), argument: wire.OptionalWords, beforeChange: true},
		"MKDIR": {run: byLibrary("SITE MKDIR", confirms(i18n.DirectoryCreated)), argument: wire.Text, kind: report.MakeDir,
			syntax: pathnameSyntax},
		"PRESIGN": {run: onFile(sitePresign("SITE PRESIGN" + pathnameSyntax)), argument: wire.Text,
			kind: report.Presign, syntax: pathnameSyntax + " [<SP> duration]"},
		"PSWD": {run: (*session).sitePswd, argument: wire.Text, kind: report.SetPassword, beforeChange: true,
			syntax: " <SP> password <SP> new-password"},
		"QUOTA": {run: onFile(siteQuota), argument: wire.OptionalText},
		"RMDIR": {run: byLibrary("SITE RMDIR", confirms(i18n.DirectoryRemoved)), argument: wire.Text,
			kind: report.RemoveDir, syntax: pathnameSyntax},
		"URL": {run: (*session).siteURL, argument: wire.Text, syntax: " [<SP> --8bit]" + pathnameSyntax},
		"UTIME": {run: onFile(setTime(wire.ParseUTIME)), argument: wire.Text, kind: report.SetTime,
			syntax: " <SP> YYYYMMDDhhmmss" + pathnameSyntax},
	} {
		c.needsLogin, c.syntax = true, siteName(service)+c.syntax
		table[siteName(service)] = c
	}
	maps.Copy(table, map[string]command{
		// Login.
		"USER": {run: (*session).user, argument: wire.Text, starts: true, syntax: "USER <SP> name"},
		"PASS": {run: (*session).pass, argument: wire.OptionalText, starts: true, syntax: "PASS <SP> password"},
		"ACCT": {run: fixedReply(202, i18n.AccountNotNeeded), argument: wire.Text, syntax: "ACCT <SP> account"},
		"REIN": {run: (*session).rein, after: (*session).endTLS, syntax: "REIN"},
		"QUIT": {run: (*session).quit, syntax: "QUIT"},
		"HOST": {run: (*session).host, argument: wire.Text, syntax: "HOST <SP> hostname"},
		"LANG": {run: onState(lang), argument: wire.OptionalTag, syntax: "LANG [<SP> language-tag]"},
		"CLNT": {run: onState(clnt), argument: wire.Text, syntax: "CLNT <SP> name"},

		// Encryption.
		"AUTH": {run: (*session).auth, argument: wire.Words, after: (*session).beginTLS, syntax: "AUTH <SP> TLS"},
		"PBSZ": {run: (*session).pbsz, argument: wire.Words, syntax: "PBSZ <SP> 0"},
		"PROT": {run: (*session).prot, argument: wire.Words, syntax: "PROT <SP> P | C"},
		"CCC":  {run: (*session).ccc, syntax: "CCC"},

		// Information.
		"FEAT": {run: onState(feat), syntax: "FEAT"},
		"OPTS": {run: onState(opts), argument: wire.Text, syntax: "OPTS <SP> command [<SP> options]"},
		"HELP": {run: onState(help(table)), argument: wire.OptionalWords, syntax: "HELP [<SP> command]"},
		"STAT": {run: (*session).stat, argument: wire.OptionalText, syntax: "STAT" + listSyntax},
		"SYST": {run: onState(syst), syntax: "SYST"},
		"NOOP": {run: fixedReply(200, i18n.OK), syntax: "NOOP"},
		"SITE": {run: onState(site), argument: wire.Text, needsLogin: true,
			syntax: "SITE <SP> " + strings.Join(siteNames(table), " | ")},

		// Transfer parameters.
		"TYPE": {run: onState(representation), argument: wire.Words, needsLogin: true, beforeChange: true,
			syntax: "TYPE <SP> A | I | L <SP> 8"},
		"MODE": {run: onState(only("MODE", "S", i18n.ModeStream)), argument: wire.Words, needsLogin: true,
			beforeChange: true, syntax: "MODE <SP> S"},
		"STRU": {run: onState(only("STRU", "F", i18n.StructureFile)), argument: wire.Words, needsLogin: true,
			beforeChange: true, syntax: "STRU <SP> F"},
		"REST": {run: onState(rest), argument: wire.Text, needsLogin: true, syntax: "REST <SP> offset"},
		"ALLO": {run: onState(allo), argument: wire.Words, needsLogin: true,
			syntax: "ALLO <SP> bytes [<SP> R <SP> bytes]"},

		// Data connections.
		"PASV": {run: (*session).pasv, needsLogin: true, syntax: "PASV"},
		"EPSV": {run: (*session).epsv, argument: wire.OptionalWords, needsLogin: true, syntax: "EPSV [<SP> 1 | 2 | ALL]"},
		"PORT": {run: (*session).port, argument: wire.Words, needsLogin: true, syntax: "PORT <SP> h1,h2,h3,h4,p1,p2"},
		"EPRT": {run: (*session).eprt, argument: wire.Words, needsLogin: true, syntax: "EPRT <SP> |1|address|port|"},

		// Transfers.
		"RETR": {run: (*session).retr, argument: wire.Text, needsLogin: true, takesParameters: true, kind: report.Download,
			syntax: "RETR" + pathnameSyntax},
		"STOR": {run: (*session).stor, argument: wire.Text, needsLogin: true, takesParameters: true, kind: report.Upload,
			syntax: "STOR" + pathnameSyntax},
		"APPE": {run: (*session).stor, argument: wire.Text, needsLogin: true, takesParameters: true, kind: report.Upload,
			syntax: "APPE" + pathnameSyntax},
		"STOU": {run: (*session).stou, argument: wire.OptionalText, needsLogin: true, takesParameters: true, kind: report.Upload,
			syntax: "STOU" + listSyntax},
		"LIST": {run: (*session).list, argument: wire.OptionalText, needsLogin: true, takesParameters: true,
			syntax: "LIST" + listSyntax},
		"NLST": {run: (*session).list, argument: wire.OptionalText, needsLogin: true, takesParameters: true,
			syntax: "NLST" + listSyntax},
		"MLSD": {run: (*session).list, argument: wire.OptionalText, needsLogin: true, takesParameters: true,
			syntax: "MLSD" + listSyntax},
		"ABOR": {run: (*session).abor, syntax: "ABOR"},

		// Files and directories.
		"CWD": {run: byLibrary("CWD", directoryChanged), argument: wire.TextAfterSP, needsLogin: true,
			syntax: "CWD" + pathnameSyntax},
		"CDUP": {run: (*session).cdup, needsLogin: true, syntax: "CDUP"},
		"PWD":  {run: (*session).pwd, needsLogin: true, beforeChange: true, syntax: "PWD"},
		"MKD": {run: byLibrary("MKD", directoryCreated), argument: wire.Text, needsLogin: true, kind: report.MakeDir,
			syntax: "MKD" + pathnameSyntax},
		"RMD": {run: byLibrary("RMD", confirms(i18n.DirectoryRemoved)), argument: wire.Text, needsLogin: true,
			kind: report.RemoveDir, syntax: "RMD" + pathnameSyntax},
		"DELE": {run: byLibrary("DELE", confirms(i18n.FileDeleted)), argument: wire.Text, needsLogin: true, kind: report.Delete,
			syntax: "DELE" + pathnameSyntax},
		"RNFR": {run: byLibrary("RNFR", renameReady), argument: wire.Text, needsLogin: true, kind: report.Rename,
			syntax: "RNFR" + pathnameSyntax},
		"RNTO": {run: (*session).rnto, argument: wire.Text, needsLogin: true, kind: report.Rename,
			syntax: "RNTO" + pathnameSyntax},
		"SIZE": {run: (*session).size, argument: wire.Text, needsLogin: true, syntax: "SIZE" + pathnameSyntax},
		"MDTM": {run: onFile(mdtm), argument: wire.Text, needsLogin: true, kind: report.SetTime, reads: true,
			syntax: "MDTM [<SP> YYYYMMDDhhmmss]" + pathnameSyntax},
		"MFMT": {run: onFile(setTime(wire.ParseMFMT)), argument: wire.Text, needsLogin: true, kind: report.SetTime,
			syntax: "MFMT <SP> YYYYMMDDhhmmss" + pathnameSyntax},
		"MFF": {run: onFile(mff), argument: wire.Text, needsLogin: true, kind: report.SetTime,
			syntax: "MFF <SP> Modify=YYYYMMDDhhmmss;" + pathnameSyntax},
		"AVBL": {run: onFile(avbl), argument: wire.OptionalText, needsLogin: true,
			syntax: "AVBL" + listSyntax},
		"HASH": {run: onFile(hash), argument: wire.Text, needsLogin: true, syntax: "HASH" + pathnameSyntax},
		"RANG": {run: onState(rang), argument: wire.Words, needsLogin: true, syntax: "RANG <SP> start <SP> end"},
		"MLST": {run: onFile(mlst), argument: wire.OptionalText, needsLogin: true, syntax: "MLST" + listSyntax},
	})
	for _, verb := range wire.HashVerbs() {
		usage := verb + pathnameSyntax + " [<SP> start [<SP> end]]"
		table[verb] = command{run: onFile(xhash(verb)), argument: wire.Text, needsLogin: true, syntax: usage}
	}
	for old, verb := range wire.OldVerbs() {
		c := table[verb]
		c.syntax = old + strings.TrimPrefix(c.syntax, verb)
		table[old] = c
	}
	for _, verb := range wire.UnimplementedVerbs() { // 502 rather than 500
		table[verb] = command{run: fixedReply(502, i18n.NotImplemented, verb), argument: wire.OptionalText}
	}
	return table
}
