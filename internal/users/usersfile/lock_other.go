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

func keepOwner(*os.File, os.FileInfo) error { return nil }
