// Package drivertest is the conformance suite of package driver: what a file system over S3 must do on every S3
// server.
//
//	drivertest.Run(t, drivertest.Harness{Bucket: func(tb testing.TB) (*s3.Client, string) { ... }})
//
// It looks at the bucket with the S3 client itself, not through the driver, and interferes with requests by a [Spy].
// Where a server is known to be less than S3, its [Limits] say so and the suite expects the refusal. Where its
// profile lacks a feature, the suite wants what the driver promises without it. No test is skipped.
package drivertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A Harness is an S3 server to run the suite on.
type Harness struct {
	// Bucket makes an empty bucket that no other test uses, and returns a client for it. The client's retries are the
	// SDK's. It also sends requests again that the server has not performed, see the profile's EmptyDirectoryCode and
	// FalseSuccess.
	Bucket func(tb testing.TB) (*s3.Client, string)

	// Limits is what the server is known not to do.
	Limits Limits

	// Profile is the server's. Without a feature the suite wants what docs/guarantees.md promises without it: see
	// exceptions.go.
	Profile driver.Profile

	// PartSize is how many bytes the parts of uploads have: the fewest that the server takes. 0 stands for 5 MiB, which
	// are the fewest of S3.
	PartSize int

	// New is [driver.New] for a server that takes smaller parts than S3 does. The default is driver.New.
	New func(driver.Client, string, *driver.Options) (*driver.Fs, error)

	// OnlyProfile leaves out what takes long and is the same with every profile. It is for all simulators but one.
	OnlyProfile bool

	// Groups are the groups of the suite to run. None stands for all.
	Groups []string
}

// Limits maps what S3 does and a server does not to the reason.
type Limits map[Limit]string

// A Limit is something that S3 does and a server may not do.
type Limit string

const (
	// FileBesideDirectory is an object "a" and an object "a/b". A server with this limit refuses the second of them.
	FileBesideDirectory Limit = "file-beside-directory"

	// ListFileBesideDirectory is to list "a/b" where there is an object "a". A server with this limit stores it and
	// hides it.
	ListFileBesideDirectory Limit = "list-file-beside-directory"

	// LongSegments is a key with more than 255 bytes between two slashes. A server with this limit refuses it.
	LongSegments Limit = "long-segments"

	// FullKeys is a key with 1,024 bytes. A server with this limit refuses it.
	FullKeys Limit = "full-keys"

	// LongDirectories is a directory whose name has more than 240 bytes. A server with this limit refuses its marker.
	LongDirectories Limit = "long-directories"

	// ReasonOfRefusal is to say that it is the name which is refused. A server with this limit may answer 500.
	ReasonOfRefusal Limit = "reason-of-refusal"

	// ListControlCharacters is to list keys with characters that XML cannot hold, in percent-encoding. A server with
	// this limit stores them and lists other characters in their place.
	ListControlCharacters Limit = "list-control-characters"

	// Versions is to keep versions of objects in buckets that ask for it. A server with this limit refuses to.
	Versions Limit = "versions"

	// Encryption is to encrypt objects with keys that the server has. A server with this limit stores them as they are.
	Encryption Limit = "encryption"

	// EncryptionRequests is to take a request to encrypt. A server with this limit refuses it.
	EncryptionRequests Limit = "encryption-requests"

	// StorageClasses is to take a storage class other than STANDARD. A server with this limit refuses it.
	StorageClasses Limit = "storage-classes"

	// Tags is to take tags. A server with this limit refuses them.
	Tags Limit = "tags"
)

// Redirections and ChecksumsOfParts are to take a redirection of a website, and the checksums of parts. A server with
// one of these limits refuses it.
const (
	Redirections     Limit = "redirections"
	ChecksumsOfParts Limit = "checksums-of-parts"
)

// has tells whether the server has a limit.
func (l Limits) has(limit Limit) bool {
	_, limited := l[limit]
	return limited
}

// Run runs the suite as subtests.
func Run(t *testing.T, h Harness) {
	h.PartSize = cmp.Or(h.PartSize, s3api.MinPartSize)
	if h.New == nil {
		h.New = driver.New
	}
	same := []string{"names", "download", "memory", "afero"} // with every profile
	for _, group := range []struct {
		name string
		run  func(*testing.T, Harness)
	}{
		{"names", testNames},
		{"stat", testStat},
		{"list", testList},
		{"read", testRead},
		{"download", testDownload},
		{"write", testWrite},
		{"append", testAppend},
		{"restart", testRestart},
		{"no-overwrite", testNoOverwrite},
		{"other-bucket", testOtherBucket},
		{"unpublished", testUnpublished},
		{"reconcile", testReconcile},
		{"repeat", testRepeat},
		{"aborted", testAborted},
		{"aborted-while-stored", testAbortedWhileStored},
		{"memory", testMemory},
		{"quota", testQuota},
		{"journal", testJournal},
		{"resume", testResume},
		{"inspect", testInspect},
		{"mkdir", testMkdir},
		{"remove", testRemove},
		{"rename", testRename},
		{"copy", testCopy},
		{"races", testRaces},
		{"torn-reads", testTornReads},
		{"hash", testHash},
		{"object-attributes", testObjectAttributes},
		{"list-times", testListTimes},
		{"times", testTimes},
		{"requests", testRequests},
		{"afero", testAfero},
	} {
		if h.OnlyProfile && slices.Contains(same, group.name) ||
			len(h.Groups) > 0 && !slices.Contains(h.Groups, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			t.Parallel() // most groups wait more than they compute
			group.run(t, h)
		})
	}
}

// A fixture is a file system over an empty bucket, and the test it is for.
type fixture struct {
	*testing.T
	client  *s3.Client
	bucket  string
	spy     *Spy
	limits  Limits
	profile driver.Profile

	partSize int
	newFs    func(driver.Client, string, *driver.Options) (*driver.Fs, error)
	*Fs
}

// open makes a fixture. Its parts are as small as S3 has them unless opts say otherwise; opts may be nil.
func (h Harness) open(t *testing.T, opts *driver.Options) *fixture {
	t.Helper()
	client, bucket := h.Bucket(t)
	x := h.fixture(t, client, bucket)
	x.spy = NewSpy(client)
	if h.Profile.UnframedHeads { // the looks of the suite must not break requests of the driver
		x.client = s3.New(client.Options(), func(o *s3.Options) {
			o.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
		})
	}
	x.Fs = x.session(t.Context(), opts)
	return x
}

// fixture is one without a file system.
func (h Harness) fixture(t *testing.T, client *s3.Client, bucket string) *fixture {
	return &fixture{
		T: t, client: client, bucket: bucket, limits: h.Limits, profile: h.Profile, partSize: h.PartSize, newFs: h.New,
	}
}

// session opens another file system over the same bucket.
func (x *fixture) session(ctx context.Context, opts *driver.Options) *Fs {
	var o driver.Options
	if opts != nil {
		o = *opts
	}
	if o.PartSize == 0 {
		o.PartSize = int64(x.partSize)
	}
	if o.Profile == (driver.Profile{}) {
		o.Profile = x.profile
	}
	f, err := x.newFs(x.spy, x.bucket, &o)
	if err != nil {
		panic(err)
	}
	return Bind(s3api.WithRetries(ctx, retries()), f)
}

// serverPatience is for how long a server repeats a request.
const serverPatience = 25 * time.Second

// attempts is how often the file systems of tests make a request. It is more often than a test lets one fail before
// it works, and no more.
const attempts = 4

// retries are those of file systems of tests. A server that a test breaks needs no rest.
func retries() s3api.Retries {
	return s3api.Retries{Attempts: attempts, LongestPause: time.Millisecond}
}

// MustNew is [driver.New] for tests, whose options are in range. It panics for others, also on a goroutine that is
// not the test's.
func MustNew(ctx context.Context, client driver.Client, bucket string, opts *driver.Options) *Fs {
	return mustNew(s3api.WithRetries(ctx, retries()), client, bucket, opts)
}

// MustNewSteady is MustNew with the retries of the server, but for their random pauses.
func MustNewSteady(ctx context.Context, client driver.Client, bucket string, opts *driver.Options) *Fs {
	return mustNew(s3api.WithRetries(ctx, s3api.Retries{Patience: serverPatience, Steady: true}), client, bucket, opts)
}

func mustNew(ctx context.Context, client driver.Client, bucket string, opts *driver.Options) *Fs {
	f, err := driver.New(client, bucket, opts)
	if err != nil {
		panic(err)
	}
	return Bind(ctx, f)
}

// run runs a subtest over the same bucket.
func (x *fixture) run(name string, f func(x *fixture)) {
	x.Run(name, func(t *testing.T) {
		sub := *x
		sub.T = t
		f(&sub)
	})
}

// put writes an object with the S3 client.
func (x *fixture) put(key string, content []byte) {
	x.Helper()
	_, err := x.client.PutObject(
		x.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(content)})
	if err != nil {
		x.Fatalf("put %q: %v", key, err)
	}
}

// putAll writes empty objects with the S3 client.
func (x *fixture) putAll(keys ...string) {
	x.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, key := range keys {
		group.Go(func() error {
			_, err := x.client.PutObject(x.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: &key})
			return err
		})
	}
	x.must(group.Wait())
}

// object reads an object with the S3 client.
func (x *fixture) object(key string) []byte {
	x.Helper()
	out, err := x.client.GetObject(x.Context(), &s3.GetObjectInput{Bucket: &x.bucket, Key: &key})
	if err != nil {
		x.Fatalf("get %q: %v", key, err)
	}
	content, err := io.ReadAll(out.Body)
	if err != nil {
		x.Fatalf("get %q: %v", key, err)
	}
	return content
}

// head asks for the attributes of an object with the S3 client.
func (x *fixture) head(key string) *s3.HeadObjectOutput {
	x.Helper()
	out, err := x.client.HeadObject(x.Context(), &s3.HeadObjectInput{Bucket: &x.bucket, Key: &key})
	if err != nil {
		x.Fatalf("head %q: %v", key, err)
	}
	return out
}

// exists tells whether there is an object, also one that the server does not list.
func (x *fixture) exists(key string) bool {
	x.Helper()
	_, err := x.client.HeadObject(x.Context(), &s3.HeadObjectInput{Bucket: &x.bucket, Key: &key})
	var notFound *types.NotFound
	if err != nil && !errors.As(err, &notFound) {
		x.Fatalf("head %q: %v", key, err)
	}
	return err == nil
}

// delete deletes an object with the S3 client.
func (x *fixture) delete(key string) {
	x.Helper()
	if _, err := x.client.DeleteObject(x.Context(), &s3.DeleteObjectInput{Bucket: &x.bucket, Key: &key}); err != nil {
		x.Fatalf("delete %q: %v", key, err)
	}
}

// keys lists the keys of the bucket with the S3 client, and sorts them.
func (x *fixture) keys() []string {
	x.Helper()
	keys := []string{}
	pages := s3.NewListObjectsV2Paginator(
		x.client, &s3.ListObjectsV2Input{Bucket: &x.bucket, EncodingType: types.EncodingTypeUrl})
	for pages.HasMorePages() {
		page, err := pages.NextPage(x.Context())
		x.must(err)
		for _, object := range page.Contents {
			key := *object.Key
			if page.EncodingType == types.EncodingTypeUrl {
				if key, err = url.QueryUnescape(key); err != nil {
					x.Fatal(err)
				}
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (x *fixture) wantKeys(want ...string) {
	x.Helper()
	slices.Sort(want)
	if got := x.keys(); !slices.Equal(got, want) {
		x.Errorf("the bucket has the keys %q, want %q", got, want)
	}
}

// wantNoUploads checks that no multipart upload to key is open. MinIO lists uploads of a given key only.
func (x *fixture) wantNoUploads(key string) {
	x.Helper()
	if n := len(x.uploads(key)); n != 0 {
		x.Errorf("%d multipart uploads to %q are open", n, key)
	}
}

// uploads are the multipart uploads to key that are open.
func (x *fixture) uploads(key string) []types.MultipartUpload {
	x.Helper()
	out, err := x.client.ListMultipartUploads(
		x.Context(), &s3.ListMultipartUploadsInput{Bucket: &x.bucket, Prefix: &key})
	x.must(err)
	return out.Uploads
}

// abortUploads aborts all multipart uploads to key.
func (x *fixture) abortUploads(key string) {
	x.Helper()
	for _, u := range x.uploads(key) {
		in := &s3.AbortMultipartUploadInput{Bucket: &x.bucket, Key: u.Key, UploadId: u.UploadId}
		if _, err := x.client.AbortMultipartUpload(x.Context(), in); err != nil {
			x.Error(err)
		}
	}
}

// write writes a file through the driver.
func (x *fixture) write(name string, content []byte) {
	x.Helper()
	if err := x.tryWrite(name, content); err != nil {
		x.Fatalf("write %q: %v", name, err)
	}
}

func (x *fixture) tryWrite(name string, content []byte) error {
	x.Helper()
	f, err := x.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

func (x *fixture) tryAppend(name string, content []byte) error {
	x.Helper()
	return WriteAt(x.Fs, name, os.O_CREATE|os.O_APPEND, 0, content)
}

// WriteAt opens a file for writing from an offset on, writes to it and closes it.
func WriteAt(f *Fs, name string, flag int, offset int64, content []byte) error {
	file, err := f.OpenAt(name, os.O_WRONLY|flag, offset)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// read reads a file through the driver.
func (x *fixture) read(name string) []byte {
	x.Helper()
	f, err := x.Open(name)
	if err != nil {
		x.Fatalf("open %q: %v", name, err)
	}
	defer x.close(f)
	content, err := io.ReadAll(f)
	if err != nil {
		x.Fatalf("read %q: %v", name, err)
	}
	return content
}

func (x *fixture) close(f io.Closer) {
	x.Helper()
	wantNoError(x, f.Close())
}

// list lists a directory through the driver. Names of directories end with a slash.
func (x *fixture) list(name string) []string {
	x.Helper()
	entries, err := x.List(name)
	if err != nil {
		x.Fatalf("list %q: %v", name, err)
	}
	names := []string{}
	for info, err := range entries {
		if err != nil {
			x.Fatalf("list %q: %v", name, err)
		}
		names = append(names, entryName(info))
	}
	return names
}

func entryName(info fs.FileInfo) string {
	if info.IsDir() {
		return info.Name() + "/"
	}
	return info.Name()
}

// wantList compares a directory, in its order where the server lists in order.
func (x *fixture) wantList(name string, want ...string) {
	x.Helper()
	x.sortUnlessListed(want)
	got := x.list(name)
	x.sortUnlessListed(got)
	if !slices.Equal(got, want) {
		x.Errorf("%q holds %q, want %q", name, got, want)
	}
}

// sortUnlessListed sorts names where the server lists in no order.
func (x *fixture) sortUnlessListed(names []string) {
	if x.hasException(unorderedListings) {
		slices.Sort(names)
	}
}

// wantContent compares an object with what it should hold. It shows no more of large ones than where they differ.
func (x *fixture) wantContent(key string, want []byte) {
	x.Helper()
	equal(x, "object "+key, x.object(key), want)
}

func equal(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s has %d bytes, want %d; they differ from byte %d on", what, len(got), len(want), at)
}

// must ends the test if there is an error.
func (x *fixture) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// wantNoError goes on if there is an error.
func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// errorOf is the error of a function that returns something else too.
func errorOf[T any](_ T, err error) error { return err }

// wantError checks what kind of error it is, for which name. No kind stands for no error.
func wantError(t testing.TB, err error, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error is %v, want %v", err, kind)
	}
}

// random returns bytes that repeat for the same size only.
func random(size int) []byte {
	const step = 4099 // between the places of two sizes, a prime
	all := randomBytes()
	from := size * step % (len(all) / 4)
	return bytes.Clone(all[from:][:size])
}

// randomBytes are what [random] takes its bytes from, made once: the suite needs some gigabytes.
var randomBytes = sync.OnceValue(func() []byte {
	const most = 64 << 20
	content := make([]byte, most)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // never fails
	return content
})

// numbered returns n keys in their order.
func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return keys
}

// readerOnly hides the WriteTo of a reader, which a connection has not.
type readerOnly struct{ io.Reader }
