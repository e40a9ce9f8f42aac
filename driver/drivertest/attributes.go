package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// testObjectAttributes checks the attributes with which objects are stored.
func testObjectAttributes(t *testing.T, h Harness) {
	x := h.open(t, nil)
	objects := driver.Objects{
		ContentTypes: map[string]string{".dwg": "application/x-own"},
		CacheControl: "max-age=60",
		StorageClass: types.StorageClassReducedRedundancy,
		ACL:          types.ObjectCannedACLBucketOwnerFullControl,
		Tags:         map[string]string{"source": "ftp", "size": "a b+c/d"},
		Encryption:   types.ServerSideEncryptionAwsKms,
		Checksum:     types.ChecksumAlgorithmCrc32c,
	}
	if h.Limits.has(EncryptionRequests) {
		objects.Encryption = ""
	}
	if h.Limits.has(StorageClasses) {
		objects.StorageClass = ""
	}
	if h.Limits.has(ChecksumsOfParts) {
		objects.Checksum = ""
	}
	if h.Limits.has(Tags) {
		objects.Tags = nil
	}
	unencrypted := h.Limits.has(Encryption) || h.Limits.has(EncryptionRequests)
	f := x.session(t.Context(), &driver.Options{Objects: objects, CopyLimit: int64(x.partSize)})
	var acls sync.Map // by operation
	x.spy.Before(func(_ context.Context, operation string, in any) error {
		switch in := in.(type) {
		case *s3.PutObjectInput:
			acls.Store(operation, in.ACL)
		case *s3.CreateMultipartUploadInput:
			acls.Store(operation, in.ACL)
		case *s3.CopyObjectInput:
			acls.Store(operation, in.ACL)
		}
		return nil
	})
	with := *x
	with.Fs = f
	with.write("small.DWG", random(1000))
	with.write("large.dwg", random(h.PartSize+1))
	want := func(x *fixture, key, contentType string) *s3.HeadObjectOutput {
		x.Helper()
		got := x.attributes(key)
		if aws.ToString(got.head.ContentType) != contentType {
			x.Errorf("%s has the content type %q, want %q", key, aws.ToString(got.head.ContentType), contentType)
		}
		if !unencrypted && got.head.ServerSideEncryption != types.ServerSideEncryptionAwsKms {
			x.Errorf("%s is encrypted with %q", key, got.head.ServerSideEncryption)
		}
		if len(objects.Tags) == 0 || x.hasException(lostTags) {
			return got.head
		}
		if len(got.tags) != 2 || *got.tags[0].Key != "size" || *got.tags[0].Value != "a b+c/d" {
			x.Errorf("%s has the tags %v", key, got.tags)
		}
		return got.head
	}
	for _, key := range []string{"small.DWG", "large.dwg"} {
		x.run(key, func(x *fixture) {
			out := want(x, key, "application/x-own")
			if aws.ToString(out.CacheControl) != "max-age=60" {
				x.Errorf("unexpected Cache-Control %q", aws.ToString(out.CacheControl))
			}
			// versitygw supports no other class, and no encryption
			if out.StorageClass == types.StorageClassStandard && !unencrypted {
				x.Errorf("unexpected storage class %s", out.StorageClass)
			}
			if x.hasException(computedChecksum) {
				return
			}
			sum, err := x.client.HeadObject(x.Context(), &s3.HeadObjectInput{
				Bucket: &x.bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled,
			})
			if err != nil || sum.ChecksumCRC32C == nil || sum.ChecksumType == types.ChecksumTypeComposite {
				x.Errorf(
					"unexpected checksum %v of type %q, %v", aws.ToString(sum.ChecksumCRC32C), sum.ChecksumType, err)
			}
		})
	}
	x.run("directory", func(x *fixture) {
		x.must(f.Mkdir("dir", 0o755))
		out := want(x, "dir/", "application/x-directory")
		if out.StorageClass == types.StorageClassReducedRedundancy || out.CacheControl != nil {
			x.Errorf(
				"a marker is stored as %q with the cache control %q", out.StorageClass, aws.ToString(out.CacheControl))
		}
	})
	x.run("acl", func(x *fixture) {
		with.rename("small.DWG", "renamed")
		f = x.session(x.Context(), &driver.Options{Objects: objects})
		x.must(f.Copy(x.Context(), "renamed", "copied"))
		for _, operation := range []string{"PutObject", "CreateMultipartUpload", "CopyObject"} {
			if acl, _ := acls.Load(operation); acl != types.ObjectCannedACLBucketOwnerFullControl {
				x.Errorf("%s has the ACL %v", operation, acl)
			}
		}
	})
	x.run("kept", func(x *fixture) { x.testAttributesStay(objects) })
}

// testAttributesStay appends to an object of another client and sets its modification time. The object must keep its
// attributes.
func (x *fixture) testAttributesStay(objects driver.Objects) {
	for label, size := range map[string]int{"small": 10, "large": x.partSize} {
		x.run(label, func(x *fixture) {
			before := x.putWithAttributes(label, random(size))
			delete(before.head.Metadata, "mtime")
			other := *x
			other.Fs = x.session(x.Context(), &driver.Options{Objects: objects})
			x.must(other.tryAppend(label, []byte("more")))
			x.wantContent(label, append(random(size), "more"...))
			x.wantAttributes(label, before)
			mtime := time.Unix(1_500_000_000, 0)
			x.must(other.Chtimes(label, mtime, mtime))
			before.head.Metadata["mtime"] = "1500000000.000000000"
			x.wantAttributes(label, before)
		})
	}
}

// testListTimes lists modification times that clients have set.
func testListTimes(t *testing.T, h Harness) {
	x := h.open(t, nil)
	set := time.Unix(1_000_000_000, 250_000_000)
	keys := numbered("dir/", 120)
	for _, key := range keys {
		_, err := x.client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(nil),
			Metadata: map[string]string{"mtime": "1000000000.25"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	x.putAll("dir/00007x/y", "dir/z", "dir/marked/")
	f := x.session(t.Context(), &driver.Options{Objects: driver.Objects{ListSetTimes: true}})
	most := x.gauge(func(in any) int64 {
		if _, isHead := in.(*s3.HeadObjectInput); isHead {
			return 1
		}
		return 0
	})
	entries, err := f.List("dir")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for info, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entryName(info))
		if hasTime := !info.ModTime().IsZero(); hasTime == (info.Name() == "00007x") {
			t.Errorf("%s: unexpected time %v", info.Name(), info.ModTime()) // a directory has the time of its marker
		}
		if isSet := info.ModTime().Equal(set); isSet != (len(info.Name()) == 5) {
			t.Errorf("%s: unexpected time %v", info.Name(), info.ModTime())
		}
	}
	if want := x.list("dir"); strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("listed %q, want %q", names, want)
	}
	if n := most.Load(); n < 2 || n > 40 {
		t.Errorf("%d parallel requests for files", n)
	}
	t.Run("left-early", func(t *testing.T) {
		next, stop := iter.Pull2(must(f.List("dir")))
		defer stop()
		if info, err, ok := next(); !ok || err != nil || entryName(info) != names[0] {
			t.Errorf("unexpected first entry %v, %v", info, err)
		}
	})
	t.Run("gone-meanwhile", func(t *testing.T) {
		x.spy.Before(func(_ context.Context, operation string, in any) error {
			if in, ok := in.(*s3.HeadObjectInput); ok && *in.Key == "dir/00003" {
				x.delete("dir/00003")
			}
			return nil
		})
		infos, err := must(f.Open("dir")).Readdir(0)
		if err != nil || len(infos) != 123 {
			t.Errorf("%d entries, %v", len(infos), err)
		}
	})
	t.Run("failed", func(t *testing.T) {
		x.spy.Before(func(_ context.Context, operation string, _ any) error {
			if operation == "HeadObject" {
				return os.ErrDeadlineExceeded
			}
			return nil
		})
		_, err := must(f.Open("dir")).Readdir(0)
		var pathErr *fs.PathError
		if !errors.Is(err, syscall.EAGAIN) || !errors.As(err, &pathErr) {
			t.Errorf("unexpected error: %v", err)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
