package ftplist

import (
	"fmt"
	"io/fs"
	"time"
)

// The columns of LIST for which S3 has no value.
const (
	fileMode     = "-rw-r--r--"
	dirMode      = "drwxr-xr-x"
	ownerColumns = " 1 ftp ftp "
)

// yearAfter is the age from which ls shows the year instead of the time.
const yearAfter = 180 * 24 * time.Hour

// clockSkew is how far in the future a client still takes a time without a year for one
// of this year: FileZilla a day, lftp six.
const clockSkew = 24 * time.Hour

// appendColumns writes the columns before the name in a line of ls -l. Times are UTC.
// Clients parse these lines by rules of their own, which together are:
//
//   - ten letters of mode, a number of links that is not 0, one word each of owner
//     and group, then the size. The columns may shift, because clients read all but
//     the name word by word
//   - months in English, three letters; hh:mm stands for the last such time, so
//     what is older than half a year, or in the future, has a year
//   - one SP before the name, because further ones belong to it; but two between
//     day and year, or lftp takes the first SP of a name away
//   - " -> " is a part of any name, because no mode begins with "l"
func appendColumns(b []byte, info fs.FileInfo, now time.Time) []byte {
	mode, size := fileMode, info.Size()
	if info.IsDir() {
		mode, size = dirMode, 0
	}
	modified := info.ModTime().UTC()
	if modified.IsZero() {
		modified = time.Unix(0, 0).UTC() // S3 has no time for a directory
	}
	layout := "Jan _2 15:04 "
	if age := now.Sub(modified); age > yearAfter || age < -clockSkew {
		layout = "Jan _2  2006 "
	}
	b = fmt.Appendf(b, "%s%s%13d ", mode, ownerColumns, size)
	return modified.AppendFormat(b, layout)
}
