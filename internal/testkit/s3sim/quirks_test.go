package s3sim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestTornAnswers reads an object that another client replaces between the arrival of the request and its answer.
func TestTornAnswers(t *testing.T) {
	for server, torn := range map[string]bool{"versitygw": true, "aws": false} {
		t.Run(server, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newFixture(t, s3sim.Options{Profile: profile(t, server), Torn: true})
				slow, name, key := x.slowly().client, aws.String(bucket), aws.String("file")
				replacedMeanwhile := func(read func()) (before, after string) {
					before = x.mustPut("file", "old")
					done := make(chan struct{})
					go func() { read(); close(done) }()
					synctest.Wait()
					after = x.mustPut("file", "replaced")
					<-done
					return before, after
				}
				var head *s3.HeadObjectOutput
				_, after := replacedMeanwhile(func() {
					head, _ = slow.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: name, Key: key})
				})
				if *head.ETag != after || (*head.ContentLength == 3) != torn {
					t.Errorf("HeadObject answers %d bytes and %s, want %s", *head.ContentLength, *head.ETag, after)
				}
				var get *s3.GetObjectOutput
				before, _ := replacedMeanwhile(func() {
					get, _ = slow.GetObject(t.Context(), &s3.GetObjectInput{Bucket: name, Key: key})
				})
				if got, _ := io.ReadAll(get.Body); string(got) != "replaced" || (*get.ETag == before) != torn {
					t.Errorf("GetObject answers %q and %s; the ETag was %s", got, *get.ETag, before)
				}
				var list *s3.ListObjectsV2Output
				before, _ = replacedMeanwhile(func() {
					list, _ = slow.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: name})
				})
				if o := list.Contents[0]; *o.Size != 8 || (*o.ETag == before) != torn {
					t.Errorf("ListObjectsV2 answers %d bytes and %s; the ETag was %s", *o.Size, *o.ETag, before)
				}
			})
		})
	}
}

// TestGhostPrefixes lists a directory whose only object is below a delete marker.
func TestGhostPrefixes(t *testing.T) {
	for server, shown := range map[string]int{"minio": 1, "aws": 0} {
		x := newFixture(t, s3sim.Options{Profile: profile(t, server), Versioning: true})
		x.mustPut("dir/file", "content")
		wantCode(t, x.delete("dir/file"), "")
		list, err := x.client.ListObjectsV2(
			t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Delimiter: aws.String("/")})
		if err != nil || len(list.CommonPrefixes) != shown {
			t.Errorf("%s: %+v, %v", server, list, err)
		}
	}
}

// TestLockedMarkers deletes the marker of a directory in a bucket with Object Lock.
func TestLockedMarkers(t *testing.T) {
	for server, code := range map[string]string{"minio": "InvalidRequest", "aws": ""} {
		x := newFixture(t, s3sim.Options{Profile: profile(t, server), Versioning: true})
		_, err := x.client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket:                  aws.String(bucket),
			ObjectLockConfiguration: &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled},
		})
		wantCode(t, err, "")
		x.mustPut("dir/", "")
		wantCode(t, x.delete("dir/"), code)
		_, err = x.client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{
			Bucket: aws.String(bucket),
			Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("dir/")}}},
		})
		wantCode(t, err, "")
		if len(x.Objects(bucket)) > 0 {
			t.Errorf("%s: the marker is there", server)
		}
	}
}

// slowly is a fixture whose requests take effect after a minute.
func (x *fixture) slowly() *fixture {
	late := func(s3sim.Operation) s3sim.Fault { return s3sim.Fault{Before: time.Minute} }
	return &fixture{x.T, x.Server, x.Client(&s3sim.Caller{Fault: late}, once)}
}

// TestOverlapping aborts an upload while it is completed.
func TestOverlapping(t *testing.T) {
	for _, overlapping := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, "swift"), MinPartSize: 1, Overlapping: overlapping})
			in := x.begin()
			answer := make(chan error)
			go func() {
				_, err := x.slowly().client.CompleteMultipartUpload(t.Context(), in)
				answer <- err
			}()
			synctest.Wait()
			_, err := x.client.AbortMultipartUpload(t.Context(), &s3.AbortMultipartUploadInput{
				Bucket: in.Bucket, Key: in.Key, UploadId: in.UploadId,
			})
			wantCode(t, err, "")
			codes := map[bool][2]string{false: {"NoSuchUpload", "NoSuchKey"}, true: {"", "BrokenMPU"}}[overlapping]
			wantCode(t, <-answer, codes[0])
			_, err = x.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: in.Bucket, Key: in.Key})
			wantCode(t, err, codes[1])
		})
	}
}

// TestEmptying stores a file while the last one of its directory goes.
func TestEmptying(t *testing.T) {
	for _, test := range []struct {
		server   string
		emptied  int // how often the directory goes meanwhile
		status   int
		unstored bool
	}{
		{"minio", 1, http.StatusForbidden, false},
		{"seaweedfs", 1, http.StatusInternalServerError, false},
		{"versitygw", 1, http.StatusConflict, false},
		{"versitygw", 2, 0, true},
		{"minio", 0, 0, false},
		{"aws", 1, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, test.server), Emptying: true})
			x.mustPut("dir/sub/other", "content")
			var out *s3.PutObjectOutput
			answer := make(chan error)
			go func() {
				var err error
				out, err = x.slowly().client.PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: aws.String(bucket), Key: aws.String("dir/file"), Body: strings.NewReader("content"),
				})
				answer <- err
			}()
			synctest.Wait()
			for range test.emptied {
				x.mustPut("dir/sub/other", "content")
				wantCode(t, x.delete("dir/sub/other"), "")
			}
			err := <-answer
			_, missing := x.client.HeadObject(
				t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("dir/file")})
			if status(err) != test.status || (missing == nil) != (test.status == 0 && !test.unstored) {
				t.Errorf("%s, emptied %d times: %v, and then %v", test.server, test.emptied, err, missing)
			}
			if err == nil && test.unstored && out.ChecksumType != "" {
				t.Errorf(
					"%s, emptied %d times: the type of the checksum is %q", test.server, test.emptied, out.ChecksumType)
			}
		})
	}
}

// TestOvertakenAnswers stores and copies a file while a later request stores another one.
func TestOvertakenAnswers(t *testing.T) {
	for server, performed := range map[string]bool{"swift": false, "aws": true} {
		synctest.Test(t, func(t *testing.T) {
			x := newFixture(t, s3sim.Options{Profile: profile(t, server)})
			x.mustPut("source", "copied")
			put, copied := make(chan *s3.PutObjectOutput, 1), make(chan *s3.CopyObjectOutput, 1)
			go func() {
				out, _ := x.slowly().client.PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: aws.String(bucket), Key: aws.String("put"), Body: strings.NewReader("earlier"),
				})
				put <- out
			}()
			go func() {
				out, _ := x.slowly().client.CopyObject(t.Context(), &s3.CopyObjectInput{
					Bucket: aws.String(bucket), Key: aws.String("copy"), CopySource: aws.String(bucket + "/source"),
				})
				copied <- out
			}()
			synctest.Wait()
			x.mustPut("put", "later")
			x.mustPut("copy", "later")
			if out := <-put; out == nil || (out.ETag != nil) != performed {
				t.Errorf("%s: PutObject is answered %v", server, out)
			}
			if out := <-copied; out == nil || (aws.ToString(out.CopyObjectResult.ETag) != `"None"`) != performed {
				t.Errorf("%s: CopyObject is answered %v", server, out)
			}
			for _, o := range x.Objects(bucket) {
				if later := string(o.Content.Bytes()) == "later"; o.Key != "source" && later == performed {
					t.Errorf("%s: %s has %q", server, o.Key, o.Content.Bytes())
				}
			}
		})
	}
}
