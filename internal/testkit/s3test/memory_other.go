//go:build !linux

package s3test

// dataFolder is where the folder of MinIO's files begins: that of temporary files.
func dataFolder() string { return "" }
