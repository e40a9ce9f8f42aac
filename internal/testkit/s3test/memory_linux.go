package s3test

import "golang.org/x/sys/unix"

const (
	// memory is a folder whose files lie in memory.
	memory = "/dev/shm"
	// memoryRoom is more than all tests of a package store, in bytes.
	memoryRoom = 4 << 30
)

// dataFolder is where the folder of MinIO's files begins. On a disk MinIO takes milliseconds to delete an object, where
// other tests write, and lists it as a directory meanwhile. So the files lie in memory where that has room.
func dataFolder() string {
	var s unix.Statfs_t
	if err := unix.Statfs(memory, &s); err != nil || s.Bavail*uint64(s.Bsize) < memoryRoom {
		return "" // that of temporary files
	}
	return memory
}
