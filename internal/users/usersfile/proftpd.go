package usersfile

import (
	"fmt"
	"strings"
)

// passwdFields is how many fields a line of passwd(5) has: name, password, UID, GID, comment, home directory and shell.
const passwdFields = 7

// ProFTPD reads an AuthUserFile. The home directory of a user, without strip at its beginning, becomes the root. The
// error names the line that is broken.
func ProFTPD(text []byte, strip string) (*Users, error) {
	users := newUsers(strip)
	return users, lines(text, func(line string) error {
		fields := strings.Split(line, ":")
		if len(fields) != passwdFields {
			return fmt.Errorf("has %d fields, not the %d of an AuthUserFile (name:hash:uid:gid:comment:home:shell)",
				len(fields), passwdFields)
		}
		name := fields[0]
		users.add(name, &user{hash: fields[1], root: users.rootOf(name, fields[5])})
		return nil
	})
}
