package s3api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// Restore configures how archived objects are restored. The zero value restores none.
type Restore struct {
	Days int32      // for how many days a restored object can be read
	Tier types.Tier // how fast objects are restored
}

// A RestoringError reports that S3 is restoring an object. Its kind is [s3error.Archived].
type RestoringError struct{ Ready time.Time }

func (e *RestoringError) Error() string {
	return fmt.Sprintf("S3 is restoring the object from its archive, probably until %s", e.Ready.UTC().Format(time.RFC3339))
}

// Unwrap returns the kind.
func (*RestoringError) Unwrap() error { return s3error.Archived }

var _ contract.RestoringError = (*RestoringError)(nil)

// ReadyAt returns when the object can probably be read.
func (e *RestoringError) ReadyAt() time.Time { return e.Ready }

// Restore asks S3 to restore an archived object, unless S3 is already restoring it. In both cases the error is a
// [RestoringError].
func (b *Bucket) Restore(ctx context.Context, key string, r Restore) error {
	object, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key})
	if err != nil {
		return err
	}
	restoring := &RestoringError{time.Now().Add(r.longest(object))}
	if strings.Contains(aws.ToString(object.Restore), `ongoing-request="true"`) {
		return restoring
	}
	in := &s3.RestoreObjectInput{Bucket: &b.Name, Key: &key, RestoreRequest: &types.RestoreRequest{
		Days: &r.Days, GlacierJobParameters: &types.GlacierJobParameters{Tier: r.Tier},
	}}
	if b.isPast {
		in.VersionId = object.VersionId
	}
	if object.StorageClass == types.StorageClassIntelligentTiering { // objects in this class stay restored
		in.RestoreRequest.Days = nil
	}
	_, err = repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.RestoreObjectOutput, error) {
		return call(ctx, b, b.client.RestoreObject, in)
	})
	if err != nil && !s3error.HasCode(err, "RestoreAlreadyInProgress") {
		return err
	}
	return restoring
}

// IsArchived reports whether the storage class requires that S3 restores an object before it can be read or copied. The
// object may have been restored already.
func (v *Version) IsArchived() bool {
	return v.StorageClass == types.StorageClassGlacier || v.StorageClass == types.StorageClassDeepArchive
}

// CheckRestored returns [s3error.Archived] if an archived object has not been restored yet. A missing object is not an
// error.
func (b *Bucket) CheckRestored(ctx context.Context, key string) error {
	object, err := b.headObject(ctx, &s3.HeadObjectInput{Key: &key})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && !strings.Contains(aws.ToString(object.Restore), `ongoing-request="false"`):
		return s3error.New(s3error.Archived, "the object is archived; restore it first")
	}
	return err
}

// longest returns how long S3 takes at most to restore an object:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/restoring-objects-retrieval-options.html
func (r Restore) longest(object *s3.HeadObjectOutput) time.Duration {
	deep := object.StorageClass == types.StorageClassDeepArchive ||
		object.ArchiveStatus == types.ArchiveStatusDeepArchiveAccess
	switch {
	case r.Tier == types.TierBulk && deep:
		return 48 * time.Hour
	case r.Tier == types.TierBulk, deep:
		return 12 * time.Hour
	case r.Tier == types.TierExpedited:
		return 5 * time.Minute
	}
	return 5 * time.Hour
}
