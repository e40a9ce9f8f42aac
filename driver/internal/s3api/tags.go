package s3api

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// ReadTags requests the tags of an object if it has any. CopyObject copies tags by itself, but a multipart upload gets
// only the tags in its request.
func (b *Bucket) ReadTags(ctx context.Context, key string, a *s3object.Attributes) error {
	if !a.Tagged || a.Tags != nil {
		return nil
	}
	out, err := repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.GetObjectTaggingOutput, error) {
		return call(ctx, b, b.client.GetObjectTagging, &s3.GetObjectTaggingInput{Bucket: &b.Name, Key: &key})
	})
	if err != nil {
		return err
	}
	a.Tags = s3object.TagQuery(func(yield func(string, string) bool) {
		for _, tag := range out.TagSet {
			if !yield(aws.ToString(tag.Key), aws.ToString(tag.Value)) {
				return
			}
		}
	})
	return nil
}

// StoreTags adds the tags to an object that was just copied or uploaded in parts, if the server has ignored them
// (Profile.LosesTags) and can add them (Profile.TagRequests). The object is visible before it has its tags. If another
// client replaces it at the same time, its object may get them.
func (b *Bucket) StoreTags(ctx context.Context, key string, a *s3object.Attributes) error {
	if a.Tags == nil || !b.Profile.LosesTags || !b.Profile.TagRequests {
		return nil
	}
	values, err := url.ParseQuery(*a.Tags)
	if err != nil {
		return err
	}
	var set []types.Tag
	for key := range values {
		set = append(set, types.Tag{Key: &key, Value: aws.String(values.Get(key))})
	}
	in := &s3.PutObjectTaggingInput{Bucket: &b.Name, Key: &key, Tagging: &types.Tagging{TagSet: set}}
	_, err = repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.PutObjectTaggingOutput, error) {
		return call(ctx, b, b.client.PutObjectTagging, in)
	})
	return err
}
