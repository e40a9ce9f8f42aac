package view

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// A bucket is a bucket on the server of the test.
type bucket struct {
	name   string
	client *s3.Client
}

// fill stores objects whose content is their key.
func (b *bucket) fill(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := b.client.PutObject(
			t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader(key)})
		must.OK(t, err)
	}
}

// A storage is a bucket and its file system.
type storage struct {
	*bucket
	*drivertest.Fs
}

// newStorage returns a new bucket with the file /dir/file and the empty directory /empty.
func newStorage(t *testing.T) storage {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	b := &bucket{s.Bucket(t), s.Client()}
	b.fill(t, "dir/file")
	files := drivertest.MustNew(t.Context(), b.client, b.name, nil)
	must.OK(t, files.Mkdir("/empty", 0))
	return storage{b, files}
}

// at mounts a bucket at "/".
func at(s storage) Mounts { return NewMounts(Mount{Dir: "/", Store: NewStore(s.Driver)}) }

// filesOf returns the files of a user with all rights.
func filesOf(t *testing.T, s storage, known *Directories) *Files {
	t.Helper()
	return (&View{Mounts: at(s), Directories: known}).For(t.Context(), nil)
}

// guarded returns the files of a user with a policy of one layer.
func guarded(t *testing.T, s storage, rules string) *Files {
	t.Helper()
	return (&View{
		Mounts: at(s), Directories: NewDirectories("/"), Policy: Policy{layer(rules)}, Form: norm.NFC.String,
	}).For(t.Context(), nil)
}

func closed[F io.Closer](f F, err error) error {
	if err != nil {
		return err
	}
	return f.Close()
}

// write stores a file.
func write(files *Files, name, content string) error {
	file, err := files.OpenWriter(name, os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, content); err != nil {
		return err
	}
	return file.Close()
}

// read returns the content of a file.
func read(files *Files, name string) (string, error) {
	file, err := files.OpenReader(name, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	return string(content), err
}
