//go:build darwin || freebsd || linux

package usersfile

import (
	"errors"
	"os"
	"syscall"
)

// lock locks a folder until it is closed. It waits for another command.
func lock(folder *os.File) error {
	for {
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// keepOwner gives a file the owner and the group of another one.
func keepOwner(f *os.File, of os.FileInfo) error {
	want, known := of.Sys().(*syscall.Stat_t)
	now, err := f.Stat()
	if err != nil || !known {
		return err
	}
	if has, ok := now.Sys().(*syscall.Stat_t); ok && has.Uid == want.Uid && has.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
