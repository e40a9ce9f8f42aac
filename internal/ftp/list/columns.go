package list

import (
	"fmt"
	"io/fs"
	"time"
)

// Columns of LIST for which S3 has no value.
const (
	fileMode     = "-rw-r--r--"
	dirMode      = "drwxr-xr-x"
	ownerColumns = " 1 ftp ftp "
)

// yearAfter is the age from which ls shows the year instead of the time.
const yearAfter = 180 * 24 * time.Hour

// clockSkew limits how far in the future a time without a year may be, because clients must place it in the
// current year. FileZilla accepts a day, lftp six.
const clockSkew = 24 * time.Hour

// appendColumns appends the columns before the name in a line of ls -l. Times are in UTC. Clients parse these
// lines with different rules, which together require:
//
//   - The mode has ten letters, and the number of links is not 0. Owner and group are one word each,
//     followed by the size. Clients split the columns before the name at spaces, so widths may differ.
//   - Months are English, with three letters. A time without a year is in the last twelve months, so an entry older
//     than half a year, or in the future, has a year.
//   - One space precedes the name, because more spaces would belong to it. Two spaces separate day and year, or lftp
//     removes a leading space of the name.
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
