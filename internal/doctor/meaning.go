package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// meanings returns the findings that texts of babelftp show, in all languages of the catalogs. They tell apart what has
// one reply code, such as a ban and a limit. The replies of other servers are judged by their codes only.
func meanings() map[string]ID {
	found := map[string]ID{}
	bundle, err := i18n.Load()
	if err != nil {
		return found // codes count
	}
	for _, tag := range bundle.Tags() {
		texts := bundle.Localizer(tag)
		for text, id := range map[i18n.ID]ID{
			i18n.TooManySessions: limitReached, i18n.TooManySessionsAddress: limitReached,
			i18n.TooManySessionsUser: limitReached, i18n.TooManyOperations: limitReached,
			i18n.TooManyCommands: limitReached,
			i18n.AddressRefused:  addressRefused, i18n.LoginUnavailable: unavailable, i18n.ShuttingDown: shuttingDown,
			i18n.LoginFailed: loginRefused, i18n.UserDisabled: userDisabled, i18n.UserExpired: userExpired,
			i18n.PassiveAddressUnknown: addressUnknown, i18n.PassivePortUnavailable: portsUsed,
			i18n.TLSRequired: tlsRequired, i18n.TLSFailed: tlsFailed, i18n.ProtectionRequired: protection,
			i18n.SessionReuseRequired: tlsReuse, i18n.ClientCertificateRequired: clientCertificate,
			i18n.StorageMissing: storageRefuses, i18n.StorageDenied: storageRefuses, i18n.StorageError: storageRefuses,
			i18n.StorageUnavailable: storageRefuses, i18n.StorageFull: storageFull,
		} {
			found[strings.Join(strings.Fields(texts.Text(text)), " ")] = id // French has other spaces
		}
	}
	return found
}

// meaning returns the finding that the text of a reply shows, and an empty one if it is not a text of babelftp. A text
// may follow the name of a file.
func (x *examination) meaning(r reply) ID {
	if x.meanings == nil {
		x.meanings = meanings()
	}
	words := strings.Fields(r.text)
	for at := range words {
		if id := x.meanings[strings.Join(words[at:], " ")]; id != "" {
			return id
		}
	}
	return ""
}

// loginFailed returns why a server refuses a session or a login.
func (x *examination) loginFailed(command string, r reply) *Finding {
	evidence := []string{r.String()}
	if command != "" {
		evidence = []string{command, r.String()}
	}
	switch id := x.meaning(r); {
	case id != "":
		return newFinding(id, nil, evidence...)
	case r.code == 530, r.code == 331, r.code == 332:
		return newFinding(loginRefused, nil, evidence...)
	case r.code/100 == 4:
		return newFinding(unavailable, nil, evidence...)
	}
	return newFinding(commandRefused, []string{command}, evidence...)
}

// refused returns what is wrong with the reply to a command, and nil if nothing is. Of other servers than babelftp the
// reply codes of RFC 959 section 4.2 and RFC 4217 count, which have no language.
func (x *examination) refused(command string, r reply) *Finding {
	command = cmp.Or(r.command, command)
	verb, _, _ := strings.Cut(command, " ")
	switch {
	case r.ok():
		return nil
	case r.missed:
		return &Finding{ID: known}
	}
	if id := x.meaning(r); id != "" {
		return newFinding(id, nil, command, r.String())
	}
	switch {
	case r.code == 452 || r.code == 552 || full.MatchString(r.text):
		return newFinding(storageFull, nil, command, r.String())
	case r.command != "" && r.code != 0 && r.code != 421:
		return newFinding(commandBroken, []string{verb}, command, r.String())
	case r.code == 425: // the server waits for a connection that has gone elsewhere
		return newFinding(dataElsewhere, nil, command, r.String())
	case r.code == 0, r.code == 426:
		return newFinding(transferCut, nil, command, r.String())
	case r.code == 421:
		return newFinding(unavailable, nil, command, r.String())
	case r.code == 451: // a local error, which the log of the server explains
		return newFinding(commandFailed, []string{verb}, command, r.String())
	case slices.Contains([]int{521, 522, 534, 536}, r.code):
		return newFinding(protection, nil, command, r.String())
	}
	return newFinding(commandRefused, []string{verb}, command, r.String())
}
