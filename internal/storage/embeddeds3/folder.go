package embeddeds3

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
)

// lockName is a file in the data folder that a running server locks. It is not a bucket, because buckets are folders.
const lockName = ".babelftp-s3.lock"

var (
	errFolderInUse = errors.New("another embedded S3 server uses the data folder")
	errSecond      = errors.New(
		"the working directory is the data folder of a running embedded S3 server, and a process can run one only")
)

// folderLock is the lock of a data folder. The operating system releases it when the process ends.
type folderLock struct{ file *os.File }

// prepareFolder creates the data folder dir and locks it. It checks that objects can be stored there, and removes
// unfinished uploads.
func prepareFolder(dir, workingDir string) (_ *folderLock, err error) {
	// A server in this process has moved the working directory to its folder, which it has locked.
	if dir != workingDir {
		if err := checkUnlocked(workingDir); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock := &folderLock{file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.release())
		}
	}()
	if err := lockFile(file); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := checkAttributes(file); err != nil {
		return nil, err
	}
	return lock, removeUnfinished(dir)
}

// checkUnlocked returns an error if a running server has locked dir.
func checkUnlocked(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return nil // it was never a data folder, or this process has no access
	}
	defer file.Close()
	if errors.Is(lockFile(file), errFolderInUse) {
		return errSecond
	}
	return nil
}

// checkAttributes stores an attribute on file in the same way as versitygw, and removes it.
func checkAttributes(file *os.File) error {
	const probe = "babelftp-probe"
	dir, name := filepath.Split(file.Name())
	err := meta.XattrMeta{}.StoreAttribute(file, "", "", probe, []byte("1"))
	if err == nil {
		err = meta.XattrMeta{}.DeleteAttribute(dir, name, probe)
	}
	if err != nil {
		return fmt.Errorf(
			"data folder %s: its file system has no user extended attributes, in which the embedded S3 server keeps "+
				"the attributes of objects: "+
				"use a folder on ext4, xfs, btrfs or zfs, or on tmpfs from Linux 6.6: %w", dir, err)
	}
	return nil
}

// removeUnfinished removes the temporary files and uploaded parts that an earlier run left. No client can use them,
// because the credentials of that run are gone.
func removeUnfinished(dir string) error {
	buckets, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	for _, bucket := range buckets {
		if !bucket.IsDir() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, bucket.Name(), posix.MetaTmpDir)); err != nil {
			return fmt.Errorf("remove unfinished uploads: %w", err)
		}
	}
	return nil
}

func (l *folderLock) release() error { return l.file.Close() }
