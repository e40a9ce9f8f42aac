package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A process is a running server, as seen in /proc (proc(5)).
type process struct{ pid int }

func (p *process) file(name string) string { return filepath.Join("/proc", strconv.Itoa(p.pid), name) }

// tick is the unit of times in /proc. USER_HZ is 100 on all architectures that Go supports.
const tick = 10 * time.Millisecond

// cpu returns the CPU time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, err
	}
	// The second field is the program name in parentheses, which may contain anything. utime and stime are
	// fields 14 and 15.
	_, rest, _ := strings.Cut(string(text[strings.LastIndex(string(text), ")")+1:]), " ")
	fields := strings.Fields(rest)
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("%s has an unexpected format", p.file("stat"))
	}
	var total time.Duration
	for _, field := range []string{fields[utime], fields[stime]} {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}

// memory returns a value of /proc/PID/status in bytes: VmRSS is the current size, VmHWM the peak.
func (p *process) memory(key string) (int64, error) {
	text, err := os.ReadFile(p.file("status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, key+":"); found {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", p.file("status"), key)
}

// resetPeak resets VmHWM.
func (p *process) resetPeak() error {
	const peak = "5"
	return os.WriteFile(p.file("clear_refs"), []byte(peak), 0)
}

// listening finds the process that listens on a TCP port of this machine. It returns nil if there is no such
// process or its files are not accessible.
func listening(port int) (*process, error) {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue // no IPv6
			}
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			const address, state, inode, listen = 1, 3, 9, "0A"
			if len(fields) > inode && fields[state] == listen &&
				strings.HasSuffix(fields[address], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+fields[inode]+"]"] = true
			}
		}
	}
	descriptors, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil, err
	}
	for _, name := range descriptors {
		if link, err := os.Readlink(name); err == nil && sockets[link] {
			pid, err := strconv.Atoi(strings.Split(name, "/")[2])
			return &process{pid}, err
		}
	}
	return nil, nil
}
