//go:build unix && !linux

package dataconn

// backlog is not known.
func backlog(int) int { return maxBacklog }
