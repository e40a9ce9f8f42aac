package control

import (
	"io/fs"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/internal/vfs"
)

// A globbing is what LIST, NLST and STAT do with a pathname that names nothing
// and whose last segment is a pattern, because old devices ask for "*.csv" (RFC
// 959 leaves pathnames to the server). A name that is there always goes before
// the pattern that it looks like. MLSD, MLST and whatever else RFC 3659 defines
// take every pathname literally (RFC 3659 2.2.2), and so do transfers.
type globbing struct {
	pattern string // as path.Match takes it, empty where there is none
	asked   string // the pathname of the pattern's directory as the client gave it, empty or ending with "/"
}

// globbingOf looks for a pattern in an argument and the pathname it was resolved
// to. Directories of the pathname are no patterns, and neither is a malformed one.
func globbingOf(arg, name string) globbing {
	pattern := path.Base(name)
	if strings.HasSuffix(arg, "/") || !strings.ContainsAny(pattern, "*?[") {
		return globbing{}
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return globbing{}
	}
	return globbing{norm.NFC.String(pattern), arg[:strings.LastIndexByte(arg, '/')+1]}
}

// openPattern lists the names in a directory that match the pattern, files and
// directories alike, as ls -d does.
//
// Where the directory is there and nothing matches, the list is empty and the
// reply 226, as vsftpd's is: the directory is read while the list is
// sent, and a program that asks every minute whether there is a *.csv takes 550
// for a failure. A directory that is not there gives 550.
func (l *listing) openPattern(storage vfs.Storage, dir string) error {
	if err := l.openDirectory(storage, dir); err != nil {
		return err
	}
	l.asked = l.glob.asked
	all := l.entries
	l.entries = func(yield func(fs.FileInfo, error) bool) {
		for info, err := range all {
			if err == nil && !l.glob.matches(info.Name()) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
	return nil
}

func (g globbing) matches(name string) bool {
	matched, _ := path.Match(g.pattern, norm.NFC.String(name)) // never malformed
	return matched
}
