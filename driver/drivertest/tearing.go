package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// testTornReads lets another client replace a file while the driver checks it: the response has the size and the
// attributes of the old file and the ETag of the new one. Nothing of the new file may be lost. It runs if the profile
// says that the server may respond like this.
func testTornReads(t *testing.T, h Harness) {
	x := h.open(t, nil)
	if x.profile.AtomicReads {
		return
	}
	added := random(10)
	appended := func(content []byte) []byte { return append(bytes.Clone(content), added...) }
	for _, test := range []struct {
		label string
		opts  driver.Options
		run   func(x *fixture) error
		// want returns the content after a successful operation; nil means the content that the other client has
		// stored.
		want  func(content []byte) []byte
		moved bool // the file has its new name afterwards
	}{
		{label: "append", run: func(x *fixture) error { return x.tryAppend("old", added) }, want: appended},
		{label: "restart", run: func(x *fixture) error {
			return x.tryRestart("old", h.PartSize+1000, added)
		}, want: appended},
		{label: "set-time", run: func(x *fixture) error {
			return x.Chtimes("old", time.Time{}, time.Unix(1_000_000_000, 0))
		}},
		{label: "set-time-by-parts", opts: driver.Options{CopyLimit: 1}, run: func(x *fixture) error {
			return x.Chtimes("old", time.Time{}, time.Unix(1_000_000_000, 0))
		}},
		{label: "rename", run: func(x *fixture) error { return x.Rename("old", "new") }, moved: true},
		{label: "rename-by-parts", opts: driver.Options{CopyLimit: 1}, run: func(x *fixture) error {
			return x.Rename("old", "new")
		}, moved: true},
		{label: "rename-to-new-name", opts: driver.Options{NoOverwrite: true}, run: func(x *fixture) error {
			return x.Rename("old", "new")
		}, moved: true},
	} {
		x.run(test.label, func(x *fixture) {
			content := random(h.PartSize + 1000)
			x.delete("new")
			x.put("old", random(h.PartSize))
			x.Fs = x.session(x.Context(), &test.opts)
			x.spy.After(x.tear("old", content))
			err := test.run(x)
			x.spy.After(nil)
			name, want := "old", content
			switch {
			case err != nil && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ESTALE)):
			case err != nil:
				x.Error(err)
			case test.moved:
				name = "new"
			case test.want != nil:
				want = test.want(content)
			}
			if !x.holds(name, want) {
				x.Errorf("%s lacks bytes that another client stored; the operation returned %v", name, err)
			}
			if kind := aws.ToString(x.head(name).ContentType); kind != tornType {
				x.Errorf("%s has the type %s of the file that another client replaced", name, kind)
			}
		})
	}
	x.run("read", (*fixture).testTornBytes)
}

// tornType is the content type of the file that the other client stores.
const tornType = "text/torn"

// tear returns a hook that lets another client store content during the first HeadObject request, and combines both
// objects in the response.
func (x *fixture) tear(key string, content []byte) func(operation string, out any) error {
	var torn atomic.Bool
	return func(_ string, out any) error {
		head, ok := out.(*s3.HeadObjectOutput)
		if !ok || !torn.CompareAndSwap(false, true) {
			return nil
		}
		put, err := x.client.PutObject(x.Context(), &s3.PutObjectInput{
			Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(content), ContentType: aws.String(tornType),
		})
		if err == nil {
			head.ETag = put.ETag
		}
		return err
	}
}

// testTornBytes reads a file with two requests. For the second one, the server compares the ETag and then opens the
// object of another client.
func (x *fixture) testTornBytes() {
	const size = 1000
	x.put("read", bytes.Repeat([]byte("o"), size))
	var etag *string
	gets := 0
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		get, ok := in.(*s3.GetObjectInput)
		if !ok {
			return nil
		}
		if gets++; gets == 2 {
			get.IfMatch = nil
			x.put("read", bytes.Repeat([]byte("n"), size))
		}
		return nil
	})
	x.spy.After(func(_ string, out any) error {
		switch get, ok := out.(*s3.GetObjectOutput); {
		case ok && gets == 1:
			etag = get.ETag
			get.Body = &TruncatedBody{get.Body, size / 2, io.ErrUnexpectedEOF}
		case ok:
			get.ETag = etag
		}
		return nil
	})
	f, err := x.Open("read")
	x.must(err)
	got, err := io.ReadAll(f)
	x.spy.Before(nil)
	x.spy.After(nil)
	x.close(f)
	if !errors.Is(err, syscall.ESTALE) || gets != 2 {
		x.Errorf("read %d bytes of two files with %d requests: got error %v, want %v", len(got), gets, err, syscall.ESTALE)
	}
}
