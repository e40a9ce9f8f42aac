// Command testreport summarizes the output of go test -json for people. It prints each package with its time,
// and the complete output of tests that fail or do not end. At the end, it lists the slowest and the skipped
// tests, and prints totals. Lines that are not JSON, such as the output of make, are passed through. The exit
// code is 1 if a test or a package failed, or if a test was skipped.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// An event is a line of go test -json (see go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	ImportPath                    string  // package of a build that writes output or fails
}

// A result is a finished test.
type result struct {
	pkg, test string
	seconds   float64
}

func (r result) String() string { return fmt.Sprintf("%7.1f s  %s %s", r.seconds, r.pkg, r.test) }

// A report collects the events.
type report struct {
	out             io.Writer
	outputs         map[result]*strings.Builder // output of running tests and packages
	passed          []result
	failed, skipped []string
}

func main() {
	r := &report{out: os.Stdout, outputs: map[result]*strings.Builder{}}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	r.summarize()
	if len(r.failed)+len(r.skipped) > 0 || len(r.passed) == 0 {
		os.Exit(1)
	}
}

func (r *report) read(in io.Reader) error {
	const longest = 16 << 20 // bytes of a line
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(r.out, lines.Text())
			continue
		}
		r.add(e)
	}
	return lines.Err()
}

func (r *report) add(e event) {
	pkg := e.Package[strings.LastIndexByte(e.Package, '/')+1:]
	key := result{pkg: pkg, test: e.Test}
	switch e.Action {
	case "output":
		if r.outputs[key] == nil {
			r.outputs[key] = &strings.Builder{}
		}
		r.outputs[key].WriteString(e.Output)
		return
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return
	case "pass", "fail", "skip", "build-fail":
	default:
		return
	}
	output := ""
	if b := r.outputs[key]; b != nil {
		output = b.String()
		delete(r.outputs, key)
	}
	name := strings.TrimSpace(cmp.Or(pkg, e.ImportPath) + " " + e.Test)
	switch {
	case e.Action == "fail" || e.Action == "build-fail":
		r.failed = append(r.failed, name)
		fmt.Fprintf(r.out, "FAIL  %s\n%s", name, output)
		if e.Test == "" {
			r.interrupted(pkg)
		}
	case e.Test == "" && e.Action == "pass":
		fmt.Fprintf(r.out, "ok    %s %.1f s\n", e.Package, e.Elapsed)
	case e.Test == "":
	case e.Action == "skip":
		r.skipped = append(r.skipped, name+"\n"+output)
	default:
		r.passed = append(r.passed, result{pkg, e.Test, e.Elapsed})
	}
}

// interrupted prints the output of tests that were running when the process of their package ended, for
// example because of a panic.
func (r *report) interrupted(pkg string) {
	for key, output := range r.outputs {
		if key.pkg == pkg {
			fmt.Fprintf(r.out, "FAIL  %s %s did not end\n%s", key.pkg, key.test, output)
			delete(r.outputs, key)
		}
	}
}

func (r *report) summarize() {
	const most = 30
	slices.SortStableFunc(r.passed, func(a, b result) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintln(r.out, "\nslowest tests:")
	for _, t := range r.passed[:min(most, len(r.passed))] {
		fmt.Fprintln(r.out, t)
	}
	for _, s := range r.skipped {
		fmt.Fprintln(r.out, "SKIP ", s)
	}
	for _, name := range r.failed {
		fmt.Fprintln(r.out, "FAIL ", name)
	}
	fmt.Fprintf(
		r.out, "%d tests and subtests passed, %d failed, %d skipped\n", len(r.passed), len(r.failed), len(r.skipped))
}
