package usersfile

import (
	"errors"
	"fmt"
	"strings"
)

// shadowed is the password in passwd(5) if the hash is in shadow(5).
const shadowed = "x"

var errShadowed = errors.New("all hashes are in /etc/shadow: put them into a copy of this file instead of x")

// noOwners is the comment about the fields of passwd(5) that are not imported.
const noOwners = "UID, GID and shell of the users are not imported: files in S3 have no owner"

// ProFTPD imports an AuthUserFile of ProFTPD, which has the format of passwd(5). The home directory without the
// prefix strip becomes the root of a user. Errors contain the line number.
func ProFTPD(raw []byte, strip string) (*Users, error) {
	text, err := readText(raw, passwdFile)
	if err != nil {
		return nil, err
	}
	users, found, hidden := newUsers(strip), 0, 0
	err = lines(text, func(line string) error {
		fields := strings.Split(line, ":")
		if len(fields) != passwdFields {
			return fmt.Errorf("has %d fields, want %d as in an AuthUserFile (name:hash:uid:gid:comment:home:shell)",
				len(fields), passwdFields)
		}
		users.note(noOwners)
		found++
		if fields[1] == shadowed {
			hidden++
		}
		u := &user{name: fields[0], hash: fields[1]}
		u.root = users.rootOf(u, fields[5])
		if comment := fields[4]; comment != "" {
			u.note("the comment %q is not imported", comment)
		}
		users.add(u)
		return nil
	})
	if err == nil && found > 0 && found == hidden {
		err = errShadowed
	}
	return users, err
}
