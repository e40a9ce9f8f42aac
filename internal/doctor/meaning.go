package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/i18n"
)

// A template is a message with a placeholder.
type template struct {
	before, after string
	id            ID
}

// in reports whether the text of a reply contains the message.
func (t template) in(text string) bool {
	const enough = 8 // bytes that do not occur in other replies by chance
	_, rest, found := strings.Cut(text, t.before)
	return len(t.before)+len(t.after) >= enough && found && strings.Contains(rest, t.after)
}

// templates returns the messages of babelftp with a placeholder that identify a finding.
func templates() (all []template) {
	bundle, err := i18n.Load()
	if err != nil {
		return nil
	}
	for _, tag := range bundle.Tags() {
		const placeholder = "PLACEHOLDER"
		text := words(bundle.Localizer(tag).Text(i18n.FileSizeLimit, placeholder))
		if before, after, ok := strings.Cut(text, placeholder); ok {
			all = append(all, template{strings.Trim(before, "\u2068 "), strings.Trim(after, "\u2069 "), fileTooLarge})
		}
	}
	return all
}

// words normalizes white space, because some languages use other spaces before punctuation.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// texts maps messages of babelftp to the findings that they identify.
func texts() map[i18n.ID]ID {
	return map[i18n.ID]ID{
		i18n.TooManySessions:           limitReached,
		i18n.TooManySessionsAddress:    limitReached,
		i18n.TooManySessionsUser:       limitReached,
		i18n.TooManyOperations:         limitReached,
		i18n.TooManyCommands:           limitReached,
		i18n.AddressRefused:            addressRefused,
		i18n.LoginUnavailable:          unavailable,
		i18n.ShuttingDown:              shuttingDown,
		i18n.LoginFailed:               loginRefused,
		i18n.UserDisabled:              userDisabled,
		i18n.UserExpired:               userExpired,
		i18n.TLSRequired:               tlsRequired,
		i18n.TLSFailed:                 tlsFailed,
		i18n.ClientCertificateRequired: clientCertificate,
		i18n.ProtectionRequired:        protection,
		i18n.SessionReuseRequired:      tlsReuse,
		i18n.PassiveAddressUnknown:     addressUnknown,
		i18n.PassivePortUnavailable:    portsUsed,
		i18n.StorageMissing:            storageRefuses,
		i18n.StorageDenied:             storageRefuses,
		i18n.StorageError:              storageRefuses,
		i18n.StorageUnavailable:        storageRefuses,
		i18n.StorageFull:               storageFull,
		i18n.FileTooLarge:              fileTooLarge,
		i18n.FileNameDenied:            fileDenied,
		i18n.FileRefused:               contentRefused,
		i18n.FileNotChecked:            notJudged,
		i18n.AuditUnavailable:          auditUnavailable,
	}
}

// meanings maps the texts of these messages in all languages to findings. The texts distinguish causes with the
// same reply code, such as a ban and a limit. Replies of other servers are only judged by their codes.
func meanings() map[string]ID {
	found := map[string]ID{}
	bundle, err := i18n.Load()
	if err != nil {
		return found // fall back to codes
	}
	for _, tag := range bundle.Tags() {
		localizer := bundle.Localizer(tag)
		for text, id := range texts() {
			found[words(localizer.Text(text))] = id
		}
	}
	return found
}

// meaning returns the finding that a reply identifies by its text, or an empty ID if it is not a text of babelftp.
// Another sentence and the name of a file may follow the text.
func (x *examination) meaning(r reply) ID {
	if x.meanings == nil {
		x.meanings, x.templates = meanings(), templates()
	}
	split := strings.Fields(r.text)
	for begin := range split {
		for end := len(split); end > begin; end-- {
			if id := x.meanings[strings.Join(split[begin:end], " ")]; id != "" {
				return id
			}
		}
	}
	for _, t := range x.templates {
		if t.in(words(r.text)) {
			return t.id
		}
	}
	return ""
}

// loginFailed returns the reason why a server refuses a session or a login.
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

// classifyReply returns the finding for the reply to a command, or nil if the command succeeded. Servers other than
// babelftp are judged by the reply codes of RFC 959, 4.2 and RFC 4217, which do not depend on a language.
func (x *examination) classifyReply(command string, r reply) *Finding {
	command = cmp.Or(r.command, command)
	verb, _, _ := strings.Cut(command, " ")
	switch {
	case r.ok():
		return nil
	case r.missed:
		return &Finding{ID: alreadyNoted}
	}
	if id := x.meaning(r); id != "" {
		return newFinding(id, nil, command, r.String())
	}
	switch {
	case r.code == 452 || r.code == 552 || full.MatchString(r.text):
		return newFinding(storageFull, nil, command, r.String())
	case r.command != "" && r.code != 0 && r.code != 421:
		return newFinding(commandBroken, []string{verb}, command, r.String())
	case r.code == 425: // the server waits for a connection that went elsewhere
		return newFinding(dataElsewhere, nil, command, r.String())
	case r.code == 0, r.code == 426:
		return newFinding(transferCut, nil, command, r.String())
	case r.code == 421:
		return newFinding(unavailable, nil, command, r.String())
	case r.code == 451: // a local error; see the log of the server
		return newFinding(commandFailed, []string{verb}, command, r.String())
	case slices.Contains([]int{521, 522, 534, 536}, r.code):
		return newFinding(protection, nil, command, r.String())
	}
	return newFinding(commandRefused, []string{verb}, command, r.String())
}
