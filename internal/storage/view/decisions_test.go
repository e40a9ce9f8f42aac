package view

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var update = flag.Bool("update", false, "write what the view decides to testdata")

// decided lists the names of the table, each with what is special about it.
var decided = []struct{ what, name string }{
	{"a file", "/file"},
	{"a directory", "/dir"},
	{"nothing", "/nothing"},
	{"a file that is denied", "/secret/file"},
	{"denied in another Unicode form", "/cafe\u0301/file"},
	{"denied and not printable", "/secret/a\nb"},
	{"not printable", "/a\nb"},
	{"a mount", "/archive"},
	{"a file in a mount", "/archive/file"},
	{"nothing in a mount", "/archive/nothing"},
	{"above a mount", "/deep"},
	{"in a mount of another account", "/foreign/file"},
	{"the home, without an object", "/home/alice"},
	{"above the home", "/home"},
	{"a file that the user may only write", "/drop/file"},
	{"too long for a key", "/" + strings.Repeat("x", 1025)},
	{"reserved", "/.babelftp/file"},
	{"the directory of the past", "/.versions"},
	{"a day", "/.versions/" + today()},
	{"a file of a day", "/.versions/" + today() + "/file"},
	{"nothing on a day", "/.versions/" + today() + "/nothing"},
	{"a file on a day that is denied", "/.versions/" + today() + "/secret/file"},
	{"a mount on a day", "/.versions/" + today() + "/archive"},
	{"a file in a mount on a day", "/.versions/" + today() + "/archive/file"},
	{"a file that the user may only write, on a day", "/.versions/" + today() + "/drop/file"},
	{"a file of long ago", "/.versions/2001-02-03T04:05/file"},
	{"a deleted file", "/.versions/deleted/gone"},
	{"a file that was not deleted", "/.versions/deleted/file"},
	{"no moment", "/.versions/tomorrow/file"},
	{"no moment with the name of a mount", "/.versions/archive"},
}

func today() string { return time.Now().UTC().Format(dayLayout) }

// decisions lists the operations on a name.
var decisions = []struct {
	name string
	do   func(f *Files, name string) error
}{
	{"Stat", func(f *Files, name string) error { _, err := f.Stat(name); return err }},
	{"StatFile", func(f *Files, name string) error { _, err := f.StatFile(name); return err }},
	{"StatDir", func(f *Files, name string) error { _, err := f.StatDir(name); return err }},
	{"List", func(f *Files, name string) error { _, err := f.List(name); return err }},
	{"PendingUpload", func(f *Files, name string) error { _, err := f.PendingUpload(name); return err }},
	{"OpenReader", func(f *Files, name string) error {
		file, err := f.OpenReader(name, 0)
		if err != nil {
			return err
		}
		return file.Close()
	}},
	{"OpenWriter", func(f *Files, name string) error {
		file, err := f.OpenWriter(name, os.O_CREATE|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return file.Close()
	}},
	{"append", func(f *Files, name string) error {
		file, err := f.OpenWriter(name, os.O_APPEND|os.O_CREATE, 0)
		if err != nil {
			return err
		}
		return file.Close()
	}},
	{"resume", func(f *Files, name string) error {
		file, err := f.OpenWriter(name, os.O_CREATE, 1)
		if err != nil {
			return err
		}
		return file.Close()
	}},
	{"Mkdir", func(f *Files, name string) error { return f.Mkdir(name) }},
	{"MkdirAll", func(f *Files, name string) error { return f.MkdirAll(name) }},
	{"RemoveFile", func(f *Files, name string) error { return f.RemoveFile(name) }},
	{"RemoveDir", func(f *Files, name string) error { return f.RemoveDir(name) }},
	{"RemoveAll", func(f *Files, name string) error { return f.RemoveAll(name) }},
	{"Rename from it", func(f *Files, name string) error { return f.Rename(name, "/new") }},
	{"Rename to it", func(f *Files, name string) error { return f.Rename("/file", name) }},
	{"Copy from it", func(f *Files, name string) error { return f.Copy(name, "/new") }},
	{"Copy to it", func(f *Files, name string) error { return f.Copy("/file", name) }},
	{"SetTime", func(f *Files, name string) error { return f.SetTime(name, time.Unix(1700000000, 0)) }},
	{"Hash", func(f *Files, name string) error { _, _, err := f.Hash(name, "MD5", 0, -1); return err }},
}

// A decider records the notes and the events of one operation.
type decider struct {
	notes  []Note
	events []FileChange
}

func (d *decider) Begin(_ context.Context, c FileChange) (Event, error) {
	d.events = append(d.events, c)
	return noEvent{}, nil
}

type noEvent struct{}

func (noEvent) End(_ context.Context, _ string, err error) error { return err }

// decidedView returns a view with mounts in a second bucket and in a bucket of another account, a home, and directories
// with few rights.
func decidedView(t *testing.T, s *s3test.Server, d *decider) *View {
	t.Helper()
	client, first, second := s.Client(), s.VersionedBucket(t), s.VersionedBucket(t)
	mount := func(dir, bucket, prefix string, account any) Mount {
		return Mount{Dir: dir, Account: account,
			Store: NewStore(drivertest.MustNew(t.Context(), client, bucket, &driver.Options{Prefix: prefix}).Driver)}
	}
	(&bucket{first, client}).fill(t, "file", "dir/file", "secret/file", "drop/file", "foreign/file", "gone")
	_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &first, Key: aws.String("gone")})
	must.OK(t, err)
	(&bucket{second, client}).fill(t, "2024/file")
	return &View{
		Mounts: NewMounts(mount("/", first, "", 1), mount("/archive", second, "2024/", 1),
			mount("/deep/down", first, "down/", 1), mount("/foreign", first, "foreign/", 2)),
		Policy: Policy{layer("all /secret= /caf\u00e9= /drop=w")}, Form: norm.NFC.String, Printable: true,
		Directories: NewDirectories("/home/alice"), User: "alice", Events: d,
		Past: Past{Dir: "/.versions", Zone: time.UTC},
	}
}

// kindOf returns a word that describes the kind of an error.
func kindOf(err error) string {
	for _, kind := range []struct {
		err  error
		word string
	}{
		{errPolicy, "denied"}, {ErrPast, "past"}, {fs.ErrPermission, "stays"}, {syscall.EXDEV, "other account"},
		{syscall.EILSEQ, "impossible name"}, {syscall.ENAMETOOLONG, "too long"}, {syscall.EISDIR, "is a directory"},
		{syscall.ENOTDIR, "is a file"}, {fs.ErrNotExist, "missing"}, {syscall.ENOTEMPTY, "not empty"},
		{fs.ErrExist, "exists"}, {syscall.ELOOP, "into itself"}, {fs.ErrInvalid, "past the end"},
		{errors.ErrUnsupported, "unsupported"},
	} {
		if errors.Is(err, kind.err) {
			return kind.word
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

// The table in testdata shows for each operation and name the result, whether there is a note for the audit log, and
// whether there is an event. It documents the order of the checks: permission, control characters, mounts, and then the
// response of S3.
func TestDecisions(t *testing.T) {
	const golden = "testdata/decisions.txt"
	s := s3test.Start(t, "sim-aws")
	var table strings.Builder
	for _, of := range decided {
		var answers []string
		operations := map[string][]string{} // by their result
		for _, op := range decisions {
			d := &decider{}
			v := decidedView(t, s, d)
			err := op.do(v.For(t.Context(), func(n Note) { d.notes = append(d.notes, n) }), of.name)
			d.check(t, v, of.name, op.name, err)
			answer := d.answer(err)
			if operations[answer] == nil {
				answers = append(answers, answer)
			}
			operations[answer] = append(operations[answer], op.name)
		}
		fmt.Fprintf(&table, "%s\n", of.what)
		for _, answer := range answers {
			fmt.Fprintf(&table, "  %s: %s\n", answer, strings.Join(operations[answer], ", "))
		}
	}
	if *update {
		must.WriteFile(t, golden, table.String())
		return
	}
	want := must.ReadFile(t, golden)
	wantLines := strings.Split(want, "\n")
	about := ""
	for i, line := range strings.Split(table.String(), "\n") {
		if !strings.HasPrefix(line, " ") {
			about = line
		}
		if i >= len(wantLines) || line != wantLines[i] {
			t.Errorf("%s: got %q, want %q", about, line, wantLines[min(i, len(wantLines)-1)])
		}
	}
}

// answer returns the kind of the error, whether the operation was noted, and the kinds of its events.
func (d *decider) answer(err error) string {
	answer := kindOf(err)
	if len(d.notes) > 0 {
		answer += ", noted"
	}
	for _, e := range d.events {
		answer += ", event " + string(e.Kind)
	}
	return answer
}

// check compares the names in errors, notes and events with the names that the user sees and the URIs of the storage.
func (d *decider) check(t *testing.T, v *View, name, op string, err error) {
	t.Helper()
	old, renamed := name, ""
	switch op {
	case "Rename from it", "Copy from it":
		renamed = "/new"
	case "Rename to it", "Copy to it":
		old, renamed = "/file", name
	}
	at := func(name string) string {
		if name == "" {
			return ""
		}
		return v.URI(name)
	}
	if of, ok := errors.AsType[*fs.PathError](err); ok && of.Path != name && of.Path != old {
		t.Errorf("%s %q: got path %q in the error", op, name, of.Path)
	}
	if of, ok := errors.AsType[*os.LinkError](err); ok && (of.Old != old || of.New != renamed) {
		t.Errorf("%s %q: got paths %q and %q in the error", op, name, of.Old, of.New)
	}
	if uri := v.URI("/archive/file"); !strings.HasSuffix(uri, "/2024/file") {
		t.Errorf("unexpected URI %s in a mount", uri)
	}
	// the note of an upload comes when the file is opened, and the upload may fail later
	upload := op == "OpenWriter" || op == "append" || op == "resume"
	for _, n := range d.notes {
		if n.Path != old || n.To != renamed || n.URI != at(old) || n.ToURI != at(renamed) ||
			(!upload || n.Err != nil) && kindOf(n.Err) != kindOf(err) {
			t.Errorf("%s %q: unexpected note %+v", op, name, n)
		}
	}
	for _, e := range d.events {
		if e.Path != old || e.ToPath != renamed || e.URI != at(old) || e.ToURI != at(renamed) || e.User != "alice" {
			t.Errorf("%s %q: unexpected event %+v", op, name, e)
		}
	}
}
