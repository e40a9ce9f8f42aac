package s3client

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/config"
)

// AddOverwriteMode notes the mode of a user who may write, for Verify to check. The driver gets it with the other options of the user.
func (b *Bucket) AddOverwriteMode(o config.Overwrite) {
	if !slices.Contains(b.overwrite, o) {
		b.overwrite = append(b.overwrite, o)
	}
}

// denies tells whether files must not be replaced.
func (b *Bucket) denies() bool { return slices.Contains(b.overwrite, config.DenyOverwrite) }

// checkOverwrite asks S3 whether the bucket can keep the files that must not be lost when others of their names are stored. A server
// that does not know what it is asked for ignores it without a word, so it has to show it.
func (b *Bucket) checkOverwrite(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if slices.Contains(b.overwrite, config.VersionOverwrite) {
		if err := b.checkVersioning(ctx); err != nil {
			return err
		}
	}
	if !b.denies() {
		return nil
	}
	if err := b.checkCondition(ctx); err != nil {
		return err
	}
	b.Profile.ConditionalPut, b.Profile.ConditionalComplete = true, true // the server has shown it, whatever its profile says
	return nil
}

// checkVersioning asks whether the bucket keeps older versions.
func (b *Bucket) checkVersioning(ctx context.Context) error {
	const advice = "switch its versioning on, or write overwrite: deny"
	out, err := b.Client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.Name})
	switch status := statusOf(err); {
	case err == nil && out.Status == types.BucketVersioningStatusEnabled:
		return nil
	case err == nil, status == http.StatusNotImplemented, status == http.StatusMethodNotAllowed:
		return b.failed(err, "keeps no older versions of its objects, which overwrite: version counts on", advice)
	case status == http.StatusForbidden:
		return b.failed(err, "the credentials may not ask whether it keeps older versions of its objects, which overwrite: version counts on",
			"allow them s3:GetBucketVersioning on it")
	}
	return b.explain(err)
}

// probePrefix begins the key of the object by which a server shows that it knows If-None-Match. The segment is the driver's own: no
// pathname has it.
const probePrefix = ".babelftp/overwrite-"

// checkCondition stores an object and tries to replace it, whole and by parts, on the condition that there is none. What it has
// stored it deletes, as far as it may.
func (b *Bucket) checkCondition(ctx context.Context) error {
	key := b.Prefix + probePrefix + strings.ToLower(rand.Text())
	versions, err := b.probe(ctx, key)
	for _, version := range versions {
		_, _ = b.Client.DeleteObject(context.WithoutCancel(ctx), &s3.DeleteObjectInput{Bucket: &b.Name, Key: &key, VersionId: version})
	}
	status := statusOf(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errReplaced), status == http.StatusNotImplemented:
		return b.failed(err, "its S3 server does not know If-None-Match, which overwrite: deny counts on: files would be replaced",
			"move to a server that knows it, or write overwrite: allow or overwrite: version")
	}
	return b.explain(err)
}

var errReplaced = errors.New("S3 replaced an object although the request forbade it")

// probe returns the versions that it has stored, and errReplaced where one has replaced another.
func (b *Bucket) probe(ctx context.Context, key string) (versions []*string, err error) {
	put := func() error {
		out, err := b.Client.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.Name, Key: &key, IfNoneMatch: aws.String("*")})
		if err == nil {
			versions = append(versions, out.VersionId)
		}
		return err
	}
	if err := put(); err != nil {
		return nil, err
	}
	if err := refused(put()); err != nil {
		return versions, err
	}
	created, err := b.Client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b.Name, Key: &key})
	if err != nil {
		return versions, err
	}
	upload := &s3.AbortMultipartUploadInput{Bucket: &b.Name, Key: &key, UploadId: created.UploadId}
	defer b.Client.AbortMultipartUpload(context.WithoutCancel(ctx), upload) //nolint:errcheck // it is gone if it was completed
	part, err := b.Client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &b.Name, Key: &key, UploadId: created.UploadId, PartNumber: aws.Int32(1), Body: strings.NewReader("x"),
	})
	if err != nil {
		return versions, err
	}
	out, err := b.Client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &b.Name, Key: &key, UploadId: created.UploadId, IfNoneMatch: aws.String("*"),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag, PartNumber: aws.Int32(1)}}},
	})
	if err == nil {
		versions = append(versions, out.VersionId)
	}
	return versions, refused(err)
}

// refused wants a request to have failed because its condition does not hold.
func refused(err error) error {
	switch {
	case err == nil:
		return errReplaced
	case statusOf(err) == http.StatusPreconditionFailed:
		return nil
	}
	return err
}
