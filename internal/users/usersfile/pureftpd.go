package usersfile

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// The fields of a line in pureftpd.passwd. The fields after the home directory may be missing.
const (
	pureName = iota
	pureHash
	_ // UID
	_ // GID
	pureComment
	pureHome
	pureUploadRate // bytes per second
	pureDownloadRate
	pureUploadRatio
	pureDownloadRatio
	pureSessions
	pureFiles
	pureQuota // bytes
	pureAllowLocal
	pureDenyLocal
	pureAllow
	pureDeny
	pureTimes
	pureFields
)

// PureFTPd imports a pureftpd.passwd, which pure-pw writes. The home directory without the prefix strip becomes the
// root of a user, and the part after "/./" becomes home. Errors contain the line number.
func PureFTPd(raw []byte, strip string) (*Users, error) {
	text, err := readText(raw, pureftpdPasswd)
	if err != nil {
		return nil, err
	}
	users := newUsers(strip)
	return users, lines(text, func(line string) error {
		fields := strings.Split(line, ":")
		if len(fields) <= pureHome || len(fields) > pureFields {
			return fmt.Errorf("has %d fields, want %d as in a pureftpd.passwd", len(fields), pureFields)
		}
		users.note(noOwners)
		users.addPure(append(fields, make([]string, pureFields-len(fields))...))
		return nil
	})
}

func (us *Users) addPure(fields []string) {
	root, home, chroot := strings.Cut(fields[pureHome], "/./")
	u := &user{name: fields[pureName], hash: fields[pureHash]}
	u.root = us.rootOf(u, root+"/")
	if root == "" && !chroot {
		u.root = ""
	}
	if home = path.Clean("/" + home); chroot && home != "/" {
		u.home = home
	}
	if comment := fields[pureComment]; comment != "" {
		u.note("the comment %q is not imported", comment)
	}
	number := func(field int, what string) int64 {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if (err != nil || n < 0) && fields[field] != "" {
			u.disable("%s %q is not a number", what, fields[field])
			return 0
		}
		return n
	}
	u.limits.UploadRate = size(number(pureUploadRate, "the upload bandwidth"))
	u.limits.DownloadRate = size(number(pureDownloadRate, "the download bandwidth"))
	u.limits.Sessions = int(number(pureSessions, "the number of connections"))
	u.quota = number(pureQuota, "the quota")
	if problem := u.limits.networks(list(fields[pureAllow]), list(fields[pureDeny])); problem != "" {
		u.disable("%s", problem)
	}
	for _, lost := range []struct {
		given bool
		what  string
	}{
		{number(pureUploadRatio, "the upload ratio")+number(pureDownloadRatio, "the download ratio") > 0,
			"ratios of uploads and downloads cannot be imported"},
		{number(pureFiles, "the maximum number of files") > 0,
			"the maximum number of files, " + fields[pureFiles] + ", cannot be imported: quota limits bytes, not files"},
		{fields[pureAllowLocal]+fields[pureDenyLocal] != "", "addresses of the server cannot be imported"},
		{fields[pureTimes] != "",
			"the times of day at which the user may log in, " + fields[pureTimes] + ", cannot be imported"},
	} {
		if lost.given {
			u.disable("%s", lost.what)
		}
	}
	us.add(u)
}

// list splits text at commas and spaces.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}
