package driver_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// ruleByFolder gives the name of the first directory to a file, and the way by which the file got its name.
func ruleByFolder(_ context.Context, name string, origin driver.Origin) driver.Rule {
	folder := path.Base(path.Dir(name))
	if folder == "plain" {
		return driver.Rule{}
	}
	return driver.Rule{
		Tags:     map[string]string{"folder": folder},
		Metadata: map[string]string{"folder": folder, "copied": map[driver.Origin]string{driver.Copied: "yes"}[origin]},
	}
}

// accepting is an inspection that accepts everything.
type accepting struct{ io.Writer }

func (accepting) Verdict() error { return nil }
func (accepting) Close()         {}

// TestRules stores, copies and renames files in folders with rules.
func TestRules(t *testing.T) {
	t.Parallel()
	s3test.Run(t, testRules)
	t.Run("ceph", func(t *testing.T) { testRules(t, s3test.Start(t, "sim-ceph")) })
}

func testRules(t *testing.T, s *s3test.Server) {
	t.Helper()
	large := bytes.Repeat([]byte("0123456789abcdef"), 6<<16)
	p, bucket := profile(t, s), s.Bucket(t)
	client := s.Client(s3client.RetryUnstored(""))
	open := func(change func(*driver.Options)) *drivertest.Fs {
		opts := &driver.Options{Profile: p, PartSize: 5 << 20, Rule: ruleByFolder}
		if change != nil {
			change(opts)
		}
		return drivertest.MustNew(t.Context(), client, bucket, opts)
	}
	f := open(nil)
	inspected := open(func(o *driver.Options) {
		o.Inspect = func(context.Context, string) driver.Inspection { return accepting{io.Discard} }
	})
	for _, dir := range []string{"in", "out", "plain"} {
		must.OK(t, f.Mkdir(dir, 0))
	}
	store := func(fs afero.Fs, name string, content []byte) func() error {
		return func() error { return afero.WriteFile(fs, name, content, 0) }
	}
	for _, step := range []struct {
		name   string
		do     func() error
		key    string
		folder string // in the tag and in the metadata; empty for none
		copied bool
	}{
		{"upload", store(f, "in/small", []byte("content")), "in/small", "in", false},
		{"upload-by-parts", store(f, "in/large", large), "in/large", "in", false},
		{"append", func() error { return drivertest.WriteAt(f, "in/small", os.O_APPEND, 0, []byte("more")) }, "in/small", "in",
			false},
		{"append-by-parts", func() error { return drivertest.WriteAt(f, "in/large", os.O_APPEND, 0, large) }, "in/large", "in",
			false},
		{"inspected", store(inspected, "in/inspected", large), "in/inspected", "in", false},
		{"time", func() error { return f.Chtimes("in/small", time.Time{}, time.Unix(1e9, 0)) }, "in/small", "in", false},
		{"rename", func() error { return f.Rename("in/small", "out/small") }, "out/small", "out", true},
		{"copy-by-parts", func() error {
			few := open(func(o *driver.Options) { o.CopyLimit = 5 << 20 })
			return few.Copy(t.Context(), "in/large", "out/large")
		}, "out/large", "out", true},
		{"rename-of-a-directory", func() error { return f.Rename("out", "moved") }, "moved/large", "moved", true},
		{"without-a-rule", store(f, "plain/file", nil), "plain/file", "", false},
		{"rename-to-no-rule", func() error { return f.Rename("moved/small", "plain/small") }, "plain/small", "moved", true},
		{"rename-to-a-rule", func() error { return f.Rename("plain/file", "in/file") }, "in/file", "in", true},
	} {
		must.OK(t, step.do())
		head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &step.key})
		must.OK(t, err)
		if head.Metadata["folder"] != step.folder || (head.Metadata["copied"] == "yes") != step.copied {
			t.Errorf("%s: %s has the metadata %v", step.name, step.key, head.Metadata)
		}
		out, err := client.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: &bucket, Key: &step.key})
		must.OK(t, err)
		switch tags := out.TagSet; {
		case step.folder == "" && len(tags) == 0:
		case len(tags) != 1 || *tags[0].Key != "folder" || *tags[0].Value != step.folder:
			t.Errorf("%s: %s has the tags %v", step.name, step.key, tags)
		}
	}
}

// TestRulesOfLocks stores files with a retention and a legal hold. Every version of a file is locked, and nothing else.
func TestRulesOfLocks(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "minio")
	client, bucket := s.Client(s3client.RetryUnstored("")), s.LockedBucket(t)
	p := profile(t, s)
	p.GhostPrefixes = true
	f := drivertest.MustNew(t.Context(), client, bucket, &driver.Options{
		Profile: p, PartSize: 5 << 20,
		Rule: func(_ context.Context, name string, _ driver.Origin) driver.Rule {
			return driver.Rule{
				LockMode: types.ObjectLockModeCompliance, LockFor: 48 * time.Hour, LegalHold: path.Ext(name) == ".held",
			}
		},
	})
	large := make([]byte, 6<<20)
	for _, step := range []struct {
		name, key string
		do        func() error
	}{
		{"upload", "a.held", func() error { return afero.WriteFile(f, "a.held", []byte("content"), 0) }},
		{"upload-by-parts", "large", func() error { return afero.WriteFile(f, "large", large, 0) }},
		{"time", "large", func() error { return f.Chtimes("large", time.Time{}, time.Unix(1e9, 0)) }},
		{"rename", "b.held", func() error { return f.Rename("a.held", "b.held") }},
		{"append", "b.held", func() error { return drivertest.WriteAt(f, "b.held", os.O_APPEND, 0, []byte("more")) }},
	} {
		must.OK(t, step.do())
		head, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &step.key})
		must.OK(t, err)
		left := time.Until(aws.ToTime(head.ObjectLockRetainUntilDate))
		held := head.ObjectLockLegalHoldStatus == types.ObjectLockLegalHoldStatusOn
		if head.ObjectLockMode != types.ObjectLockModeCompliance || left < 47*time.Hour || left > 48*time.Hour ||
			held != (path.Ext(step.key) == ".held") {
			t.Errorf("%s: %s is locked by %s for %v, legal hold %v", step.name, step.key, head.ObjectLockMode, left, held)
		}
		_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{
			Bucket: &bucket, Key: &step.key, VersionId: head.VersionId,
		})
		if err == nil {
			t.Errorf("%s: the version could be deleted", step.name)
		}
	}
}
