package ftptest

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/locales"
)

// read collects the reply lines that the tests of this process have read.
//
//nolint:gochecknoglobals // it outlives every test
var read = struct {
	sync.Mutex
	lines map[string]struct{}
}{lines: map[string]struct{}{}}

// A recordingReader is a reader that records the lines it reads.
type recordingReader struct {
	io.Reader
	begun string // beginning of an incomplete line
}

func (r *recordingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	lines := strings.Split(r.begun+string(p[:n]), "\r\n")
	r.begun = lines[len(lines)-1]
	read.Lock()
	defer read.Unlock()
	for _, line := range lines[:len(lines)-1] {
		read.lines[line] = struct{}{}
	}
	return n, err
}

// Packages whose tests must read the messages of replies.
const (
	Control     = "control"     // Replies that need nothing but a session.
	Conformance = "conformance" // Replies that only tests of RFCs provoke.
	// Replies that need a configuration, a limit, an administrator or a certain S3 response.
	Server = "server"
)

// readers returns the messages that are not read by Control, by package. Messages under "" need no reader.
func readers() map[string][]i18n.ID {
	return map[string][]i18n.ID{
		Conformance: {
			i18n.EncryptionStays, i18n.HostMismatch, i18n.LanguageSetNearest, i18n.ProtectionUnsupported,
		},
		Server: {
			i18n.AddressRefused, i18n.AuditUnavailable, i18n.ClientCertificateRequired,
			i18n.FileArchived, i18n.FileNameDenied, i18n.FileNotChecked, i18n.FileRefused, i18n.FileRestoring,
			i18n.FileSizeLimit, i18n.FileTooLarge, i18n.MoveBetweenAccounts, i18n.NameNotStorable,
			i18n.OverwriteDenied, i18n.ParentIsFile,
			i18n.PassivePortUnavailable, i18n.QuotaExceeded, i18n.ResumeChanged, i18n.ResumeElsewhere,
			i18n.StorageDenied, i18n.StorageError, i18n.StorageFull, i18n.StorageMissing, i18n.StorageUnavailable,
			i18n.TooManyCommands, i18n.TooManyOperations, i18n.TooManySessions, i18n.TooManySessionsAddress,
			i18n.TooManySessionsUser, i18n.UploadKept, i18n.UserDisabled, i18n.UserExpired, i18n.VersionsReadOnly,
		},
		"": {i18n.CommandFailed, i18n.SizeUnits}, // only after a bug; a list of separate words
	}
}

// A Texts runs the tests of a package and then checks that they have read each of the package's messages in any
// language. It skips the check if only some tests of the package run.
type Texts struct {
	M      *testing.M
	Reader string // package that must read the messages
}

// wants reports whether the package must read a message.
func (x Texts) wants(id i18n.ID) bool {
	for reader, ids := range readers() {
		if slices.Contains(ids, id) {
			return reader == x.Reader
		}
	}
	return x.Reader == Control
}

// Run runs the tests and returns the exit code.
func (x Texts) Run() int {
	code := x.M.Run()
	if code != 0 || testing.Short() || narrowed() {
		return code
	}
	unread, err := x.unread()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if len(unread) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "FAIL: no test of the package reads these messages in a reply; write one that makes the "+
		"server send them: %q\n", unread)
	return 1
}

// narrowed reports whether command-line flags select only some tests.
func narrowed() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz", "test.bench"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return false
}

// unread returns the messages that no test has read.
func (x Texts) unread() (ids []i18n.ID, err error) {
	for _, tag := range locales.Tags() {
		texts, err := textsOf(tag)
		if err != nil {
			return nil, err
		}
		if tag == "en" {
			for id := range texts {
				if x.wants(id) {
					ids = append(ids, id)
				}
			}
			slices.Sort(ids)
		}
		ids = slices.DeleteFunc(ids, func(id i18n.ID) bool { return slices.ContainsFunc(texts[id], wasRead) })
	}
	return ids, nil
}

// textsOf returns the texts of the replies in a language, each with its plural forms.
func textsOf(tag string) (map[i18n.ID][]string, error) {
	data, err := fs.ReadFile(locales.FS(), tag+"/messages.gotext.json")
	if err != nil {
		return nil, err
	}
	var catalog struct {
		Messages []struct {
			ID          i18n.ID
			Translation json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &catalog); err != nil {
		return nil, err
	}
	texts := map[i18n.ID][]string{}
	for _, m := range catalog.Messages {
		if m.ID.OnPage() || strings.HasPrefix(string(m.ID), "syntax-") || strings.HasPrefix(string(m.ID), "doctor-") {
			continue
		}
		var text string
		var plural struct {
			Select struct {
				Cases map[string]struct{ Msg string }
			}
		}
		if json.Unmarshal(m.Translation, &text) == nil {
			texts[m.ID] = []string{text}
			continue
		}
		if err := json.Unmarshal(m.Translation, &plural); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", tag, m.ID, err)
		}
		for _, c := range plural.Select.Cases {
			texts[m.ID] = append(texts[m.ID], c.Msg)
		}
	}
	return texts, nil
}

// wasRead reports whether a line with this text was read. Placeholders match anything.
func wasRead(text string) bool {
	var parts []string
	for i, piece := range strings.FieldsFunc(text, func(r rune) bool { return r == '{' || r == '}' }) {
		if placeholder := i%2 == 1 != strings.HasPrefix(text, "{"); !placeholder {
			parts = append(parts, piece)
		}
	}
	read.Lock()
	defer read.Unlock()
	for line := range read.lines {
		rest, found := line, true
		for _, part := range parts {
			if _, rest, found = strings.Cut(rest, part); !found {
				break
			}
		}
		if found {
			return true
		}
	}
	return false
}
