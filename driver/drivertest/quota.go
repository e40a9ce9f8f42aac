package drivertest

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/driver"
)

// withQuota opens a file system below a prefix, with a limit on a usage that has been counted.
func (x *fixture) withQuota(prefix string, limit int) (*fixture, *driver.Usage) {
	x.Helper()
	quotas, usage := x.quotas(prefix, limit)
	x.must(usage.Count(x.Context()))
	y := *x
	y.Fs = x.session(x.Context(), &driver.Options{Prefix: prefix, Quotas: quotas})
	return &y, usage
}

// quotas returns quotas with one limit on a usage that has not been counted.
func (x *fixture) quotas(prefix string, limit int) (driver.Quotas, *driver.Usage) {
	usages := driver.NewUsages()
	usage, _ := usages.Of(x.spy, x.bucket, prefix)
	return limited(usages, driver.Limit{Usage: usage, Bytes: int64(limit)}), usage
}

func limited(usages *driver.Usages, limits ...driver.Limit) driver.Quotas {
	return driver.Quotas{Usages: usages, Limits: func() []driver.Limit { return limits }}
}

func (x *fixture) wantUsed(usage *driver.Usage, want int) {
	x.Helper()
	if used, known := usage.Used(); used != int64(want) || !known {
		x.Errorf("%d bytes are used (known: %v), want %d", used, known, want)
	}
}

// testQuota fills quotas.
func testQuota(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.run("sums", testQuotaSums)
	x.run("limit", testQuotaLimit)
	x.run("moving", testQuotaOfMoves)
	x.run("partly-refused", testQuotaOfRefusedKeys)

	// Files that others delete free room, as soon as a new count is allowed.
	x.run("others", func(x *fixture) {
		y, _ := x.withQuota("others/", 100)
		y.write("full", random(100))
		wantError(x, y.tryWrite("more", random(1)), syscall.EDQUOT)
		x.delete("others/full")
		for begun := time.Now(); ; {
			err := y.tryWrite("more", random(1))
			if err == nil {
				break
			}
			wantError(x, err, syscall.EDQUOT)
			if time.Since(begun) > time.Minute {
				x.Fatal("the quota is full")
			}
		}
	})
	// The first upload counts the existing files.
	x.run("uncounted", func(x *fixture) {
		x.put("uncounted/file", random(100))
		quotas, usage := x.quotas("uncounted/", 110)
		x.Fs = x.session(x.Context(), &driver.Options{Prefix: "uncounted/", Quotas: quotas})
		wantError(x, x.tryWrite("more", random(11)), syscall.EDQUOT)
		x.write("more", random(10))
		x.wantUsed(usage, 110)
		x.write("more", random(10)) // needs no more room than before
	})
	// The file must fit into each limit. If it does not fit into one, it takes no room from the others. It counts in
	// the usages of all prefixes of its key, no matter who stores or deletes it.
	x.run("two", func(x *fixture) {
		usages := driver.NewUsages()
		of := func(prefix string) *driver.Usage {
			usage, _ := usages.Of(x.spy, x.bucket, prefix)
			x.must(usage.Count(x.Context()))
			return usage
		}
		wide, narrow, beside := of("two/"), of("two/narrow/"), of("two/narrow-too/")
		wideLimit := driver.Limit{Usage: wide, Bytes: 100}
		all := x.session(x.Context(), &driver.Options{Prefix: "two/", Quotas: limited(usages, wideLimit)})
		x.Fs = x.session(x.Context(), &driver.Options{Prefix: "two/narrow/",
			Quotas: limited(usages, wideLimit, driver.Limit{Usage: narrow, Bytes: 10})})
		wantError(x, x.tryWrite("file", random(11)), syscall.EDQUOT)
		x.write("file", random(10))
		below := x.Fs
		x.Fs = all
		x.write("file", random(80))
		x.write("narrow/more", random(10)) // the limit applies to other users only
		wantError(x, x.tryWrite("more", random(1)), syscall.EDQUOT)
		x.wantUsed(wide, 100)
		x.wantUsed(narrow, 20)
		x.must(x.Rename("narrow/file", "moved"))
		x.wantUsed(narrow, 10)
		x.must(x.Rename("moved", "narrow/file"))
		x.wantUsed(narrow, 20)
		x.must(x.RemoveAll("narrow"))
		x.wantUsed(wide, 80)
		x.wantUsed(narrow, 0)
		x.Fs = below
		x.write("file", random(10))
		x.wantUsed(narrow, 10)
		x.wantUsed(beside, 0)
	})
	x.run("changed", testQuotaChanged)
	x.run("requests", func(x *fixture) {
		y, _ := x.withQuota("requests/", 100)
		x.spy.Reset()
		y.write("file", random(100))
		if n := x.spy.Total(); n > 2 {
			x.Errorf("the write took %d requests, %v; want at most 2", n, x.spy.Counts())
		}
	})
	x.run("fails", func(x *fixture) {
		usage, _ := driver.NewUsages().Of(x.spy, x.bucket+"-that-is-not-there", "")
		wantError(x, usage.Count(x.Context()), syscall.ENXIO)
		if _, known := usage.Used(); known {
			x.Error("the usage is known")
		}
	})
}

// testQuotaChanged adds, changes and removes a limit while a session is open, even while it stores a file.
func testQuotaChanged(x *fixture) {
	usages := driver.NewUsages()
	limit := 0
	opts := driver.Options{Prefix: "changed/", Quotas: driver.Quotas{Usages: usages, Limits: func() []driver.Limit {
		if limit == 0 {
			return nil
		}
		usage, _ := usages.Of(x.spy, x.bucket, "changed/")
		return []driver.Limit{{Usage: usage, Bytes: int64(limit)}}
	}}}
	x.Fs = x.session(x.Context(), &opts)
	x.write("before", random(100))
	begun := x.begin(x.Fs, "begun", create, 0, random(x.partSize+1))
	limit = 110
	wantError(x, x.tryWrite("more", random(11)), syscall.EDQUOT) // "before" and "begun" count
	wantError(x, begun.Close(), syscall.EDQUOT)
	x.write("more", random(10))
	wantError(x, x.tryWrite("most", random(1)), syscall.EDQUOT)
	limit = 111
	x.write("most", random(1))
	limit = 0
	x.write("large", random(200))
	begun = x.begin(x.Fs, "begun", create, 0, random(x.partSize+1))
	limit = x.partSize + 400
	wantError(x, x.tryWrite("too-much", random(100)), syscall.EDQUOT)
	x.must(begun.Close())
	usage, _ := usages.Of(x.spy, x.bucket, "changed/")
	x.wantUsed(usage, x.partSize+312)

	// A usage that was dropped and requested again knows the stored objects and the uploads in progress.
	begun = x.begin(x.Fs, "begun-again", create, 0, random(10))
	usages.Forget(0)
	limit = 2 * x.partSize
	x.write("few", random(1))
	x.must(begun.Close())
	usage, _ = usages.Of(x.spy, x.bucket, "changed/")
	x.wantUsed(usage, x.partSize+323)
}

// testQuotaSums checks after each operation that the sum, which is not counted again, matches the content of the
// bucket.
func testQuotaSums(x *fixture) {
	prefix := "sums/"
	x.put(prefix+"before", random(1000))
	x.put("sums-and-more", random(1000))
	y, usage := x.withQuota(prefix, 100<<20)
	x.wantUsed(usage, 1000)
	for _, test := range []struct {
		label string
		run   func() error
	}{
		{"write", func() error { return y.tryWrite("file", random(10)) }},
		{"replace", func() error { return y.tryWrite("file", random(300)) }},
		{"replace-by-less", func() error { return y.tryWrite("file", random(7)) }},
		{"append", func() error { return y.tryAppend("file", random(13)) }},
		{"append-nothing", func() error { return y.tryAppend("file", nil) }},
		{"write-parts", func() error { return y.tryWrite("parts", random(2*x.partSize+1)) }},
		{"append-parts", func() error { return y.tryAppend("parts", random(x.partSize+1)) }},
		{"restart", func() error { return y.tryRestart("parts", x.partSize+1, random(100)) }},
		{"restart-beyond-the-end", func() error { return y.tryRestart("parts", 3*x.partSize, random(100)) }},
		{"restart-at-the-beginning", func() error { return y.tryRestart("parts", 1, random(100)) }},
		{"restart-with-nothing", func() error { return y.tryRestart("parts", x.partSize, nil) }},
		{"mkdir", func() error { return y.Mkdir("dir", 0o755) }},
		{"write-below", func() error { return y.tryWrite("dir/a", random(20)) }},
		{"copy", func() error { return y.Copy(y.Context(), "file", "dir/b") }},
		{"copy-over", func() error { return y.Copy(y.Context(), "dir/a", "file") }},
		{"copy-directory", func() error { return y.Copy(y.Context(), "dir", "copied") }},
		{"copy-directory-again", func() error { return y.Copy(y.Context(), "dir", "copied") }},
		{"rename", func() error { return y.Rename("file", "renamed") }},
		{"rename-over", func() error { return y.Rename("renamed", "before") }},
		{"rename-directory", func() error { return y.Rename("dir", "moved") }},
		{"times", func() error { return y.Chtimes("before", time.Unix(1, 0), time.Unix(1, 0)) }},
		{"remove", func() error { return y.Remove("before") }},
		{"remove-nothing", func() error {
			wantError(y, y.Remove("before"), fs.ErrNotExist)
			return nil
		}},
		{"remove-parts", func() error { return y.RemoveFile("parts") }},
		{"remove-all", func() error { return y.RemoveAll("copied") }},
		{"remove-the-rest", func() error { return y.RemoveAll("/") }},
	} {
		if err := test.run(); err != nil {
			x.Fatalf("%s: %v", test.label, err)
		}
		known, _ := usage.Used()
		x.must(usage.Count(x.Context()))
		if used, _ := usage.Used(); used != known {
			x.Errorf("%s: got usage %d, want %d", test.label, known, used)
		}
	}
	x.wantUsed(usage, 0)
}

// testQuotaOfRefusedKeys deletes a directory with one file that S3 refuses to delete. The quota must no longer count
// the other files, even if one request deletes many.
func testQuotaOfRefusedKeys(x *fixture) {
	x.putAll("partly/1", "partly/2", "partly/4")
	x.put("partly/3", random(500))
	x.put("partly/1", random(70))
	y, usage := x.withQuota("partly/", 1000)
	denied := &smithy.GenericAPIError{Code: "AccessDenied"}
	x.spy.Before(func(_ context.Context, operation string, in any) error {
		switch in := in.(type) {
		case *s3.DeleteObjectsInput:
			in.Delete.Objects = slices.DeleteFunc(in.Delete.Objects, func(o types.ObjectIdentifier) bool {
				return *o.Key == "partly/3"
			})
		case *s3.DeleteObjectInput:
			if *in.Key == "partly/3" {
				return denied
			}
		}
		return nil
	})
	x.spy.After(func(_ string, out any) error {
		if out, ok := out.(*s3.DeleteObjectsOutput); ok {
			out.Errors = append(out.Errors, types.Error{Key: aws.String("partly/3"), Code: &denied.Code})
		}
		return nil
	})
	if err := y.RemoveAll("/"); err == nil {
		x.Error("missing the refusal")
	}
	x.spy.Before(nil)
	x.spy.After(nil)
	left := 0
	for _, key := range x.keys() {
		if strings.HasPrefix(key, "partly/") {
			left += len(x.object(key))
		}
	}
	x.wantUsed(usage, left)
	if x.profile.BatchDelete && left != 500 {
		x.Errorf("got %d bytes left, want 500", left)
	}
}

// testQuotaLimit stores exactly as many bytes as the limit allows.
func testQuotaLimit(x *fixture) {
	limit := 2*x.partSize + 10
	quotas, usage := x.quotas("limit/", limit)
	y := *x
	y.Fs = x.session(x.Context(), &driver.Options{Prefix: "limit/", Quotas: quotas})
	y.write("file", random(x.partSize))

	wantError(x, y.tryWrite("small", random(x.partSize-1+12)), syscall.EDQUOT)
	wantError(x, y.tryAppend("file", random(x.partSize+11)), syscall.EDQUOT)
	y.wantContent("limit/file", random(x.partSize))
	wantError(x, y.tryWrite("parts", random(3*x.partSize)), syscall.EDQUOT)
	y.wantNoUploads("limit/parts")
	y.wantKeys("limit/file", "sums-and-more")
	x.wantUsed(usage, x.partSize)

	// An upload in progress reserves its room, and releases it if it is interrupted.
	begun := y.begin(y.Fs, "begun", create, 0, random(x.partSize+1))
	wantError(x, y.tryWrite("other", random(11)), syscall.EDQUOT)
	begun.(aborter).Abort(errInterrupted)
	wantError(x, begun.Close(), errInterrupted)
	y.write("other", random(11))

	y.write("exactly", random(limit-x.partSize-11))
	x.wantUsed(usage, limit)
	wantError(x, y.tryWrite("one-more", random(1)), syscall.EDQUOT)
	wantError(x, y.Copy(x.Context(), "other", "copied"), syscall.EDQUOT)
	wantError(x, errorOf(y.Create("nothing")), syscall.EDQUOT) // refused when it is opened
	y.write("other", nil)
	y.write("other", random(11))
	y.write("file", random(x.partSize)) // the replaced file frees its room
	y.write("other", random(10))
	y.write("one-more", random(1))
	if err := y.Rename("file", "renamed"); err != nil { // needs no room
		x.Error(err)
	}

	wantNoError(x, y.Remove("renamed"))

	// Nothing is kept of an upload that exceeds the limit.
	p := y.process()
	owner := p.as("alice", driver.Options{Prefix: "limit/", Quotas: quotas})
	f, err := owner.OpenAt("kept", create, 0)
	x.must(err)
	wantError(x, errorOf(f.Write(random(3*x.partSize))), syscall.EDQUOT)
	wantError(x, f.Close(), syscall.EDQUOT)
	if n := x.pendingSize(owner, "kept"); n != 0 {
		x.Errorf("got %d reserved bytes", n)
	}
}

// testQuotaOfMoves moves and copies files into a prefix with a quota and out of it.
func testQuotaOfMoves(x *fixture) {
	y, usage := x.withQuota("bounded/", 100)
	free := *x
	free.Fs = x.session(x.Context(), &driver.Options{Prefix: "free/"})
	free.write("large", random(101))
	free.write("dir/large", random(101))
	free.write("small", random(60))

	wantError(x, free.RenameTo(y.Fs, "large", "large"), syscall.EDQUOT)
	wantError(x, free.RenameTo(y.Fs, "dir", "dir"), syscall.EDQUOT)
	wantError(x, free.CopyTo(x.Context(), y.Fs, "large", "large"), syscall.EDQUOT)
	x.wantUsed(usage, 0)
	x.must(free.RenameTo(y.Fs, "small", "small"))
	x.wantUsed(usage, 60)
	x.must(y.RenameTo(free.Fs, "small", "back"))
	x.wantUsed(usage, 0)
	x.wantContent("free/large", random(101))
	x.wantContent("free/dir/large", random(101))
	x.wantContent("free/back", random(60))
}
