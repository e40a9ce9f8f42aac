package usersfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// A format is the format of a file that an import is given.
type format int

// An import also accepts files of unknown format.
const (
	unknownFormat format = iota
	sftpgoFormat
	passwdFile // passwd(5), which is also the format of an AuthUserFile of ProFTPD
	pureftpdPasswd
	htpasswdFile
	shadowFile
	transferList
	otherJSON
	fileZillaXML
	otherXML
	berkeleyDB
	dumpedDB
	sqliteDB
	compressed
	otherBinary
	vsftpdSettings
	babelftpUsers
)

// An otherFormatError reports a file that this import cannot read. Another import may be able to.
type otherFormatError struct{ found format }

// Error names the format of the file and what to do with it.
func (e *otherFormatError) Error() string {
	const byHand = "no import exists for this format: write the users by hand, or migrate them with auth.ftp"
	what, advice := "", ""
	switch e.found {
	case sftpgoFormat:
		what, advice = "a dump of SFTPGo", "import it with `babelftp users import sftpgo`"
	case passwdFile:
		what, advice = "a file like passwd", "import it with `babelftp users import proftpd`"
	case pureftpdPasswd:
		what, advice = "a pureftpd.passwd", "import it with `babelftp users import pureftpd`"
	case htpasswdFile:
		what = "a list of NAME:HASH like htpasswd"
		advice = "import it with `babelftp users import vsftpd`; --vsftpd-conf adds the home directories"
	case shadowFile:
		what = "a file like shadow"
		advice = "write its hashes into a copy of passwd, and import the copy with `babelftp users import proftpd`"
	case transferList:
		what = "the output of `aws transfer`"
		advice = "it has no passwords: name its identity provider in auth, or write the users by hand"
	case otherJSON:
		what, advice = "JSON of another program", byHand
	case fileZillaXML:
		what, advice = "XML of FileZilla Server", byHand
	case otherXML:
		what, advice = "XML", byHand
	case berkeleyDB:
		what = "a Berkeley DB, which PAM's userdb reads"
		advice = "import the text file that db_load was given with `babelftp users import vsftpd`, or the names and " +
			"passwords in the output of `db_dump -p` on alternate lines"
	case dumpedDB:
		what = "the whole output of db_dump"
		advice = "use only the names and passwords: db_dump -p FILE | sed -n 's/^ //p'"
	case sqliteDB:
		what, advice = "an SQLite database", "export the users from its server: SFTPGo has the API /api/v2/dumpdata"
	case compressed:
		what, advice = "a compressed file", "unpack it first"
	case otherBinary:
		what, advice = "a binary file", "use text in UTF-8, or in UTF-16 with a byte order mark"
	case vsftpdSettings:
		what = "a vsftpd.conf"
		advice = "pass it to `babelftp users import vsftpd` with --vsftpd-conf, and the list of users as FILE"
	case babelftpUsers:
		what, advice = "YAML of babelftp", "name it in users_file of the tenant"
	case unknownFormat:
		what, advice = "a file in an unknown format", byHand
	}
	return fmt.Sprintf("this is %s: %s", what, advice)
}

// readText converts a file to UTF-8 without a byte order mark. It returns an [otherFormatError] if the file has a
// known format that is not in accepted.
func readText(raw []byte, accepted ...format) ([]byte, error) {
	text := raw
	if bytes.HasPrefix(raw, []byte("\xff\xfe")) || bytes.HasPrefix(raw, []byte("\xfe\xff")) {
		var err error
		if text, err = unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(raw); err != nil {
			return nil, fmt.Errorf("the byte order mark indicates UTF-16, but the file is not valid UTF-16: %w", err)
		}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if found := formatOf(text); found != unknownFormat && !slices.Contains(accepted, found) {
		return nil, &otherFormatError{found}
	}
	return text, nil
}

// formatOf guesses the format of a file from its first bytes or lines.
func formatOf(text []byte) format {
	if found := binaryFormat(text); found != unknownFormat {
		return found
	}
	trimmed := bytes.TrimSpace(text)
	switch {
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("[")) && json.Valid(trimmed):
		return jsonFormat(trimmed)
	case bytes.HasPrefix(trimmed, []byte("<")) && bytes.Contains(bytes.ToLower(trimmed), []byte("filezilla")):
		return fileZillaXML
	case bytes.HasPrefix(trimmed, []byte("<")):
		return otherXML
	case bytes.HasPrefix(trimmed, []byte("VERSION=")) && bytes.Contains(trimmed, []byte("HEADER=END")):
		return dumpedDB
	}
	found := unknownFormat
	_ = lines(text, func(line string) error {
		found = formatOfLine(line)
		return errors.New("the first line is enough")
	})
	return found
}

// binaryFormat returns the format of a file that is not text.
func binaryFormat(text []byte) format {
	const magicAt = 12 // offset of the magic number, which is in host byte order and differs for hashes and trees
	switch {
	case bytes.HasPrefix(text, []byte("\x1f\x8b")), bytes.HasPrefix(text, []byte("PK\x03\x04")):
		return compressed
	case bytes.IndexByte(text, 0) < 0:
		return unknownFormat
	case bytes.HasPrefix(text, []byte("SQLite format 3\x00")):
		return sqliteDB
	}
	for _, magic := range []string{"\x00\x05\x31\x62", "\x62\x31\x05\x00", "\x61\x15\x06\x00", "\x00\x06\x15\x61"} {
		if len(text) > magicAt && bytes.HasPrefix(text[magicAt:], []byte(magic)) {
			return berkeleyDB
		}
	}
	return otherBinary
}

// jsonFormat returns the format of a JSON file. Keys are case-sensitive: AWS writes "Users", SFTPGo "users".
func jsonFormat(text []byte) format {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return otherJSON
	}
	switch {
	case keys["users"] != nil:
		return sftpgoFormat
	case keys["Users"] != nil, keys["User"] != nil, keys["ServerId"] != nil:
		return transferList
	}
	return otherJSON
}

// The number of fields in the lines of colon-separated formats.
const (
	htpasswdFields = 2
	passwdFields   = 7 // name, password, UID, GID, comment, home directory and shell
	shadowFields   = 9
)

// formatOfLine guesses the format of a file from its first line.
func formatOfLine(line string) format {
	fields := strings.Split(line, ":")
	numbers := func(from, to int) bool {
		return !slices.ContainsFunc(fields[from:to], func(field string) bool {
			return strings.Trim(field, "0123456789") != ""
		})
	}
	isPath := func(field string) bool { return strings.HasPrefix(field, "/") }
	key, _, assigns := strings.Cut(line, "=")
	switch n := len(fields); {
	case n == passwdFields && numbers(2, 4) && isPath(fields[5]) && isPath(fields[6]):
		return passwdFile
	case n == shadowFields && numbers(2, n):
		return shadowFile
	case n > shadowFields && n <= pureFields && numbers(2, 4) && isPath(fields[pureHome]):
		return pureftpdPasswd
	case n == htpasswdFields && fields[0] != "" && looksHashed(fields[1]):
		return htpasswdFile
	case strings.TrimSpace(line) == usersKey+":":
		return babelftpUsers
	case assigns && strings.Contains(key, "_") && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789_") == "",
		key == "listen":
		return vsftpdSettings
	}
	return unknownFormat
}

// looksHashed reports whether text looks like a password hash: crypt(3), or {SCHEME} as in LDAP.
func looksHashed(text string) bool {
	const desLength = 13
	kind, rest, closed := strings.Cut(strings.TrimPrefix(text, "{"), "}")
	switch {
	case strings.HasPrefix(text, "$"):
		return strings.Count(text, "$") > 1
	case strings.HasPrefix(text, "{"):
		return closed && kind != "" && rest != ""
	}
	return len(text) == desLength && strings.Trim(text, "./0123456789"+
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}
