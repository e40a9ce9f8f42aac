package s3test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"
)

// Below returns a client whose buckets are directories below a prefix of one real bucket, so that tests have their
// own buckets inside a bucket that others use too. The bucket names are numbers. The client refuses every request
// that affects more than the keys below the prefix. It also refuses keys that the prefix makes too long, because
// some servers accept them.
func Below(client *s3.Client, bucket, prefix string) *s3.Client {
	o, b := client.Options(), below{bucket, prefix}
	o.ExpressCredentials = nil
	o.APIOptions = append(slices.Clone(o.APIOptions), b.add)
	return s3.New(o)
}

type below struct{ bucket, prefix string }

// belowOperations returns the operations that stay below the prefix because they name a key or a key prefix.
func belowOperations() []string {
	return []string{
		"AbortMultipartUpload", "CompleteMultipartUpload", "CopyObject", "CreateMultipartUpload", "DeleteObject",
		"DeleteObjects", "GetObject", "GetObjectTagging", "HeadObject", "ListMultipartUploads", "ListObjectVersions",
		"ListObjectsV2", "ListParts", "PutObject", "PutObjectTagging", "RestoreObject", "UploadPart", "UploadPartCopy",
	}
}

func (b below) add(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Below", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
		if !slices.Contains(belowOperations(), stack.ID()) {
			return out, metadata, &smithy.GenericAPIError{
				Code: "NotImplemented", Message: fmt.Sprintf("%s would concern the whole bucket", stack.ID()),
			}
		}
		parameters, name := b.enter(in.Parameters)
		if _, err := strconv.Atoi(name); err != nil {
			return out, metadata, refusal(http.StatusNotFound, "NoSuchBucket")
		}
		if key := reflect.ValueOf(parameters).Elem().FieldByName("Key"); key.IsValid() {
			if value, _ := stringOf(key); len(value) > maxKey {
				return out, metadata, refusal(http.StatusBadRequest, "KeyTooLongError")
			}
		}
		dir := b.prefix + name + "/"
		out, metadata, err = next.HandleInitialize(ctx, middleware.InitializeInput{Parameters: parameters})
		if err == nil && out.Result != nil {
			leave(reflect.ValueOf(out.Result).Elem(), dir)
		}
		return out, metadata, err
	}), middleware.Before)
}

// maxKey is the maximum size of an S3 key in bytes.
const maxKey = 1024

// refusal returns an S3 error made by the client itself.
func refusal(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: "the client of the tests refuses it"},
	}
}

// enter returns a copy of an input with the real bucket and keys, together with the original bucket name.
func (b below) enter(in any) (parameters any, name string) {
	made := reflect.New(reflect.TypeOf(in).Elem())
	fields := made.Elem()
	fields.Set(reflect.ValueOf(in).Elem())
	text := func(name string) *string {
		if field := fields.FieldByName(name); field.IsValid() {
			return field.Interface().(*string)
		}
		return nil
	}
	name = aws.ToString(text("Bucket"))
	dir := b.prefix + name + "/"
	fields.FieldByName("Bucket").Set(reflect.ValueOf(&b.bucket))
	for _, name := range []string{"Key", "KeyMarker", "StartAfter"} {
		if value := text(name); value != nil {
			fields.FieldByName(name).Set(reflect.ValueOf(aws.String(dir + *value)))
		}
	}
	if field := fields.FieldByName("Prefix"); field.IsValid() {
		field.Set(reflect.ValueOf(aws.String(dir + aws.ToString(text("Prefix")))))
	}
	if source := text("CopySource"); source != nil {
		fields.FieldByName("CopySource").Set(
			reflect.ValueOf(aws.String(b.bucket + "/" + b.prefix + strings.TrimPrefix(*source, "/"))))
	}
	if in, ok := in.(*s3.DeleteObjectsInput); ok && in.Delete != nil {
		all := *in.Delete
		all.Objects = slices.Clone(all.Objects)
		for i, object := range all.Objects {
			all.Objects[i].Key = aws.String(dir + aws.ToString(object.Key))
		}
		fields.FieldByName("Delete").Set(reflect.ValueOf(&all))
	}
	return made.Interface(), name
}

// leave removes the directory from the keys and prefixes of an output.
func leave(fields reflect.Value, dir string) {
	for _, name := range []string{"Key", "Prefix", "KeyMarker", "NextKeyMarker", "StartAfter"} {
		field := fields.FieldByName(name)
		if value, ok := stringOf(field); ok {
			field.Set(reflect.ValueOf(aws.String(withoutDirectory(value, dir))))
		}
	}
	for _, name := range []string{
		"Contents", "CommonPrefixes", "Versions", "DeleteMarkers", "Uploads", "Deleted", "Errors",
	} {
		if list := fields.FieldByName(name); list.IsValid() {
			for i := range list.Len() {
				leave(list.Index(i), dir)
			}
		}
	}
}

func stringOf(field reflect.Value) (string, bool) {
	if !field.IsValid() {
		return "", false
	}
	value, ok := field.Interface().(*string)
	return aws.ToString(value), ok && value != nil
}

// withoutDirectory removes dir from a key, which may be percent-encoded.
func withoutDirectory(key, dir string) string {
	if rest, found := strings.CutPrefix(key, dir); found {
		return rest
	}
	return strings.TrimPrefix(key, strings.ReplaceAll(dir, "/", "%2F"))
}

// RemoveBelow deletes all objects and versions below a prefix and aborts all uploads there. The prefix must end in
// a slash.
func RemoveBelow(ctx context.Context, client *s3.Client, bucket, prefix string) error {
	if !strings.HasSuffix(prefix, "/") || prefix == "/" {
		return fmt.Errorf("refusing to remove everything below %q", prefix)
	}
	remove := func(versions []types.ObjectVersion) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(16)
		for _, v := range versions {
			group.Go(func() error {
				if !strings.HasPrefix(aws.ToString(v.Key), prefix) {
					return fmt.Errorf("the listing of %q has the key %q", prefix, aws.ToString(v.Key))
				}
				_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{
					Bucket: &bucket, Key: v.Key, VersionId: v.VersionId,
				})
				return err
			})
		}
		return group.Wait()
	}
	for {
		page, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &prefix})
		if err != nil {
			return err
		}
		if len(page.Contents) == 0 {
			break
		}
		var objects []types.ObjectVersion
		for _, object := range page.Contents {
			objects = append(objects, types.ObjectVersion{Key: object.Key})
		}
		if err := remove(objects); err != nil {
			return err
		}
	}
	uploads, err := client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &bucket, Prefix: &prefix})
	if err != nil {
		return err
	}
	for _, upload := range uploads.Uploads {
		if !strings.HasPrefix(aws.ToString(upload.Key), prefix) {
			continue
		}
		_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId,
		})
		if err != nil {
			return err
		}
	}
	for {
		page, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &prefix})
		if err != nil || len(page.Versions)+len(page.DeleteMarkers) == 0 {
			return nil //nolint:nilerr // the server keeps no versions
		}
		for _, m := range page.DeleteMarkers {
			page.Versions = append(page.Versions, types.ObjectVersion{Key: m.Key, VersionId: m.VersionId})
		}
		if err := remove(page.Versions); err != nil {
			return err
		}
	}
}
