//go:build darwin || freebsd || linux

package embeddeds3

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks file for this open file until it is closed, or fails with errFolderInUse when another open file, of
// this process or not, has the lock.
func lockFile(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errFolderInUse
	}
	return err
}
