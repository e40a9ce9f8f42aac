// Package s3sim is an S3 server in memory, for tests. It enforces the rules of a [profile.Profile], and is strongly
// consistent. It delays, loses or refuses requests where a test asks for that.
//
// It is an [http.Handler], which can serve over TCP. [Server.Client] reaches it without a connection, so that it
// works in a bubble of testing/synctest:
//
//	server := s3sim.New(s3sim.Options{Profile: profile})
//	client := server.Client(nil)
//
// It takes path-style requests, and does not check signatures: there are no accounts, ACLs and policies. Operations
// that it lacks are refused with 501 NotImplemented. It compares bytes with their length, with Content-MD5, with
// X-Amz-Content-Sha256, and with each checksum that comes as a header.
//
// It ignores a condition that the profile lacks, as servers do that are older than conditional requests. With
// [Options.RefuseUnsupported] it refuses the request.
package s3sim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/profile"
)

// Region is the region of every bucket.
const Region = "us-east-1"

// S3's limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	minPartSize = 5 << 20
	maxPage     = 1000
	maxKeyBytes = 1024
)

// Options says what a server is like. The zero value is the strictest server, with S3's own limits.
type Options struct {
	// Profile is what the server can do, and its rules.
	Profile profile.Profile

	// RefuseUnsupported makes the server answer 501 to a condition that the profile lacks.
	RefuseUnsupported bool

	// MinPartSize is the least number of bytes of each part but the last. 0 stands for S3's own 5 MiB.
	MinPartSize int64

	// Versioning makes every bucket a versioned one. PutBucketVersioning does the same to one, and can suspend it.
	Versioning bool

	// Forgets makes the server of AWS answer 404 NoSuchUpload to CompleteMultipartUpload of an upload that is complete,
	// as all others do. AWS does not say for how long it knows such an upload, and gives the first answer again, while
	// the object of the upload is the current one of its key.
	Forgets bool

	// Conflicts makes the server answer 409 ConditionalRequestConflict to a conditional write while which another
	// write of the key took effect. Without Conflicts the condition is judged by what the other write has left.
	Conflicts bool

	// Torn makes answers hold parts of two objects where the reads of the profile are not atomic. One has replaced
	// the other since the request came. HeadObject has the ETag of the new one and the rest of the old one. GetObject
	// and listings have the ETag of the old one and the rest of the new one.
	Torn bool

	// Emptying makes a server with an EmptyDirectoryCode, or with FalseSuccess, not perform a request that stores
	// an object while a directory above it loses its last one.
	Emptying bool

	// Overlapping makes CompleteMultipartUpload take effect although AbortMultipartUpload has removed the upload since
	// the request came. The object then has its size and its ETag, and no bytes: to read it gets 409 BrokenMPU. Swift
	// does so.
	Overlapping bool

	// Ahead is by how much the clock of the server is ahead.
	Ahead time.Duration

	// PageSize is how many entries a page of a listing has at most. 0 stands for S3's own 1,000.
	PageSize int

	// Observe gets every request that the server has decided, in the order in which they took effect. It must not
	// call the server.
	Observe func(Event)
}

// An Operation is a request.
type Operation struct {
	Name                string // as the SDK calls it: "PutObject"
	Bucket, Key, Prefix string
	UploadID            string // of a multipart upload; of one that begins, in an [Event] only
	Tag                 any    // what [Caller.Tag] has returned when the request was made
}

// A Fault is what goes wrong with a request. The zero value is nothing.
type Fault struct {
	Before, After time.Duration // delays before it takes effect, and before its answer

	LoseRequest bool // the connection breaks before the request takes effect
	LoseAnswer  bool // the connection breaks after it has
	Forget      bool // it does not take effect when its client gives up during the delay before

	Status int    // answered with the code instead of performing the request; 0 for none. 200 has an error in its body.
	Code   string // "SlowDown"

	Performed bool // the request takes effect all the same, and is answered with Status

	Cut int64 // the answer ends after so many bytes of a body that is longer; 0 for none
}

// An Event is a request that the server has decided.
type Event struct {
	Operation
	Time     time.Time
	Status   int
	Old, New *Object // before and after; one of several keys has an event of its own
	Source   *Object // of a copy
}

// An Object is a version of an object. It never changes.
type Object struct {
	Key, ETag, VersionID string
	Content              Content
	Modified             time.Time
	header               http.Header // that is stored with it and returned
	checksum             checksum
	// the sizes of the parts of a multipart upload, nil for an object that came by one request
	parts    []int64
	tags     string    // a query
	retained time.Time // it cannot be deleted before
	deleted  bool      // a delete marker
	broken   bool      // its parts have been deleted
}

// Broken reports whether the parts of the object were deleted while it was made of them, see [Options.Overlapping].
func (o *Object) Broken() bool { return o.broken }

// Metadata returns a value of user metadata, empty where there is none.
func (o *Object) Metadata(key string) string {
	if o == nil {
		return ""
	}
	return o.header.Get(metadataHeader + key)
}

// Attributes are the headers that are stored with the object, and its tags in X-Amz-Tagging.
func (o *Object) Attributes() http.Header {
	h := o.header.Clone()
	if o.tags != "" {
		h.Set("X-Amz-Tagging", o.tags)
	}
	return h
}

// Content is bytes in several slices, so that parts become an object without a copy.
type Content [][]byte

// Size is how many bytes there are.
func (c Content) Size() (n int64) {
	for _, piece := range c {
		n += int64(len(piece))
	}
	return n
}

// Bytes joins the pieces.
func (c Content) Bytes() []byte { return slices.Concat(c...) }

// slice is the bytes from one offset to another.
func (c Content) slice(from, to int64) Content {
	var out Content
	for _, piece := range c {
		size := int64(len(piece))
		if from < size && to > 0 {
			out = append(out, piece[max(from, 0):min(to, size)])
		}
		from, to = from-size, to-size
	}
	return out
}

func (c Content) reader() io.Reader {
	readers := make([]io.Reader, len(c))
	for i, piece := range c {
		readers[i] = bytes.NewReader(piece)
	}
	return io.MultiReader(readers...)
}

// A Server is an S3 server in memory. It is safe for concurrent use.
type Server struct {
	opts Options

	mu      sync.Mutex
	buckets map[string]*bucket
	serial  int   // of versions, ETags and uploads
	newest  int64 // the time in the ID of a version, in nanoseconds
}

type bucket struct {
	objects   map[string][]*Object // by key; the latest last, the only one without versioning
	keys      []string             // in order; nil after one has come or gone
	uploads   map[string]*upload
	completed map[string]completion // by the ID of the upload
	unended   map[string]*upload    // that were completed, and can be once more

	versioning string            // enabled or suspended; empty before
	lock       *defaultRetention // nil for a bucket without Object Lock
	changes    map[string]int    // how often each key was changed
	empty      map[string]int    // how often each directory has lost its last object
}

// New returns a server without buckets.
func New(opts Options) *Server {
	if opts.MinPartSize == 0 {
		opts.MinPartSize = minPartSize
	}
	opts.PageSize = cmp.Or(opts.PageSize, maxPage)
	return &Server{opts: opts, buckets: map[string]*bucket{}}
}

// CreateBucket makes a bucket.
func (s *Server) CreateBucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] == nil {
		s.buckets[name] = s.newBucket()
	}
}

// Forget removes a bucket with all that it holds.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.buckets, name)
}

func (s *Server) newBucket() *bucket {
	b := &bucket{
		objects: map[string][]*Object{}, uploads: map[string]*upload{}, completed: map[string]completion{},
		unended: map[string]*upload{}, changes: map[string]int{},
		empty: map[string]int{},
	}
	if s.opts.Versioning {
		b.versioning = enabled
	}
	return b
}

// Put stores objects without requests, each with its key and content. A zero ETag or time is what a request would have
// given.
func (s *Server) Put(bucket string, objects ...Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		o.header = http.Header{}
		o.ETag = cmp.Or(o.ETag, s.etag(o.header, o.Content))
		if o.Modified.IsZero() {
			o.Modified = s.now()
		}
		s.store(s.buckets[bucket], &o)
	}
}

// Delete deletes objects without requests.
func (s *Server) Delete(bucket string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.remove(s.buckets[bucket], key)
	}
}

// Objects are the objects of a bucket in the order of their keys.
func (s *Server) Objects(bucket string) []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []*Object
	for _, key := range s.buckets[bucket].ordered() {
		if o := s.buckets[bucket].current(key); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// Uploads are the keys of the multipart uploads of a bucket that are open, by their IDs.
func (s *Server) Uploads(bucket string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]string{}
	for id, u := range s.buckets[bucket].uploads {
		open[id] = u.key
	}
	return open
}

// ordered is the keys of all objects and delete markers in order.
func (b *bucket) ordered() []string {
	if b.keys == nil {
		b.keys = slices.Sorted(maps.Keys(b.objects))
	}
	return b.keys
}

// current is the object of a key, nil where there is none.
func (b *bucket) current(key string) *Object {
	versions := b.objects[key]
	if n := len(versions); n > 0 && !versions[n-1].deleted {
		return versions[n-1]
	}
	return nil
}

// next returns an unused number.
func (s *Server) next() string {
	s.serial++
	return fmt.Sprintf("%08d", s.serial)
}

// now returns the time as S3 shows it, in whole seconds.
func (s *Server) now() time.Time { return time.Now().Add(s.opts.Ahead).UTC().Truncate(time.Second) }

// A Caller is a client with faults and a tag of its own. Its fields may be nil.
type Caller struct {
	Fault func(Operation) Fault
	Tag   func() any
}

// SlowPages returns the faults of a [Caller] whose server is a round trip away, and makes one page of a listing after
// another.
func SlowPages(roundTrip, page time.Duration) func(Operation) Fault {
	var mu sync.Mutex
	var busy time.Time // until then
	return func(o Operation) Fault {
		if o.Name != "ListObjectsV2" {
			return Fault{After: roundTrip}
		}
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); busy.Before(now) {
			busy = now
		}
		busy = busy.Add(page)
		return Fault{After: time.Until(busy) + roundTrip}
	}
}

// Client returns a client that reaches the server without a connection. The caller may be nil.
func (s *Server) Client(c *Caller, optFns ...func(*s3.Options)) *s3.Client {
	if c == nil {
		c = &Caller{}
	}
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://s3sim.invalid"),
		Region:       Region,
		Credentials:  credentials.NewStaticCredentialsProvider("s3sim", "s3sim", ""),
		HTTPClient:   direct{s, c},
		UsePathStyle: true,
	}, optFns...)
}

// direct is an [s3.HTTPClient].
type direct struct {
	server *Server
	caller *Caller
}

// errLost is a connection that broke.
type errLost string

func (e errLost) Error() string { return "s3sim: connection lost " + string(e) }

// Do implements [s3.HTTPClient].
func (d direct) Do(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	q := decode(r)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.caller.Tag != nil {
		q.Tag = d.caller.Tag()
	}
	var f Fault
	if d.caller.Fault != nil {
		f = d.caller.Fault(q.Operation)
	}
	type answer struct {
		reply *reply
		err   error
	}
	answered := make(chan answer, 1)
	work := func() {
		reply, err := d.server.exchange(ctx, q, f)
		answered <- answer{reply, err}
	}
	if f.Before+f.After > 0 {
		go work()
	} else {
		work()
	}
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, a.err
		}
		return d.server.response(a.reply, r, f.Cut), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange performs a request with its fault. A request continues when its client has given up.
func (s *Server) exchange(ctx context.Context, q *request, f Fault) (*reply, error) {
	q.before = s.before(q)
	q.changes, q.emptyings = s.changes(q)
	q.open = s.open(q)
	time.Sleep(f.Before)
	switch {
	case f.LoseRequest:
		return nil, errLost("before the request took effect")
	case f.Forget && ctx.Err() != nil:
		return nil, ctx.Err()
	}
	var answer *reply
	if f.Status == 0 || f.Performed {
		answer = s.decide(q)
	}
	if f.Status != 0 {
		answer = refuse(f.Status, f.Code)
	}
	select {
	case <-time.After(f.After):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.LoseAnswer {
		return nil, errLost("after the request took effect")
	}
	return answer, nil
}

// changes is how often the key of a request has been changed, and a directory above it emptied.
func (s *Server) changes(q *request) (changes, emptyings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[q.Bucket]; b != nil {
		return b.changes[q.Key], b.emptyings(q.Key)
	}
	return 0, 0
}

// open is the upload that a request completes, where an abort does not end that.
func (s *Server) open(q *request) *upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.Bucket]
	if b == nil || q.Name != "CompleteMultipartUpload" || !s.opts.Overlapping {
		return nil
	}
	return b.uploads[q.UploadID]
}

// before returns what the keys that a request may read hold when it comes, where its answer may be torn.
func (s *Server) before(q *request) map[string]*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.Bucket]
	reads := q.Name == "HeadObject" || q.Name == "GetObject" || q.Name == "ListObjectsV2"
	if b == nil || !reads || !s.opts.Torn || s.opts.Profile.AtomicReads {
		return nil
	}
	before := map[string]*Object{}
	for key := range b.objects {
		if o := b.current(key); o != nil && (q.Key == key || q.Key == "" && strings.HasPrefix(key, q.Prefix)) {
			before[key] = o
		}
	}
	return before
}

// torn is an object as a request sees it that came when its key held another one.
func (q *request) torn(o *Object) *Object {
	old := q.before[o.Key]
	if old == nil {
		return o
	}
	from, etag := o, old.ETag
	if q.Name == "HeadObject" {
		from, etag = old, o.ETag
	}
	seen := *from
	seen.ETag = etag
	return &seen
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.exchange(r.Context(), decode(r), Fault{})
	if err != nil {
		panic(http.ErrAbortHandler) // which breaks the connection
	}
	response := s.response(answer, r, 0)
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// A reply is an answer.
type reply struct {
	status int
	header http.Header
	body   Content
}

// response is the answer as an HTTP client gets it. Its body ends with an error after cut bytes unless cut is 0.
func (s *Server) response(a *reply, r *http.Request, cut int64) *http.Response {
	size := a.body.Size()
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Date", s.now().Format(http.TimeFormat))
	header.Set("X-Amz-Request-Id", "s3sim")
	if header.Get("Content-Length") == "" && a.status != http.StatusNoContent {
		header.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	body := a.body.reader()
	length := size
	switch {
	case r.Method == http.MethodHead:
		body = strings.NewReader("")
		length, _ = strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	case cut > 0 && cut < size:
		body = io.MultiReader(a.body.slice(0, cut).reader(), broken{})
	}
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: length, Request: r,
	}
}

// broken is the end of a body that is cut.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
