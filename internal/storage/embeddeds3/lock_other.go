//go:build !darwin && !freebsd && !linux

package embeddeds3

import (
	"errors"
	"fmt"
	"os"
)

// lockFile returns an error, because versitygw needs extended attributes, which only Unix systems have.
func lockFile(*os.File) error {
	return fmt.Errorf("the embedded S3 server needs a Unix system: %w", errors.ErrUnsupported)
}
