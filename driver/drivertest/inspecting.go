package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// errRefused and errNoVerdict are the verdicts of an inspector.
var (
	errRefused   = fmt.Errorf("refused by the test: %w", fs.ErrInvalid)
	errNoVerdict = errors.New("not judged")
)

// An inspector refuses each file that contains bad. It records what it receives.
type inspector struct {
	mu     sync.Mutex
	bad    []byte
	err    error        // the next verdict, if the file is not refused
	before func() error // called before each verdict; nil for nothing
	seen   [][]byte     // complete files
	open   int          // number of inspections that are not closed
}

// options adds the inspector to options.
func (i *inspector) options(o driver.Options) *driver.Options {
	o.Inspect = func(ctx context.Context, _ string) driver.Inspection {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.open++
		return &inspection{inspector: i, ctx: ctx}
	}
	return &o
}

// An inspection is the inspection of one file.
type inspection struct {
	inspector *inspector
	ctx       context.Context
	bytes     bytes.Buffer
}

// Write implements driver.Inspection.
func (j *inspection) Write(p []byte) (int, error) { return j.bytes.Write(p) }

// Verdict refuses bad files.
func (j *inspection) Verdict() error {
	i := j.inspector
	if i.before != nil {
		if err := i.before(); err != nil {
			return err
		}
	}
	if err := context.Cause(j.ctx); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seen = append(i.seen, j.bytes.Bytes())
	if bytes.Contains(j.bytes.Bytes(), i.bad) {
		return errRefused
	}
	err := i.err
	i.err = nil
	return err
}

// Close implements driver.Inspection.
func (j *inspection) Close() {
	j.inspector.mu.Lock()
	defer j.inspector.mu.Unlock()
	j.inspector.open--
}

// wantSeen checks that the inspector has only received complete files, the last of them with this content, and that all
// inspections are closed.
func (i *inspector) wantSeen(x *fixture, content []byte) {
	x.Helper()
	if len(i.seen) == 0 {
		x.Error("the inspector was not called")
		return
	}
	equal(x, "what the inspector got", i.seen[len(i.seen)-1], content)
	if i.open != 0 {
		x.Errorf("%d inspections have not ended", i.open)
	}
}

// withBad returns content that is refused because of the bytes in its middle.
func (i *inspector) withBad(size int) []byte {
	content := random(size)
	copy(content[size/2:], i.bad)
	return content
}

// wantNeverMade fails the test if S3 receives a request to create an object with this key.
func (x *fixture) wantNeverMade(key string) {
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		made := ""
		switch in := in.(type) {
		case *s3.PutObjectInput:
			made = *in.Key
		case *s3.CompleteMultipartUploadInput:
			made = *in.Key
		case *s3.CopyObjectInput:
			made = *in.Key
		}
		if made == key {
			x.Errorf("%T creates %s", in, key)
		}
		return nil
	})
}

// inspectedSizes returns the sizes of a file that is sent with one request, and of files with several parts.
func (x *fixture) inspectedSizes() map[string]int {
	return map[string]int{"small": 1000, "part": x.partSize, "parts": 2*x.partSize + 1000}
}

func testInspect(t *testing.T, h Harness) {
	for _, test := range []struct {
		label string
		run   func(x *fixture, i *inspector)
	}{
		{"upload", testInspectUpload},
		{"append", testInspectAppend},
		{"resume", testInspectResume},
		{"not-judged", testInspectNotJudged},
		{"before", testInspectBefore},
		{"quarantine", testInspectQuarantine},
		{"abort", testInspectAbort},
		{"replaced", testInspectReplaced},
		{"lost-answers", testInspectLostResponses},
	} {
		t.Run(test.label, func(t *testing.T) { test.run(h.open(t, nil), &inspector{bad: []byte("a bad file")}) })
	}
}

// testInspectUpload checks that refused files never exist and accepted files have their content, with and without an
// owner.
func testInspectUpload(x *fixture, i *inspector) {
	for _, owner := range []string{"", "alice"} {
		for label, size := range x.inspectedSizes() {
			x.run(label+owner, func(x *fixture) {
				session := x.process().as(owner, *i.options(driver.Options{}))
				x.wantNeverMade(label)
				wantError(x, x.begin(session, label, create, 0, i.withBad(size)).Close(), errRefused)
				i.wantSeen(x, i.withBad(size))
				x.wantNothingPending(label)
				x.spy.Before(nil)
				x.close(x.begin(session, label, create, 0, random(size)))
				i.wantSeen(x, random(size))
				x.wantContent(label, random(size))
				x.wantNothingPending(label, label)
				x.delete(label)
			})
		}
	}
	x.run("empty", func(x *fixture) {
		x.close(x.begin(x.session(x.Context(), i.options(driver.Options{})), "empty", create, 0, nil))
		i.wantSeen(x, nil)
	})
}

// testInspectAppend checks that the old bytes are inspected together with the new ones.
func testInspectAppend(x *fixture, i *inspector) {
	size := 2 * x.partSize
	bad := i.withBad(size)
	cut := size/2 + len(i.bad)/2 // both halves are acceptable
	good := append(slices.Clone(bad[:cut]), random(size)[cut:]...)
	for _, opts := range []driver.Options{{}, {Quarantine: "bad/"}} {
		for label, write := range map[string]func(f *Fs, rest []byte) error{
			"append": func(f *Fs, rest []byte) error {
				return WriteAt(f, "file", os.O_WRONLY|os.O_APPEND, 0, rest)
			},
			"rest": func(f *Fs, rest []byte) error { return WriteAt(f, "file", os.O_WRONLY, int64(cut), rest) },
		} {
			x.run(label+opts.Quarantine, func(x *fixture) {
				session := x.process().as("alice", *i.options(opts))
				x.put("file", bad[:cut])
				wantError(x, write(session, bad[cut:]), errRefused)
				i.wantSeen(x, bad)
				x.wantContent("file", bad[:cut])
				x.wantNoUploads("file")
				x.must(write(session, good[cut:]))
				i.wantSeen(x, good)
				x.wantContent("file", good)
			})
		}
	}
	x.run("tail", func(x *fixture) {
		x.put("file", bad)
		session := x.process().as("alice", *i.options(driver.Options{}))
		wantError(x, WriteAt(session, "file", os.O_WRONLY, 5, []byte("other")), errRefused)
		x.wantContent("file", bad)
		x.wantNoUploads("file")
	})
}

// testInspectResume interrupts uploads and resumes them in another process, each with and without an inspector.
func testInspectResume(x *fixture, i *inspector) {
	for label, size := range map[string]int{"small": 1000, "parts": 2*x.partSize + 1000} {
		x.run(label, func(x *fixture) {
			judged := *i.options(driver.Options{})
			x.interrupt(x.process().as("alice", judged), label, create, 0, i.withBad(size)[:size-10])
			again := x.process().as("alice", judged)
			x.wantPending(again, label, int64(size-11))
			x.wantNeverMade(label)
			rest := i.withBad(size)[size-11:]
			wantError(x, x.begin(again, label, resumeFlag, int64(size-11), rest).Close(), errRefused)
			x.spy.Before(nil)
			i.wantSeen(x, i.withBad(size))
			x.wantNothingPending(label)
			x.wantPending(again, label, 0)
			for _, opts := range []driver.Options{judged, {}} {
				x.interrupt(x.process().as("alice", judged), label, create, 0, random(size)[:size-10])
				x.resume(x.process().as("alice", opts), label, size-10, random(size))
				x.wantKeys(label)
				x.delete(label)
			}
			i.wantSeen(x, random(size))
		})
	}
}

// testInspectNotJudged checks that a file that could not be inspected is not stored, and that its owner can send the
// rest again.
func testInspectNotJudged(x *fixture, i *inspector) {
	for label, size := range x.inspectedSizes() {
		x.run(label, func(x *fixture) {
			session := x.process().as("alice", *i.options(driver.Options{}))
			i.err = errNoVerdict
			wantError(x, x.begin(session, label, create, 0, random(size)).Close(), errNoVerdict)
			if x.exists(label) {
				x.Error("the file was stored")
			}
			x.resume(session, label, size, random(size))
			x.wantKeys(label)
			x.delete(label)
		})
	}
}

// testInspectBefore interrupts an upload without an inspector. With an inspector, no session can resume its parts, and
// the journal removes them when the file is stored.
func testInspectBefore(x *fixture, i *inspector) {
	size := x.partSize + 1000
	x.interrupt(x.process().as("alice"), "file", create, 0, random(size))
	p := x.process()
	session := p.as("alice", *i.options(driver.Options{}))
	x.wantPending(session, "file", 0)
	x.close(x.begin(session, "file", create, 0, random(size)))
	wantNoError(x, p.journal.RemoveChanged(x.Context()))
	x.wantNothingPending("file", "file")
}

// testInspectQuarantine checks that a refused file exists only in the quarantine.
func testInspectQuarantine(x *fixture, i *inspector) {
	for _, owner := range []string{"", "alice"} {
		for label, size := range x.inspectedSizes() {
			x.run(label+owner, func(x *fixture) {
				session := x.process().as(owner, *i.options(driver.Options{Quarantine: "bad/"}))
				x.wantNeverMade(label)
				err := x.begin(session, label, create, 0, i.withBad(size)).Close()
				x.spy.Before(nil)
				wantError(x, err, errRefused)
				x.wantNoUploads(label)
				keys := x.keys()
				if len(keys) != 1 || !strings.HasPrefix(keys[0], "bad/") || !strings.HasSuffix(keys[0], "/"+label) ||
					!strings.Contains(err.Error(), keys[0]) {
					x.Fatalf("got keys %q after %v", keys, err)
				}
				x.wantContent(keys[0], i.withBad(size))
				x.delete(keys[0])
				x.close(x.begin(session, label, create, 0, random(size)))
				x.wantNothingPending(label, label)
				x.delete(label)
			})
		}
	}
}

// testInspectAbort ends uploads while they wait for the verdict.
func testInspectAbort(x *fixture, i *inspector) {
	for label, size := range x.inspectedSizes() {
		x.run(label, func(x *fixture) {
			session := x.process().as("alice", *i.options(driver.Options{}))
			f := x.begin(session, label, create, 0, random(size))
			i.before = func() error {
				f.(aborter).Abort(errInterrupted)
				return nil
			}
			wantError(x, f.Close(), errInterrupted)
			i.before = nil
			if x.exists(label) {
				x.Error("the file was stored")
			}
			x.resume(session, label, size, random(size))
			x.delete(label)
		})
	}
}

// testInspectReplaced lets another client store files during an inspection.
func testInspectReplaced(x *fixture, i *inspector) {
	for label, size := range map[string]int{"small": 1000, "parts": x.partSize + 1000} {
		for name, opts := range map[string]driver.Options{"new": {NoOverwrite: true}, "append": {}} {
			x.run(label+name, func(x *fixture) {
				session := x.process().as("alice", *i.options(opts))
				flag := create
				if name == "append" {
					x.put(label, random(10))
					flag = os.O_WRONLY | os.O_APPEND
				}
				f := x.begin(session, label, flag, 0, random(size))
				i.before = func() error {
					x.put(label, []byte("of another client"))
					return nil
				}
				if err := f.Close(); err == nil {
					x.Error("the file was stored")
				}
				i.before = nil
				x.wantContent(label, []byte("of another client"))
				x.wantNothingPending(label, label)
				x.delete(label)
			})
		}
	}
}

// testInspectLostResponses loses the responses to the requests that create the staged object of an upload, and its
// copy.
func testInspectLostResponses(x *fixture, i *inspector) {
	size := x.partSize + 1000
	session := x.process().as("alice", *i.options(driver.Options{}))
	for _, lost := range []int{1, 2} {
		x.run(fmt.Sprint(lost), func(x *fixture) {
			completed := 0
			x.spy.After(func(operation string, _ any) error {
				if operation != "CompleteMultipartUpload" {
					return nil
				}
				if completed++; completed == lost {
					return responseError(500, "InternalError")
				}
				return nil
			})
			x.close(x.begin(session, "file", create, 0, random(size)))
			x.spy.After(nil)
			i.wantSeen(x, random(size))
			x.wantContent("file", random(size))
			x.wantNothingPending("file", "file")
			x.delete("file")
		})
	}
}
