package s3sim_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestAsVersitygwExpects runs versitygw's integration tests against the simulator of AWS. Their authors do not know
// the simulator, and compare S3 with what they expect. A test may fail because the simulator says that it lacks an
// operation. testdata/versitygw.txt lists the others that fail, each below its reason. A test that fails and is not
// listed, or is listed and passes, fails this one.
func TestAsVersitygwExpects(t *testing.T) {
	if testing.Short() {
		t.Skip("-short has no versitygw")
	}
	expected := expectedFailures(t)
	server := httptest.NewServer(withObjectSize(s3sim.New(s3sim.Options{Profile: profile(t, "aws")})))
	t.Cleanup(server.Close)

	tests := runVersitygw(t, server.URL)
	passed := 0
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		failure := tests[name]
		reason, listed := expected[name]
		switch {
		case strings.Contains(failure, "NotImplemented"):
			if listed {
				t.Errorf("%s asks for an operation that the simulator lacks; remove it from the list (%s)", name, reason)
			}
		case failure == "":
			passed++
			if listed {
				t.Errorf("%s passes; remove it from the list (%s)", name, reason)
			}
		case !listed:
			t.Errorf("%s fails: %s", name, failure)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if _, ran := tests[name]; !ran {
			t.Errorf("%s is listed and is no test", name)
		}
	}
	t.Logf("%d of %d pass", passed, len(tests))
}

// expectedFailures reads the list: names of tests, and before them their reason in lines that begin with "#". An
// empty line ends a reason.
func expectedFailures(t *testing.T) map[string]string {
	t.Helper()
	list, err := os.ReadFile("testdata/versitygw.txt")
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string]string{}
	for paragraph := range strings.SplitSeq(string(list), "\n\n") {
		var reason []string
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			if comment, isComment := strings.CutPrefix(line, "#"); isComment {
				reason = append(reason, strings.TrimSpace(comment))
				continue
			}
			switch {
			case line == "":
			case len(reason) == 0:
				t.Errorf("%s is listed without a reason", line)
			case expected[line] != "":
				t.Errorf("%s is listed twice", line)
			}
			expected[line] = strings.Join(reason, " ")
		}
	}
	delete(expected, "")
	return expected
}

// withObjectSize adds the size of the object to each answer to PutObject. S3 tells it in buckets of the type
// directory only, and a test of versitygw reads it without asking whether it is there.
func withObjectSize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.Header.Get("X-Amz-Decoded-Content-Length")
		if size == "" {
			size = strconv.FormatInt(r.ContentLength, 10)
		}
		parameters := r.URL.Query()
		parameters.Del("x-id")
		if r.Method == http.MethodPut && len(parameters) == 0 && r.Header.Get("X-Amz-Copy-Source") == "" {
			w.Header().Set("X-Amz-Object-Size", size)
		}
		next.ServeHTTP(w, r)
	})
}

// runVersitygw runs the tests of versitygw, and returns the failure of each, which is empty for one that passes.
func runVersitygw(t *testing.T, endpoint string) map[string]string {
	t.Helper()
	binary, err := filepath.Abs("../../../.tools/bin/versitygw")
	if err != nil {
		t.Fatal(err)
	}
	// Some tests wait for locks to end, so that one after another they take minutes.
	cmd := exec.CommandContext(
		t.Context(), binary, "test", "--endpoint", endpoint, "full-flow", "--versioning-enabled", "--parallel")
	cmd.Dir = t.TempDir() // in which the tests look for another binary, to add users
	cmd.Env = []string{"HOME=" + cmd.Dir, "AWS_ACCESS_KEY_ID=s3sim", "AWS_SECRET_ACCESS_KEY=s3sim"}
	output, err := cmd.CombinedOutput()
	if !bytes.Contains(output, []byte("\nRAN: ")) {
		t.Fatalf(
			"the tests did not come to their end: %v\n%s (make .tools/bin/versitygw builds them)", err, tail(output))
	}
	// Each line names a test. A line may also begin behind another one.
	line := regexp.MustCompile(`\x1b\[\d+m(RUN|PASS|FAIL|SKIP) +\x1b\[0m(\w+)(?:: ([^\n\x1b]*))?`)
	failures, open := map[string]string{}, map[string]int{}
	for _, match := range line.FindAllSubmatch(output, -1) {
		name := string(match[2])
		if _, known := failures[name]; !known {
			failures[name] = ""
		}
		switch string(match[1]) {
		case "RUN":
			open[name]++
		case "PASS", "SKIP":
			open[name]--
		case "FAIL":
			open[name]--
			failures[name] = string(match[3])
		}
	}
	for name, n := range open {
		if n > 0 { // the test itself passed
			failures[name] = fmt.Sprintf("it could not remove its bucket, %d times", n)
		}
	}
	return failures
}

// tail is the end of an output.
func tail(output []byte) []byte { return output[max(0, len(output)-4096):] }
