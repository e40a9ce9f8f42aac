//go:build !linux

package s3test

// dataFolder returns "", the directory for temporary files.
func dataFolder() string { return "" }
