package driver

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestSeenExpires lets time pass over what a session has seen.
func TestSeenExpires(t *testing.T) {
	const remember = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf("dir/a", "dir/b")
		f := New(t.Context(), s, "bucket", onAWS(&Options{Seen: NewSeen(remember)}))
		list := func() {
			t.Helper()
			entries, err := f.ReadDirSeq("dir")
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range entries {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		list()
		time.Sleep(remember - time.Second)
		if f.opts.Seen.file(f.bucket, "dir/a") == nil {
			t.Error("forgotten too early")
		}
		list()
		time.Sleep(2 * time.Second)
		if f.opts.Seen.file(f.bucket, "dir/a") != nil {
			t.Error("remembered for too long")
		}
	})
}

// TestSeenIsBounded lists more files than a session remembers.
func TestSeenIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf(numberedKeys(2 * maxSeenFiles)...)
		seen := NewSeen(time.Hour)
		if names, _, err := s.list(t.Context(), &Options{Seen: seen}); err != nil || len(names) != 2*maxSeenFiles {
			t.Fatalf("%d entries, %v", len(names), err)
		}
		if n := seen.count(); n != maxSeenFiles {
			t.Errorf("%d files are remembered, want %d", n, maxSeenFiles)
		}
		time.Sleep(2 * time.Hour) // and the bubble ends when the timer does
	})
}

// silentClient answers every request with nothing.
type silentClient struct{ Client }

func (silentClient) PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return nil, nil
}

func (silentClient) DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	return nil, nil
}

func (silentClient) DeleteObjects(context.Context, *s3.DeleteObjectsInput, ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error) {
	return nil, nil
}

func (silentClient) CopyObject(context.Context, *s3.CopyObjectInput, ...func(*s3.Options)) (*s3.CopyObjectOutput, error) {
	return nil, nil
}

func (silentClient) CompleteMultipartUpload(context.Context, *s3.CompleteMultipartUploadInput, ...func(*s3.Options)) (*s3.CompleteMultipartUploadOutput, error) {
	return nil, nil
}

// TestEveryWriteIsNoted goes through all requests of a client: what is not known to leave objects alone must be noted.
func TestEveryWriteIsNoted(t *testing.T) {
	harmless := []string{"Head", "Get", "List", "Create", "Upload", "Abort"} // parts are seen when they are put together
	log := NewRoute()
	client := reflect.ValueOf(Client(noter{silentClient{}, &log.writes}))
	of := reflect.TypeFor[Client]()
	for i := range of.NumMethod() {
		method := of.Method(i)
		if slices.ContainsFunc(harmless, func(verb string) bool { return strings.HasPrefix(method.Name, verb) }) {
			continue
		}
		in := reflect.New(method.Type.In(1).Elem())
		key := method.Name + "/key"
		if field := in.Elem().FieldByName("Delete"); field.IsValid() {
			field.Set(reflect.ValueOf(&types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("x")}, {Key: &key}}}))
		} else {
			in.Elem().FieldByName("Key").Set(reflect.ValueOf(&key))
		}
		in.Elem().FieldByName("Bucket").Set(reflect.ValueOf(aws.String("bucket")))
		before := log.writes.now()
		client.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
		if !log.writes.since("bucket", key, before+1) {
			t.Errorf("%s is not noted before and after", method.Name)
		}
		if at := log.writes.now(); log.writes.since("bucket", key, at) {
			t.Errorf("%s counts for what is seen later", method.Name)
		}
	}
}
