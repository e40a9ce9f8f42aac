// Package drivertest is the conformance suite of package driver. It specifies what a file system must do on every S3
// server:
//
//	drivertest.Run(t, drivertest.Harness{Bucket: func(tb testing.TB) (*s3.Client, string) { ... }})
//
// The suite checks the bucket with the S3 client directly, not through the driver, and interferes with the requests of
// the driver through a [Spy]. If a server is known to lack something that S3 can do, its [Limits] contain the reason,
// and the suite expects an error. If its profile lacks a feature, the suite expects what the driver promises without
// this feature (see exceptions.go). No test is skipped.
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

// A Harness configures the suite for one S3 server.
type Harness struct {
	// Bucket creates an empty bucket that no other test uses, and returns a client for it. The client uses the retries
	// of the SDK. It must also repeat requests that the server has not performed (see EmptyDirectoryCode and
	// FalseSuccess in the profile).
	Bucket func(tb testing.TB) (*s3.Client, string)

	// Limits contains what the server is known not to support.
	Limits Limits

	// Profile is the profile of the server. For missing features, the suite expects what docs/guarantees.md promises
	// without them (see exceptions.go).
	Profile driver.Profile

	// PartSize is the size of the parts of uploads in bytes, which should be the minimum that the server accepts. 0
	// means 5 MiB, the minimum of S3.
	PartSize int

	// New replaces [driver.New] for a server that accepts smaller parts than S3. The default is driver.New.
	New func(driver.Client, string, *driver.Options) (*driver.Fs, error)

	// OnlyProfile skips groups that take long and do not depend on the profile. Set it for all simulators except one.
	OnlyProfile bool

	// Groups are the groups of the suite to run. The default is all groups.
	Groups []string
}

// Limits maps each limit of a server to the reason.
type Limits map[Limit]string

// A Limit is something that S3 supports and some servers do not.
type Limit string

const (
	// FileBesideDirectory is set if the server refuses to store an object "a" together with an object "a/b".
	FileBesideDirectory Limit = "file-beside-directory"

	// ListFileBesideDirectory is set if the server stores "a/b" when an object "a" exists, but does not list it.
	ListFileBesideDirectory Limit = "list-file-beside-directory"

	// LongSegments is set if the server refuses a key with more than 255 bytes between two slashes.
	LongSegments Limit = "long-segments"

	// FullKeys is set if the server refuses a key of 1,024 bytes.
	FullKeys Limit = "full-keys"

	// LongDirectories is set if the server refuses the marker of a directory whose name has more than 240 bytes.
	LongDirectories Limit = "long-directories"

	// ReasonOfRefusal is set if the server may respond with 500 to a name that it refuses, instead of a reason.
	ReasonOfRefusal Limit = "reason-of-refusal"

	// ListControlCharacters is set if the server stores keys with characters that XML cannot represent, but lists
	// other characters instead of percent-encoding them.
	ListControlCharacters Limit = "list-control-characters"

	// Versions is set if the server does not support versioning.
	Versions Limit = "versions"

	// Encryption is set if the server does not encrypt objects.
	Encryption Limit = "encryption"

	// EncryptionRequests is set if the server refuses requests to encrypt an object.
	EncryptionRequests Limit = "encryption-requests"

	// StorageClasses is set if the server refuses storage classes other than STANDARD.
	StorageClasses Limit = "storage-classes"

	// Tags is set if the server refuses tags.
	Tags Limit = "tags"
)

// Servers with these limits refuse website redirects, or the checksums of parts.
const (
	Redirections     Limit = "redirections"
	ChecksumsOfParts Limit = "checksums-of-parts"
)

// has reports whether the server has a limit.
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
	same := []string{"names", "download", "memory", "afero"} // groups that do not depend on the profile
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
		{"promise", testPromise},
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

// A fixture is a file system in an empty bucket, with the test that uses it.
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

// open returns a fixture. By default, its part size is the minimum. opts may be nil.
func (h Harness) open(t *testing.T, opts *driver.Options) *fixture {
	t.Helper()
	client, bucket := h.Bucket(t)
	x := h.fixture(t, client, bucket)
	x.spy = NewSpy(client)
	if h.Profile.UnframedHeads { // requests of the suite must not break requests of the driver
		x.client = s3.New(client.Options(), func(o *s3.Options) {
			o.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
		})
	}
	x.Fs = x.session(t.Context(), opts)
	return x
}

// fixture returns a fixture without a file system.
func (h Harness) fixture(t *testing.T, client *s3.Client, bucket string) *fixture {
	return &fixture{
		T: t, client: client, bucket: bucket, limits: h.Limits, profile: h.Profile, partSize: h.PartSize, newFs: h.New,
	}
}

// session opens another file system in the same bucket.
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

// serverPatience limits how long a server repeats a request.
const serverPatience = 25 * time.Second

// attempts is the number of times that the file systems of tests send a request. It is just high enough for the tests
// in which some attempts fail before one succeeds.
const attempts = 4

// retries returns the retries for the file systems of tests. They do not need long pauses.
func retries() s3api.Retries {
	return s3api.Retries{Attempts: attempts, LongestPause: time.Millisecond}
}

// MustNew is [driver.New] for tests with valid options. It panics on errors, so that it works on any goroutine.
func MustNew(ctx context.Context, client driver.Client, bucket string, opts *driver.Options) *Fs {
	return mustNew(s3api.WithRetries(ctx, retries()), client, bucket, opts)
}

// MustNewSteady is like MustNew, but with the retries of a real server, except for random pauses.
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

// run runs a subtest with the same bucket.
func (x *fixture) run(name string, f func(x *fixture)) {
	x.Run(name, func(t *testing.T) {
		sub := *x
		sub.T = t
		f(&sub)
	})
}

// put stores an object with the S3 client.
func (x *fixture) put(key string, content []byte) {
	x.Helper()
	_, err := x.client.PutObject(
		x.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(content)})
	if err != nil {
		x.Fatalf("put %q: %v", key, err)
	}
}

// putAll stores empty objects with the S3 client.
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

// head requests the attributes of an object with the S3 client.
func (x *fixture) head(key string) *s3.HeadObjectOutput {
	x.Helper()
	out, err := x.client.HeadObject(x.Context(), &s3.HeadObjectInput{Bucket: &x.bucket, Key: &key})
	if err != nil {
		x.Fatalf("head %q: %v", key, err)
	}
	return out
}

// exists reports whether an object exists, even if the server does not list it.
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

// keys returns the sorted keys of the bucket, which it lists with the S3 client.
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

// wantNoUploads checks that no multipart upload to key is open. MinIO lists uploads only for a given key.
func (x *fixture) wantNoUploads(key string) {
	x.Helper()
	if n := len(x.uploads(key)); n != 0 {
		x.Errorf("%d multipart uploads to %q are open", n, key)
	}
}

// uploads returns the open multipart uploads to key.
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

// WriteAt opens a file for writing at an offset, writes to it and closes it.
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

// list lists a directory through the driver. The names of directories end with a slash.
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

// wantList compares the content of a directory, including its order if the server sorts listings.
func (x *fixture) wantList(name string, want ...string) {
	x.Helper()
	x.sortUnlessListed(want)
	got := x.list(name)
	x.sortUnlessListed(got)
	if !slices.Equal(got, want) {
		x.Errorf("%q holds %q, want %q", name, got, want)
	}
}

// sortUnlessListed sorts names if the server does not.
func (x *fixture) sortUnlessListed(names []string) {
	if x.hasException(unorderedListings) {
		slices.Sort(names)
	}
}

// wantContent compares the content of an object. For large objects, it only shows the position of the first difference.
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

// wantNoError reports an error and continues the test.
func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// errorOf returns the error of a function that has another result too.
func errorOf[T any](_ T, err error) error { return err }

// wantError checks the kind of an error. nil means that there must be no error.
func wantError(t testing.TB, err error, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want %v", err, kind)
	}
}

// random returns pseudo-random bytes. The result is the same for the same size.
func random(size int) []byte {
	const step = 4099 // distance between the positions for two consecutive sizes; a prime
	all := randomBytes()
	from := size * step % (len(all) / 4)
	return bytes.Clone(all[from:][:size])
}

// randomBytes returns the bytes that [random] uses. They are generated once, because the suite needs some gigabytes.
var randomBytes = sync.OnceValue(func() []byte {
	const most = 64 << 20
	content := make([]byte, most)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // never fails
	return content
})

// numbered returns n keys in order.
func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return keys
}

// readerOnly hides WriteTo, because a network connection does not have it either.
type readerOnly struct{ io.Reader }
