// Package s3sim is an in-memory S3 server for tests. It enforces the rules of a [profile.Profile] and is strongly
// consistent. On request it delays, loses or rejects requests.
//
// A [Server] is an [http.Handler] that can serve over TCP. [Server.Client] calls it without a connection, so that
// it works in a testing/synctest bubble:
//
//	server := s3sim.New(s3sim.Options{Profile: profile})
//	client := server.Client(nil)
//
// A [Caller] injects a [Fault] into the requests of one client, and [Options.Observe] receives an [Event] for each
// request that took effect.
//
// The server accepts path-style requests and does not check signatures: it has no accounts, ACLs or policies.
// Unsupported operations fail with 501 NotImplemented. Bodies are checked against their length, Content-MD5,
// X-Amz-Content-Sha256, and every checksum header.
//
// Conditions that the profile does not support are ignored, as on servers that predate conditional requests.
// [Options.RefuseUnsupported] rejects them instead.
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

// S3 limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
const (
	minPartSize = 5 << 20
	maxPage     = 1000
	maxKeyBytes = 1024
)

// Options describe a server. The zero value is the strictest server with S3's own limits.
type Options struct {
	// Profile defines the server's capabilities and rules.
	Profile profile.Profile

	// RefuseUnsupported rejects conditions that the profile does not support with 501.
	RefuseUnsupported bool

	// MinPartSize is the minimum size in bytes of every part except the last. 0 means S3's own limit of 5 MiB.
	MinPartSize int64

	// Versioning enables versioning for every bucket. PutBucketVersioning enables or suspends it for one bucket.
	Versioning bool

	// ForgetUploads makes an AWS server respond with 404 NoSuchUpload when a client completes an upload again, as all
	// other servers do. By default AWS repeats its first response while the object of the upload is the current
	// version. It does not document for how long.
	ForgetUploads bool

	// Conflicts makes the server respond with 409 ConditionalRequestConflict if another write of the key takes
	// effect during a conditional write. Otherwise the condition is evaluated after the other write.
	Conflicts bool

	// TornReads mixes two objects in responses if reads are not atomic in the profile and one object replaced the other
	// while the request was in flight. HeadObject returns the new ETag with the old metadata. GetObject and
	// listings return the old ETag with the new content.
	TornReads bool

	// FailWhileEmptied makes a server with an EmptyDirectoryCode or FalseSuccess fail to store an object while a
	// directory above it loses its last object.
	FailWhileEmptied bool

	// AbortsOverlap lets CompleteMultipartUpload succeed although AbortMultipartUpload removed the upload while the
	// request was in flight. The object then has a size and an ETag but no content, and reading it fails with 409
	// BrokenMPU. Swift behaves like this.
	AbortsOverlap bool

	// Ahead is the time by which the server's clock is ahead.
	Ahead time.Duration

	// PageSize is the maximum number of entries on a page of a listing. 0 means S3's own limit of 1,000.
	PageSize int

	// Observe is called for every completed request in the order in which the requests took effect. It must not
	// call the server.
	Observe func(Event)
}

// An Operation identifies a request.
type Operation struct {
	Name                string // name in the SDK, such as "PutObject"
	Bucket, Key, Prefix string
	UploadID            string // ID of a multipart upload; for CreateMultipartUpload only in an [Event]
	Tag                 any    // result of [Caller.Tag] for the request
}

// A Fault disturbs a request. The zero value does nothing.
type Fault struct {
	Before, After time.Duration // delays of the request, and of the response

	LoseRequest  bool // break the connection before the request takes effect
	LoseResponse bool // break the connection after the request takes effect
	Forget       bool // drop the request if its client gives up during the delay Before

	Status int    // respond with this error instead of performing the request; also 200 with an error body
	Code   string // such as "SlowDown"

	Performed bool // perform the request before responding with Status

	Cut int64 // truncate longer response bodies to this size; 0 for none
}

// An Event describes a request that took effect.
type Event struct {
	Operation
	Time     time.Time
	Status   int
	Old, New *Object // before and after; a batch delete has an event for each key
	Source   *Object // for a copy
}

// An Object is one immutable version of an object.
type Object struct {
	Key, ETag, VersionID string
	Content              Content
	Modified             time.Time
	header               http.Header // stored with the object and returned
	checksum             checksum
	// part sizes of a multipart upload; nil for an object stored in one request
	parts    []int64
	tags     string    // encoded as a query
	retained time.Time // cannot be deleted before
	deleted  bool      // a delete marker
	broken   bool      // its parts were deleted
}

// Broken reports whether the parts were deleted while the object was assembled. See [Options.AbortsOverlap].
func (o *Object) Broken() bool { return o.broken }

// Metadata returns the value of a user metadata key, or "" if it is not set.
func (o *Object) Metadata(key string) string {
	if o == nil {
		return ""
	}
	return o.header.Get(metadataHeader + key)
}

// Attributes returns the stored headers, with the tags in X-Amz-Tagging.
func (o *Object) Attributes() http.Header {
	h := o.header.Clone()
	if o.tags != "" {
		h.Set("X-Amz-Tagging", o.tags)
	}
	return h
}

// Content is data in several slices. Completing an upload joins the slices of its parts without copying the data.
type Content [][]byte

// Size returns the number of bytes.
func (c Content) Size() (n int64) {
	for _, piece := range c {
		n += int64(len(piece))
	}
	return n
}

// Bytes returns the data in one slice.
func (c Content) Bytes() []byte { return slices.Concat(c...) }

// slice returns the bytes between two offsets.
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

// A Server is an in-memory S3 server. It is safe for concurrent use.
type Server struct {
	opts Options

	mu      sync.Mutex
	buckets map[string]*bucket
	serial  int   // last number used for versions, ETags and uploads
	newest  int64 // time in the newest version ID, in nanoseconds
}

type bucket struct {
	objects   map[string][]*Object // versions by key, the latest last; one per key without versioning
	keys      []string             // sorted; nil after a key was added or removed
	uploads   map[string]*upload
	completed map[string]completion // by upload ID
	unended   map[string]*upload    // completed uploads that can be completed again

	versioning string            // enabled or suspended; empty if never set
	lock       *defaultRetention // nil for a bucket without Object Lock
	changes    map[string]int    // number of changes by key
	empty      map[string]int    // how often each directory lost its last object
}

// New returns a server without buckets.
func New(opts Options) *Server {
	if opts.MinPartSize == 0 {
		opts.MinPartSize = minPartSize
	}
	opts.PageSize = cmp.Or(opts.PageSize, maxPage)
	return &Server{opts: opts, buckets: map[string]*bucket{}}
}

// CreateBucket creates a bucket unless it exists.
func (s *Server) CreateBucket(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buckets[name] == nil {
		s.buckets[name] = s.newBucket()
	}
}

// Forget removes a bucket and its contents.
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

// Put stores objects directly, without requests. Each needs a key and content. A zero ETag or time is filled in as
// for a request.
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

// Delete deletes objects directly, without requests.
func (s *Server) Delete(bucket string, keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		s.remove(s.buckets[bucket], key)
	}
}

// Objects returns the current objects of a bucket, sorted by key.
func (s *Server) Objects(bucket string) []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var objects []*Object
	for _, key := range s.buckets[bucket].sortedKeys() {
		if o := s.buckets[bucket].current(key); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// Uploads returns the keys of the open multipart uploads of a bucket by upload ID.
func (s *Server) Uploads(bucket string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]string{}
	for id, u := range s.buckets[bucket].uploads {
		open[id] = u.key
	}
	return open
}

// sortedKeys returns the sorted keys of all objects and delete markers.
func (b *bucket) sortedKeys() []string {
	if b.keys == nil {
		b.keys = slices.Sorted(maps.Keys(b.objects))
	}
	return b.keys
}

// current returns the current object of a key, or nil.
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

// now returns the server's time in whole seconds, as S3 reports it.
func (s *Server) now() time.Time { return time.Now().Add(s.opts.Ahead).UTC().Truncate(time.Second) }

// A Caller defines the faults and the tag of one client. Its fields may be nil.
type Caller struct {
	Fault func(Operation) Fault
	Tag   func() any
}

// SlowPages returns the faults of a [Caller] with a slow connection to a server that produces the pages of listings
// one at a time.
func SlowPages(roundTrip, page time.Duration) func(Operation) Fault {
	var mu sync.Mutex
	var busy time.Time // until this time
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

// Client returns a client that calls the server without a connection. The caller may be nil.
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

// direct implements [s3.HTTPClient] without a connection.
type direct struct {
	server *Server
	caller *Caller
}

// errLost is the error of a broken connection.
type errLost string

func (e errLost) Error() string { return "s3sim: connection lost " + string(e) }

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
	type result struct {
		reply *reply
		err   error
	}
	done := make(chan result, 1)
	work := func() {
		reply, err := d.server.exchange(ctx, q, f)
		done <- result{reply, err}
	}
	if f.Before+f.After > 0 {
		go work()
	} else {
		work()
	}
	select {
	case a := <-done:
		if a.err != nil {
			return nil, a.err
		}
		return d.server.response(a.reply, r, f.Cut), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange performs a request with a fault. The request continues after its client gave up.
func (s *Server) exchange(ctx context.Context, q *request, f Fault) (*reply, error) {
	q.before = s.before(q)
	q.changes, q.timesEmptied = s.countChanges(q)
	q.open = s.open(q)
	time.Sleep(f.Before)
	switch {
	case f.LoseRequest:
		return nil, errLost("before the request took effect")
	case f.Forget && ctx.Err() != nil:
		return nil, ctx.Err()
	}
	var result *reply
	if f.Status == 0 || f.Performed {
		result = s.decide(q)
	}
	if f.Status != 0 {
		result = refuse(f.Status, f.Code)
	}
	select {
	case <-time.After(f.After):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f.LoseResponse {
		return nil, errLost("after the request took effect")
	}
	return result, nil
}

// countChanges returns how often the key of a request was changed, and how often directories above it were emptied.
func (s *Server) countChanges(q *request) (changes, timesEmptied int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[q.Bucket]; b != nil {
		return b.changes[q.Key], b.timesEmptied(q.Key)
	}
	return 0, 0
}

// open returns the upload that a request completes, if aborting the upload does not stop the request.
func (s *Server) open(q *request) *upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.Bucket]
	if b == nil || q.Name != "CompleteMultipartUpload" || !s.opts.AbortsOverlap {
		return nil
	}
	return b.uploads[q.UploadID]
}

// before returns the current contents of the keys that a request may read, if its response may be torn.
func (s *Server) before(q *request) map[string]*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.Bucket]
	reads := q.Name == "HeadObject" || q.Name == "GetObject" || q.Name == "ListObjectsV2"
	if b == nil || !reads || !s.opts.TornReads || s.opts.Profile.AtomicReads {
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

// torn returns the object as seen by a request that arrived when the key still held another object.
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

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result, err := s.exchange(r.Context(), decode(r), Fault{})
	if err != nil {
		panic(http.ErrAbortHandler) // this breaks the connection
	}
	response := s.response(result, r, 0)
	defer response.Body.Close()
	maps.Copy(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	if _, err := io.Copy(w, response.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// A reply is a response of the server.
type reply struct {
	status int
	header http.Header
	body   Content
}

// response converts a reply into an HTTP response. If cut is not 0, its body ends with an error after that many
// bytes.
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

// broken is the end of a truncated body.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
