//go:build !darwin && !freebsd && !linux

package usersfile

import (
	"errors"
	"fmt"
	"os"
)

// lock fails: only Unix systems lock folders.
func lock(*os.File) error {
	return fmt.Errorf("it needs a Unix system: %w: change the file in an editor", errors.ErrUnsupported)
}

// mayWrite fails, as lock does.
func mayWrite(string, os.FileInfo) error { return lock(nil) }

func keepOwner(*os.File, os.FileInfo) error { return nil }
