package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A renamesTest runs two replicas with one bucket. Faults only affect requests of the first one.
type renamesTest struct {
	*testing.T
	proxy         *s3test.Proxy
	s3            *s3.Client
	bucket        string
	first, second *ftptest.Client
}

// rename sends RNFR and RNTO, and expects a reply to RNTO.
func (x *renamesTest) rename(c *ftptest.Client, from, to string, code int) string {
	x.Helper()
	c.Command(350, "RNFR "+from)
	return c.Command(code, "RNTO "+to)
}

// refuseDeletes makes S3 refuse to delete files of users, until the returned function is called.
func (x *renamesTest) refuseDeletes() (end func()) {
	return x.proxy.Inject(s3test.Fault{
		Operation: "DeleteObject", KeyPrefix: "inbox/alice/", Effect: s3test.Refuse(http.StatusForbidden, "AccessDenied"),
	}).End
}

// betweenCopyAndDelete renames on the first replica, and calls do when S3 has made the copy but the replica does not
// know it yet. It returns the text of the reply.
func (x *renamesTest) betweenCopyAndDelete(from, to, copied string, code int, do func()) string {
	x.Helper()
	x.first.Command(350, "RNFR "+from)
	done := make(chan struct{})
	x.proxy.Inject(s3test.Fault{Operation: "CopyObject", Times: 1, Effect: s3test.Hold(done)})
	go func() {
		defer close(done)
		for {
			in := &s3.HeadObjectInput{Bucket: &x.bucket, Key: aws.String("inbox/alice/" + copied)}
			if _, err := x.s3.HeadObject(x.Context(), in); err == nil || x.Context().Err() != nil {
				break
			}
		}
		do()
	}()
	return x.first.Command(code, "RNTO "+to)
}

// TestRenameHistories renames files and directories while S3 refuses requests or another client makes changes.
func TestRenameHistories(t *testing.T) {
	t.Parallel()
	for _, storage := range []struct {
		name     string
		versions bool
	}{{"minio", false}, {"versitygw", false}, {"minio", true}, {"versitygw-versions", true}} {
		for _, h := range []struct {
			label string
			deny  bool
			run   func(x *renamesTest)
			left  string // files at the end
		}{
			{"refused-then-completed-by-another-replica", false, func(x *renamesTest) {
				x.first.Store("a", "content")
				end := x.refuseDeletes()
				x.rename(x.first, "a", "b", 550)
				x.rename(x.first, "a", "b", 550)
				end()
				x.rename(x.second, "a", "b", 250)
			}, "b=content"},
			{"refused-then-completed-under-deny", true, func(x *renamesTest) {
				x.first.Store("a", "content")
				end := x.refuseDeletes()
				x.rename(x.first, "a", "b", 550)
				end()
				x.rename(x.second, "a", "b", 250)
			}, "b=content"},
			{"equal-file-stored-later-stays-under-deny", true, func(x *renamesTest) {
				x.first.Store("a", "content")
				end := x.refuseDeletes()
				x.rename(x.first, "a", "b", 550)
				end()
				_, err := x.s3.PutObject(x.Context(), &s3.PutObjectInput{
					Bucket: &x.bucket, Key: aws.String("inbox/alice/a"), Body: strings.NewReader("content"),
				})
				must.OK(x, err)
				x.rename(x.second, "a", "b", 550)
			}, "a=content b=content"},
			{"refused-then-renamed-back", false, func(x *renamesTest) {
				x.first.Store("a", "content")
				end := x.refuseDeletes()
				x.rename(x.first, "a", "b", 550)
				end()
				x.rename(x.second, "b", "a", 250)
			}, "a=content"},
			{"renamed-back-onto-an-equal-file", false, func(x *renamesTest) {
				x.first.Store("flag", "")
				x.rename(x.first, "flag", "taken", 250)
				x.second.Store("flag", "")
				x.rename(x.second, "taken", "flag", 250)
			}, "flag="},
			{"empty-flag-stored-during-a-rename", false, func(x *renamesTest) {
				x.first.Store("flag", "")
				text := x.betweenCopyAndDelete("flag", "taken", "taken", 451, func() { x.second.Store("flag", "") })
				if !strings.Contains(text, "flag") {
					x.Errorf("unexpected text of 451: %s", text)
				}
				x.rename(x.first, "flag", "taken", 250)
				x.second.Store("flag", "")
			}, "flag= taken="},
			{"directory-whose-file-is-replaced", false, func(x *renamesTest) {
				x.first.Command(257, "MKD d")
				x.first.Store("d/a", "one")
				text := x.betweenCopyAndDelete("d", "e", "e/a", 451, func() { x.second.Store("d/a", "two") })
				// The marker of d on versitygw has the time of the directory, which changes with the file.
				marker := strings.Contains(x.Name(), "/versitygw") && strings.HasSuffix(text, " (d/)")
				if !strings.HasSuffix(text, " (d/a)") && !marker {
					x.Errorf("unexpected text of 451: %s", text)
				}
				if text := x.rename(x.first, "d", "e", 550); !strings.HasSuffix(text, " (e/a)") {
					x.Errorf("unexpected text of 550: %s", text)
				}
				x.first.Command(250, "DELE e/a")
				x.rename(x.first, "d", "e", 250)
			}, "e/a=two"},
			{"remove-a-directory-by-the-name-of-a-file", false, func(x *renamesTest) {
				x.first.Store("a", "content")
				x.first.Command(550, "SITE RMDIR a")
			}, "a=content"},
		} {
			name := strings.TrimSuffix(storage.name, "-versions")
			if storage.versions {
				name += "-versions"
			}
			t.Run(name+"/"+h.label, func(t *testing.T) {
				s := s3test.Start(t, storage.name)
				cfg := servicetest.NewConfig(t, s)
				acme := cfg.Tenants["acme"]
				if storage.versions {
					s.SetVersioning(t, acme.Bucket, types.BucketVersioningStatusEnabled)
				}
				if h.deny {
					acme.Overwrite = config.DenyOverwrite
				}
				proxy, behind := s3test.StartProxy(t, s), *cfg
				behind.S3.Endpoint = proxy.Server().Endpoint
				x := &renamesTest{T: t, proxy: proxy, s3: s.Client(), bucket: acme.Bucket,
					first:  session(t, start(t, &behind, Options{AWS: s.AWSConfig()}), "alice"),
					second: session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")}
				h.run(x)
				if left := x.left(); left != h.left {
					t.Errorf("got files %q, want %q", left, h.left)
				}
			})
		}
	}
}

// left returns the files of the user with their contents.
func (x *renamesTest) left() string {
	x.Helper()
	const prefix = "inbox/alice/"
	out, err := x.s3.ListObjectsV2(
		x.Context(), &s3.ListObjectsV2Input{Bucket: &x.bucket, Prefix: aws.String(prefix)})
	must.OK(x, err)
	var files []string
	for _, o := range out.Contents {
		if name := strings.TrimPrefix(*o.Key, prefix); !strings.HasSuffix(name, "/") {
			files = append(files, name+"="+x.second.Transfer("RETR "+name))
		}
	}
	return strings.Join(files, " ")
}
