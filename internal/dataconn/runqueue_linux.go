package dataconn

import (
	"os"
	"strconv"
	"strings"
)

// runQueue returns how many tasks of the machine run or wait for a processor,
// and how many processors it has: at least 1. The tasks are 0 where the kernel
// does not tell.
func runQueue() (tasks, processors int) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, 1
	}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return 0, 1
	}
	return runnableTasks(string(load)), max(countProcessors(string(online)), 1)
}

// runnableTasks finds the tasks in "0.20 0.18 0.12 1/80 11206".
func runnableTasks(load string) int {
	fields := strings.Fields(load)
	if len(fields) < 4 {
		return 0
	}
	text, _, _ := strings.Cut(fields[3], "/")
	tasks, _ := strconv.Atoi(text)
	return tasks
}

// countProcessors counts those of a list such as "0-3,6". Package runtime counts
// the processors that this process may use, while tasks are those of the machine.
func countProcessors(list string) int {
	count := 0
	for text := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(text, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, lastErr := strconv.Atoi(last)
		if err == nil && lastErr == nil {
			count += to - from + 1
		}
	}
	return count
}
