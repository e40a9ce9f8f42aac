package s3test

import "golang.org/x/sys/unix"

const (
	// memory is a directory on a memory file system.
	memory = "/dev/shm"
	// memoryRoom is the required free space in bytes: more than all tests of a package store.
	memoryRoom = 4 << 30
)

// dataFolder returns the parent directory for MinIO's data, or "" for the default of os.MkdirTemp. On a busy disk
// MinIO takes milliseconds to delete an object and lists it as a directory during that time, so the data is kept in
// memory if there is enough space.
func dataFolder() string {
	var s unix.Statfs_t
	if err := unix.Statfs(memory, &s); err != nil || s.Bavail*uint64(s.Bsize) < memoryRoom {
		return "" // the directory for temporary files
	}
	return memory
}
