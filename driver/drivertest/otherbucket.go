package drivertest

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// testOtherBucket moves and copies files from one bucket to another.
func testOtherBucket(t *testing.T, h Harness) {
	byParts := h.PartSize
	x := h.open(t, &driver.Options{Prefix: "from/", CopyLimit: int64(byParts)})
	client, name := h.Bucket(t)
	other := func(opts driver.Options) *fixture {
		opts.CopyLimit = int64(byParts)
		if opts.Prefix == "" {
			opts.Prefix = "to/"
		}
		y := *x
		y.client, y.bucket = client, name
		y.Fs = y.session(t.Context(), &opts)
		return &y
	}
	y := other(driver.Options{})
	putTagged := func(key string, content []byte) {
		t.Helper()
		in := &s3.PutObjectInput{
			Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(content),
			ContentType: aws.String("text/x-test"), Metadata: map[string]string{"kept": "yes"},
			Tagging: aws.String("color=red"),
		}
		if x.limits.has(Tags) {
			in.Tagging = nil
		}
		if _, err := x.client.PutObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	for label, size := range map[string]int{"empty": 0, "small": 100, "by-parts": byParts + 1} {
		for variant, target := range map[string]*fixture{"replacing": y,
			"keeping": other(driver.Options{NoOverwrite: true})} {
			x.run(label+"-"+variant, func(x *fixture) {
				name := label + "-" + variant
				putTagged("from/"+name, random(size))
				x.must(x.CopyTo(x.Context(), target.Fs, name, name+"-copy"))
				if err := x.RenameTo(target.Fs, name, name); err != nil { // to the same name
					x.Fatal(err)
				}
				if x.exists("from/" + name) {
					x.Error("the source still exists")
				}
				for _, key := range []string{"to/" + name, "to/" + name + "-copy"} {
					y.wantContent(key, random(size))
					head := y.head(key)
					if aws.ToString(head.ContentType) != "text/x-test" || head.Metadata["kept"] != "yes" ||
						aws.ToInt32(head.TagCount) != 1 && !x.hasException(lostTags) {
						x.Errorf(
							"%s is %s with %v and %d tags", key, aws.ToString(head.ContentType), head.Metadata,
							aws.ToInt32(head.TagCount))
					}
				}
			})
		}
	}
	x.run("directory", func(x *fixture) {
		x.put("from/dir/a", random(10))
		x.put("from/dir/sub/b", random(11))
		y.refuseCopy("to/dir/sub/b")
		wantError(x, x.RenameTo(y.Fs, "dir", "dir"), fs.ErrPermission)
		y.spy.Before(nil)
		wantNoError(x, x.CopyTo(x.Context(), y.Fs, "dir", "dir-copy"))
		wantNoError(x, x.RenameTo(y.Fs, "dir", "dir"))
		for _, dir := range []string{"dir", "dir-copy"} {
			z := *y
			z.T = x.T // so that a failure ends this subtest and not its parent
			z.wantList(dir, "a", "sub/")
			z.wantContent("to/"+dir+"/sub/b", random(11))
		}
		if x.exists("from/dir/a") || x.exists("from/dir/sub/b") {
			x.Error("the source still exists")
		}
	})
	x.run("in-the-way", func(x *fixture) {
		x.put("from/file", random(10))
		x.put("from/tree/a", random(10))
		y.put("to/occupied/b", random(12))
		y.put("to/there", random(13))
		wantError(x, x.RenameTo(y.Fs, "file", "occupied"), syscall.EISDIR)
		wantError(x, x.RenameTo(y.Fs, "tree", "occupied"), syscall.ENOTEMPTY)
		wantError(x, x.RenameTo(y.Fs, "tree", "there"), syscall.ENOTDIR)
		wantError(x, x.RenameTo(y.Fs, "nothing", "new"), fs.ErrNotExist)
		wantError(x, x.RenameTo(other(driver.Options{NoOverwrite: true}).Fs, "file", "there"), fs.ErrExist)
		if !x.exists("from/file") || !x.exists("from/tree/a") {
			x.Error("the source is gone although the move failed")
		}
		y.wantContent("to/there", random(13))
	})
	x.run("one-bucket", func(x *fixture) {
		x.put("from/inner/file", random(10))
		inner := x.session(x.Context(), &driver.Options{Prefix: "from/inner/"})
		if err := x.RenameTo(inner, "inner/file", "file"); err != nil { // the same key
			x.Error(err)
		}
		if err := x.RenameTo(inner, "inner", "deeper"); !errors.Is(err, syscall.ELOOP) ||
			!errors.Is(err, fs.ErrInvalid) {
			x.Errorf("moving a directory into itself: %v", err)
		}
		x.wantContent("from/inner/file", random(10))
	})
}
