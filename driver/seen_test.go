package driver

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestSeenExpires lets time pass over what a session has seen.
func TestSeenExpires(t *testing.T) {
	const remember = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := distantShelf("dir/a", "dir/b")
		f := New(t.Context(), s, "bucket", &Options{Seen: NewSeen(remember)})
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
		for _, test := range []struct {
			after time.Duration
			want  int // requests in all
		}{{keepPage - 1, 1}, {keepPage + 1, 3}} {
			s.requests = 0
			if _, err := f.ReadDirSeq("dir"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(test.after)
			list()
			if test.after > keepPage {
				list()
			}
			if s.requests != test.want {
				t.Errorf("%d requests after %v, want %d", s.requests, test.after, test.want)
			}
		}
		time.Sleep(2 * remember)
		list()
		time.Sleep(remember - time.Second)
		if f.opts.Seen.file(f.bucket, "dir/a") == nil {
			t.Error("forgotten too early")
		}
		list()
		time.Sleep(2 * time.Second)
		if f.opts.Seen.file(f.bucket, "dir/a") != nil || f.opts.Seen.page != nil {
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
		if n := len(seen.files.infos); n != maxSeenFiles {
			t.Errorf("%d files are remembered, want %d", n, maxSeenFiles)
		}
		seen.forget() // and the bubble ends when the timer does
		time.Sleep(2 * time.Hour)
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

// TestEveryWriteForgets goes through all requests of a client: what is not known to leave objects alone must make a session forget.
func TestEveryWriteForgets(t *testing.T) {
	harmless := []string{"Head", "Get", "List", "Create", "Upload", "Abort"} // parts are seen when they are put together
	seen := NewSeen(0)
	client := reflect.ValueOf(Client(forgetter{silentClient{}, seen}))
	of := reflect.TypeFor[Client]()
	for i := range of.NumMethod() {
		method := of.Method(i)
		if slices.ContainsFunc(harmless, func(verb string) bool { return strings.HasPrefix(method.Name, verb) }) {
			continue
		}
		before := seen.now()
		client.MethodByName(method.Name).Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.New(method.Type.In(1).Elem())})
		if got := seen.now() - before; got != 2 {
			t.Errorf("%s forgets %d times, want 2: before and after", method.Name, got)
		}
	}
}
