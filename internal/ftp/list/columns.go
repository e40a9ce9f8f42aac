package list

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

// clockSkew is how far in the future a time without a year may be, so that clients take
// it for one of this year: FileZilla allows a day, lftp six.
const clockSkew = 24 * time.Hour

// appendColumns writes the columns before the name in a line of ls -l. Times are UTC.
// Clients parse these lines by rules of their own, which together are:
//
//   - The mode has ten letters. The number of links is not 0. Owner and group are one
//     word each, and then comes the size. Clients split all columns but the name at
//     spaces, so widths may differ.
//   - Months are English, with three letters. A time without a year is the last such
//     time, so an entry older than half a year, or in the future, has a year.
//   - One SP stands before the name, because further ones belong to it. Two stand
//     between day and year, or lftp removes the first SP of a name.
//   - " -> " is part of a name, because no mode begins with "l".
func appendColumns(b []byte, info fs.FileInfo, now time.Time) []byte {
	mode, size := fileMode, info.Size()
	if info.IsDir() {
		mode, size = dirMode, 0
	}
	modified := info.ModTime().UTC()
	layout := "Jan _2 15:04 "
	if age := now.Sub(modified); age > yearAfter || age < -clockSkew {
		layout = "Jan _2  2006 "
	}
	b = fmt.Appendf(b, "%s%s%13d ", mode, ownerColumns, size)
	return modified.AppendFormat(b, layout)
}
