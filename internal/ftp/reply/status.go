package reply

import (
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Status holds what STAT without an argument shows about a session (RFC 959, 4.1.3).
type Status struct {
	Client      string         // IP address
	Login       *account.Login // nil before login
	Encrypted   bool
	Parameters  string // the transfer parameters as commands, such as "TYPE I; STRU F; MODE S"
	Transfers   bool   // a transfer is running
	Transferred int64
}

// Lines returns the lines of the reply.
func (st Status) Lines(l *Locale) []string {
	user, encryption, transfer := l.Text(i18n.StatusNoUser), l.Text(i18n.StatusUnencrypted),
		l.Text(i18n.StatusNoTransfer)
	if st.Login != nil {
		user = l.Text(i18n.StatusUser, st.Login.Name)
	}
	if st.Encrypted {
		encryption = l.Text(i18n.StatusEncrypted)
	}
	if st.Transfers {
		transfer = l.Text(i18n.StatusTransfer, l.Size(st.Transferred))
	}
	lines := []string{
		l.Text(i18n.StatusIntro),
		" " + l.Text(i18n.StatusAddress, st.Client),
		" " + user,
		" " + l.Text(i18n.StatusLanguage, l.Name(i18n.Match{Tag: l.Tag()})),
		" " + l.Text(i18n.StatusCharset, l.Charset().DisplayName()),
		" " + st.Parameters,
		" " + encryption,
		" " + transfer,
	}
	if usage, known := l.UsageOf(st.Login); known {
		lines = append(lines, " "+l.Text(i18n.QuotaState, usage.Used, usage.Limit))
	}
	return append(lines, l.Text(i18n.StatusEnd))
}
