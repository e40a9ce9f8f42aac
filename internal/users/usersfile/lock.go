//go:build darwin || freebsd || linux

package usersfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder locks a folder until the file is closed. It waits for other processes.
func lockFolder(folder *os.File) error {
	for {
		if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// mayWrite returns an error if the process may not write to a file or its folder, or could not preserve the owner of
// the file.
func mayWrite(name string, info os.FileInfo) error {
	const write = 2 // W_OK of access(2); it checks the real user ID, which is the effective one here
	for _, at := range []string{name, filepath.Dir(name)} {
		if err := syscall.Access(at, write); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	if of, known := info.Sys().(*syscall.Stat_t); known && int(of.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return fmt.Errorf("%s belongs to the user %d, and the server runs as %d", name, of.Uid, os.Geteuid())
	}
	return nil
}

// keepOwner sets the owner and the group of a file to the ones of another file.
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
