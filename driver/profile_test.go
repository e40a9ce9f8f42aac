package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The profiles of MinIO and versitygw match the servers.
func TestProfilesOfServers(t *testing.T) { s3test.Run(t, serverShowsProfile) }

// The profiles of the servers that are packaged in Debian match the servers.
func TestProfilesOfPackaged(t *testing.T) {
	t.Parallel()
	s3test.RunPackaged(t, serverShowsProfile)
}

func serverShowsProfile(t *testing.T, s *s3test.Server) {
	showsProfile(t, profile(t, s), func(t *testing.T) (*s3.Client, string) { return s.Client(), s.Bucket(t) })
}

// A simulator behaves as its profile says, so that tests with it are realistic.
func TestProfilesOfSimulators(t *testing.T) {
	t.Parallel()
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, _ := driver.ProfileNamed(name)
			p.MisreadPartSources = false // not simulated
			showsProfile(t, p, func(*testing.T) (*s3.Client, string) {
				server := s3sim.New(s3sim.Options{Profile: p, FailWhileEmptied: true})
				server.CreateBucket("bucket")
				return server.Client(nil, func(o *s3.Options) {
					o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
				}), "bucket"
			})
		})
	}
}

// showsProfile checks each fact of a profile that the probes of package s3client do not cover, each in an empty bucket.
func showsProfile(t *testing.T, p driver.Profile, bucket func(*testing.T) (*s3.Client, string)) {
	for name, fact := range map[string]struct {
		probe func(*prober) (bool, error)
		want  bool
	}{
		"tags":              {(*prober).tags, !p.LosesTags},
		"percent-part-copy": {(*prober).percentPartCopy, p.PartCopy && !p.MisreadPartSources},
		"unequal-parts":     {(*prober).unequalParts, p.UnequalParts},
		"no-false-success":  {(*prober).falseSuccess, !p.FalseSuccess},
	} {
		t.Run(name, func(t *testing.T) {
			x := &prober{ctx: t.Context()}
			x.client, x.bucket = bucket(t)
			if got, err := fact.probe(x); err != nil || got != fact.want {
				t.Errorf("got %t, %v; want %t as in the profile", got, err, fact.want)
			}
		})
	}
}

// A prober sends requests to an S3 server, in an empty bucket. Its methods report whether the server behaves in a
// certain way.
type prober struct {
	ctx    context.Context
	client *s3.Client
	bucket string
}

const probePart = 5 << 20 // the minimum size of a part that others follow

func (x *prober) put(key, content string) error {
	_, err := x.client.PutObject(
		x.ctx, &s3.PutObjectInput{Bucket: &x.bucket, Key: &key, Body: strings.NewReader(content)})
	return err
}

// falseSuccess completes an upload that was aborted, when an older object has the key.
func (x *prober) falseSuccess() (bool, error) {
	if err := x.put("a", "older"); err != nil {
		return false, err
	}
	upload, err := x.begin(&s3.CreateMultipartUploadInput{}, "newer")
	if err != nil {
		return false, err
	}
	abort := &s3.AbortMultipartUploadInput{Bucket: &x.bucket, Key: &upload.key, UploadId: &upload.id}
	if _, err := x.client.AbortMultipartUpload(x.ctx, abort); err != nil {
		return false, err
	}
	_, err = x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &upload.key, UploadId: &upload.id, MultipartUpload: upload.parts,
	})
	completed, err := done(err)
	return !completed, err
}

// tags begins an upload with a tag.
func (x *prober) tags() (bool, error) {
	u, err := x.begin(&s3.CreateMultipartUploadInput{Tagging: aws.String("color=red")}, "1")
	if err != nil {
		return done(err)
	}
	if err = x.complete(u); err != nil {
		return false, err
	}
	out, err := x.client.GetObjectTagging(x.ctx, &s3.GetObjectTaggingInput{Bucket: &x.bucket, Key: &u.key})
	return err == nil && len(out.TagSet) == 1, err
}

// A begunUpload is a multipart upload whose parts are uploaded.
type begunUpload struct {
	key, id string
	parts   *types.CompletedMultipartUpload
}

// begin begins an upload of the key "a" and uploads parts with numbers from 1.
func (x *prober) begin(in *s3.CreateMultipartUploadInput, contents ...string) (*begunUpload, error) {
	const key = "a"
	in.Bucket, in.Key = &x.bucket, aws.String(key)
	if len(contents) > 0 {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32 // copied parts have no checksum
	}
	created, err := x.client.CreateMultipartUpload(x.ctx, in)
	if err != nil {
		return nil, err
	}
	u := &begunUpload{key: key, id: *created.UploadId, parts: &types.CompletedMultipartUpload{}}
	for i, content := range contents {
		if err := x.part(u, int32(i+1), content); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func (x *prober) part(u *begunUpload, number int32, content string) error {
	part, err := x.client.UploadPart(x.ctx, &s3.UploadPartInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number, Body: strings.NewReader(content),
	})
	if err == nil {
		u.parts.Parts = append(
			u.parts.Parts, types.CompletedPart{PartNumber: &number, ETag: part.ETag, ChecksumCRC32: part.ChecksumCRC32})
	}
	return err
}

func (x *prober) complete(u *begunUpload) error {
	_, err := x.client.CompleteMultipartUpload(x.ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, MultipartUpload: u.parts,
	})
	return err
}

// done reports whether a request was performed. An error response means that the server refused it.
func done(err error) (bool, error) {
	if _, answered := errors.AsType[*smithyhttp.ResponseError](err); err != nil && !answered {
		return false, err
	}
	return err == nil, nil
}

// percentPartCopy copies from a key that is another key if it is decoded twice. An invalid encoding could crash the
// server.
func (x *prober) percentPartCopy() (bool, error) { return x.copyPart("%41", "%2541") }

// copyPart copies an object into an upload. source is the percent-encoded key.
func (x *prober) copyPart(key, source string) (bool, error) {
	if err := x.put(key, strings.Repeat("s", probePart)); err != nil {
		return false, err
	}
	u, err := x.begin(&s3.CreateMultipartUploadInput{})
	if err != nil {
		return false, err
	}
	out, err := x.client.UploadPartCopy(x.ctx, &s3.UploadPartCopyInput{
		Bucket: &x.bucket, Key: &u.key, UploadId: &u.id, PartNumber: aws.Int32(1),
		CopySource: aws.String(x.bucket + "/" + source),
	})
	if err != nil {
		return done(err)
	}
	u.parts.Parts = []types.CompletedPart{{PartNumber: aws.Int32(1), ETag: out.CopyPartResult.ETag}}
	return done(x.complete(u))
}

func (x *prober) unequalParts() (bool, error) {
	u, err := x.begin(
		&s3.CreateMultipartUploadInput{}, strings.Repeat("1", probePart), strings.Repeat("2", probePart+1), "3")
	if err != nil {
		return false, err
	}
	return done(x.complete(u))
}
