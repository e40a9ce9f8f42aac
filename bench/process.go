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

// A process is a server as Linux's /proc shows it (proc(5)).
type process struct{ pid int }

func (p *process) file(name string) string { return filepath.Join("/proc", strconv.Itoa(p.pid), name) }

// tick is the unit of times in /proc, USER_HZ: 100 a second on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// cpu is the processor time that the process has taken.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses, which may hold anything. utime and stime are fields 14 and 15.
	_, rest, _ := strings.Cut(string(text[strings.LastIndex(string(text), ")")+1:]), " ")
	fields := strings.Fields(rest)
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("%s is not as expected", p.file("stat"))
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

// memory is a line of /proc/PID/status, in bytes: VmRSS, what the process has now, or VmHWM, the most that it had.
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

// resetPeak makes VmHWM begin anew.
func (p *process) resetPeak() error {
	const peak = "5"
	return os.WriteFile(p.file("clear_refs"), []byte(peak), 0)
}

// listening finds the process that listens on a TCP port of this machine, nil where none does that may be looked at.
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
