//go:build unix && !linux

package passive

// backlog is not known.
func backlog(int) int { return maxBacklog }
