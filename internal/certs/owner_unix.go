//go:build unix

package certs

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the numeric owner of a file.
func ownerOf(info fs.FileInfo) (uid uint32, known bool) {
	stat, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return 0, false
	}
	return stat.Uid, true
}
