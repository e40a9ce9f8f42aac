package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Comments that enclose the figures on a page.
const (
	figuresBegin = "<!-- begin: make bench BENCH='-page docs/benchmarks.md' -->\n"
	figuresEnd   = "<!-- end -->"
)

// writePage replaces the figures on a page by the table, with the date, the machine and the command line.
func (t *table) writePage(file string, args []string, date time.Time) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	head, rest, found := bytes.Cut(page, []byte(figuresBegin))
	_, tail, closed := bytes.Cut(rest, []byte(figuresEnd))
	if !found || !closed {
		return fmt.Errorf(
			"%s: missing markers: add the lines %q and %q", file, strings.TrimSpace(figuresBegin), figuresEnd)
	}
	var figures bytes.Buffer
	fmt.Fprintf(
		&figures, "Date: %s. Machine: %s. Command: `go run ./bench %s`.\n\n", date.Format(time.DateOnly), machine(),
		strings.Join(args, " "))
	if err := t.print(&figures); err != nil {
		return err
	}
	page = bytes.Join([][]byte{head, []byte(figuresBegin), figures.Bytes(), []byte(figuresEnd), tail}, nil)
	return os.WriteFile(file, page, 0o644)
}

// machine describes the machine from /proc.
func machine() string {
	parts := []string{procField("cpuinfo", "model name"), fmt.Sprintf("%d processors", runtime.NumCPU())}
	if memory := procField("meminfo", "MemTotal"); memory != "" {
		parts = append(parts, "memory "+memory)
	}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "Linux "+strings.TrimSpace(string(kernel)))
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, average, _ := strings.Cut(string(load), " ")
		average, _, _ = strings.Cut(average, " ")
		parts = append(parts, "load average of five minutes "+average)
	}
	return strings.Join(append(parts, runtime.Version()), ", ")
}

// procField returns the first value of a key in a file of /proc, or an empty string.
func procField(file, key string) string {
	text, err := os.ReadFile(filepath.Join("/proc", file))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
