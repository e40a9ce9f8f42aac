package clients

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// TestEveryWriteIsNoted goes through all requests of a client: what is not known to leave objects alone must be noted.
func TestEveryWriteIsNoted(t *testing.T) {
	// parts are seen when they are put together
	harmless := []string{"Head", "Get", "List", "Create", "Upload", "Abort"}
	log := NewWriteLog()
	client := reflect.ValueOf(Invalidating(silentClient{}, log))
	of := reflect.TypeFor[s3api.Client]()
	for i := range of.NumMethod() {
		method := of.Method(i)
		if slices.ContainsFunc(harmless, func(verb string) bool { return strings.HasPrefix(method.Name, verb) }) {
			continue
		}
		in := reflect.New(method.Type.In(1).Elem())
		key := method.Name + "/key"
		if field := in.Elem().FieldByName("Delete"); field.IsValid() {
			field.Set(
				reflect.ValueOf(&types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("x")}, {Key: &key}}}))
		} else {
			in.Elem().FieldByName("Key").Set(reflect.ValueOf(&key))
		}
		in.Elem().FieldByName("Bucket").Set(reflect.ValueOf(aws.String("bucket")))
		before := log.Now()
		client.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
		if !log.Since("bucket", key, before+1) {
			t.Errorf("%s is not noted before and after", method.Name)
		}
		if at := log.Now(); log.Since("bucket", key, at) {
			t.Errorf("%s counts for what is seen later", method.Name)
		}
	}
}

// silentClient answers every request with nothing.
type silentClient struct{ s3api.Client }

func (silentClient) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return nil, nil
}

func (silentClient) DeleteObject(
	context.Context, *s3.DeleteObjectInput, ...func(*s3.Options),
) (*s3.DeleteObjectOutput, error) {
	return nil, nil
}

func (silentClient) DeleteObjects(
	context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options),
) (*s3.DeleteObjectsOutput, error) {
	return nil, nil
}

func (silentClient) CopyObject(
	context.Context, *s3.CopyObjectInput, ...func(*s3.Options),
) (*s3.CopyObjectOutput, error) {
	return nil, nil
}

func (silentClient) CompleteMultipartUpload(
	context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options),
) (*s3.CompleteMultipartUploadOutput, error) {
	return nil, nil
}
