//go:build unix && !linux

package dataconn

// backlog returns maxBacklog because the number is unknown.
func backlog(int) int { return maxBacklog }
