//go:build darwin || freebsd || linux

package embeddeds3

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks file until it is closed. It returns errFolderInUse if the file is locked through another open file,
// in this process or another one.
func lockFile(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errFolderInUse
	}
	return err
}
