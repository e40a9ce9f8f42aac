package drivertest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// testNoOverwrite checks that no file is replaced, whatever is done at the same time.
func testNoOverwrite(t *testing.T, h Harness) {
	x := h.open(t, &driver.Options{NoOverwrite: true})
	x.put("there", []byte("there"))
	for label, flag := range map[string]int{
		"replace":   os.O_WRONLY | os.O_CREATE | os.O_TRUNC,
		"append":    os.O_WRONLY | os.O_CREATE | os.O_APPEND,
		"update":    os.O_WRONLY | os.O_APPEND,
		"truncate":  os.O_WRONLY | os.O_TRUNC,
		"read-back": os.O_RDWR | os.O_CREATE | os.O_TRUNC,
	} {
		x.run(label, func(x *fixture) {
			wantError(x, errorOf(x.OpenFile("there", flag, 0)), fs.ErrExist)
		})
	}
	x.run("go-on", func(x *fixture) {
		wantError(x, errorOf(x.OpenAt("there", os.O_WRONLY|os.O_CREATE, 3)), fs.ErrExist)
	})
	x.run("new", func(x *fixture) {
		x.write("new", []byte("new"))
		wantNoError(x, x.tryAppend("new-by-append", []byte("new")))
		x.wantContent("new", []byte("new"))
		x.wantContent("new-by-append", []byte("new"))
	})
	x.run("time", func(x *fixture) {
		wantNoError(x, x.Chtimes("there", time.Unix(1, 0), time.Unix(1, 0)))
	})
	for label, size := range map[string]int{"nothing": 0, "small": 10, "parts": h.PartSize + 1} {
		x.run("upload-at-once-"+label, func(x *fixture) { x.testUploadsAtOnce("upload-"+label, size) })
		x.run("rename-at-once-"+label, func(x *fixture) { x.testRenamesAtOnce("rename-"+label, size) })
	}
	x.run("copy-onto-a-file", func(x *fixture) {
		x.put("original", []byte("original"))
		wantError(x, x.Copy(x.Context(), "original", "there"), fs.ErrExist)
		wantNoError(x, x.Copy(x.Context(), "original", "copy"))
		x.wantContent("there", []byte("there"))
		x.wantContent("copy", []byte("original"))
	})
	x.run("rename-a-directory", func(x *fixture) {
		x.put("dated/empty", nil)
		x.put("dated/small", random(100))
		x.put("dated/sub/other", random(200))
		x.refuseCopy("fresh/sub/other")
		wantError(x, x.Rename("dated", "fresh"), fs.ErrPermission)
		x.spy.Before(nil)
		x.must(x.Rename("dated", "fresh"))
		x.wantList("fresh", "empty", "small", "sub/")
		x.wantContent("fresh/small", random(100))
		if x.exists("dated/small") || x.exists("dated/sub/other") {
			x.Error("the old directory is still there")
		}
	})
	x.run("rename-a-directory-onto-another-file", func(x *fixture) {
		x.put("source/file", random(100))
		x.put("target/file", random(100))                                      // with the same bytes
		if err := x.Rename("source", "target"); !errors.Is(err, fs.ErrExist) { // ENOTEMPTY matches fs.ErrExist too
			x.Error(err)
		}
		x.wantContent("source/file", random(100))
		x.wantContent("target/file", random(100))
	})
	x.run("rename-onto-a-file", func(x *fixture) {
		x.put("from", []byte("from"))
		wantError(x, x.Rename("from", "there"), fs.ErrExist)
		x.wantContent("from", []byte("from"))
		if err := x.Rename("from", "from"); err != nil {
			x.Errorf("rename to its own name: %v", err)
		}
		x.wantContent("there", []byte("there"))
		x.wantNoUploads("there")
	})
}

// clientsAtOnce is the number of clients that do the same thing at the same time.
const clientsAtOnce = 8

// testUploadsAtOnce uploads several files with the same name at the same time.
func (x *fixture) testUploadsAtOnce(name string, size int) {
	uploads := make([]func() error, clientsAtOnce)
	for i := range uploads {
		f := x.openAt(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
		x.must(errorOf(f.Write(random(size))))
		uploads[i] = f.Close
	}
	several := severalPuts
	if size >= x.partSize {
		several = severalCompletions
	}
	x.wantWinner(uploads, several)
	x.wantContent(name, random(size))
	x.wantNoUploads(name)
	wantError(x, x.tryWrite(name, random(size)), fs.ErrExist)
}

// testRenamesAtOnce renames several files to the same name at the same time.
func (x *fixture) testRenamesAtOnce(name string, size int) {
	var renames []func() error
	var sources []string
	for i, key := range numbered(name+"-from-", clientsAtOnce) {
		_, err := x.client.PutObject(x.Context(), &s3.PutObjectInput{
			Bucket: &x.bucket, Key: &key, ContentType: aws.String("text/x-test"),
			Metadata: map[string]string{"kept": "yes"},
		})
		x.must(err)
		if size > 0 {
			x.put(key, random(size+i))
		}
		sources = append(sources, key)
		renames = append(renames, func() error { return x.Rename(key, name) })
	}
	several := severalCopies
	if size >= x.partSize {
		several = severalCopiesByParts
	}
	winners := x.wantWinner(renames, several)
	for i, source := range sources {
		if there := x.exists(source); there == slices.Contains(winners, i) {
			x.Errorf("%s: exists: %v, winners: %v", source, there, winners)
		}
	}
	if size == 0 {
		if head := x.head(name); aws.ToString(head.ContentType) != "text/x-test" || head.Metadata["kept"] != "yes" {
			x.Errorf("got type %s with metadata %v", aws.ToString(head.ContentType), head.Metadata)
		}
	} else {
		got := x.object(name)
		if !slices.ContainsFunc(winners, func(i int) bool { return bytes.Equal(got, random(size+i)) }) {
			x.Errorf("%s has %d bytes, which none of the winners %v has written", name, len(got), winners)
		}
	}
	x.wantNoUploads(name)
	x.put(name+"-late", []byte("late"))
	wantError(x, x.Rename(name+"-late", name), fs.ErrExist)
}

// wantWinner runs all attempts at the same time, and checks that all but one fail because the file exists. If the
// exception applies, the driver can only check before it stores the file, so several may succeed.
func (x *fixture) wantWinner(attempts []func() error, several exception) (winners []int) {
	x.Helper()
	errs := make([]error, len(attempts))
	var begin, done sync.WaitGroup
	begin.Add(1)
	for i, attempt := range attempts {
		done.Go(func() {
			begin.Wait()
			errs[i] = attempt()
		})
	}
	begin.Done()
	done.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			winners = append(winners, i)
		case !errors.Is(err, fs.ErrExist):
			x.Error(err)
		}
	}
	if len(winners) == 0 || len(winners) > 1 && !x.hasException(several) {
		x.Fatalf("got winners %v", winners)
	}
	return winners
}
