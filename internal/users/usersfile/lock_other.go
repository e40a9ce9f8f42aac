//go:build !darwin && !freebsd && !linux

package usersfile

import (
	"errors"
	"fmt"
	"os"
)

// lockFolder fails, because folders can be locked on Unix only.
func lockFolder(*os.File) error {
	return fmt.Errorf("this needs a Unix system: %w: edit the file by hand", errors.ErrUnsupported)
}

// mayWrite fails like lockFolder.
func mayWrite(string, os.FileInfo) error { return lockFolder(nil) }

func keepOwner(*os.File, os.FileInfo) error { return nil }
