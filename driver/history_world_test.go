package driver_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// The buckets of every history. Names in steps refer to the first bucket, unless they begin with inOther.
const (
	historyBucket = "bucket"
	otherBucket   = "other"
	inOther       = "other:"
)

// placeOf returns the bucket and the key for a name in a step.
func placeOf(name string) (bucket, inside string) {
	if inside, other := strings.CutPrefix(name, inOther); other {
		return otherBucket, inside
	}
	return historyBucket, name
}

// nameOf returns the name in steps for a key. It is the inverse of placeOf.
func nameOf(bucket, key string) string {
	if bucket == otherBucket {
		return inOther + key
	}
	return key
}

var (
	errClientLost = errors.New("the client was lost")
	errSessionEnd = errors.New("the session ended")
)

// A world runs a history in a bubble of testing/synctest, where time is virtual.
type world struct {
	*history
	t        *testing.T
	s3       *s3sim.Server
	replicas map[int]*replica
	sessions []*session
	counted  atomic.Bool // the quotas have been counted

	model
}

// A replica is a process of the server: everything that its sessions share.
type replica struct {
	world    *world
	index    int
	ctx      context.Context
	cancel   context.CancelFunc
	journals map[string]*driver.Journal // by bucket
	opened   []*driver.Journal          // including the journals of sessions after a reload
	memory   *driver.Budget
	route    *driver.Endpoint
	usages   *driver.Usages
	quota    *driver.Usage // nil without a limit
	own      requests      // requests that belong to no session
	skew     time.Duration // how far its clock is ahead of the clock of S3
}

// requests counts the requests of an operation, so that the history can determine the duration and the fault of each
// one.
type requests struct {
	mu     sync.Mutex
	total  int
	counts map[string]int
}

// next returns the number of a request among all requests, and among the requests with the same name and key.
func (q *requests) next(o s3sim.Operation) (number, same int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.counts == nil {
		q.counts = map[string]int{}
	}
	name := o.Name + " " + steadyKey(o.Key)
	q.total++
	q.counts[name]++
	return q.total, q.counts[name]
}

// steadyKey returns a key without its random part.
func steadyKey(key string) string {
	if strings.HasPrefix(key, journal) {
		return path.Dir(key)
	}
	return key
}

// journal is the prefix of the keys of records.
const journal = ".babelftp/"

// A session is a session of a user on a replica.
type session struct {
	world   *world
	plan    sessionPlan
	replica *replica
	files   map[string]*drivertest.Fs // by bucket
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// The following fields are guarded by the mutex of the model.
	current  *operation
	reported map[string]int64 // size of the pending upload that was shown, by name
	over     bool
}

func newWorld(t *testing.T, h *history) *world {
	w := &world{history: h, t: t, replicas: map[int]*replica{}}
	known := false
	if w.profile, known = driver.ProfileNamed(h.Profile); !known {
		t.Fatalf("unknown profile %q", h.Profile)
	}
	if h.Opaque {
		w.profile.MD5ETags = false
	}
	w.init(w)
	w.s3 = s3sim.New(s3sim.Options{
		Conflicts: h.Conflicts, ForgetUploads: h.Forgets,
		Profile: w.profile, MinPartSize: historyPart, RefuseUnsupported: w.profile.Name == "strict", Observe: w.observe,
		Ahead: h.Ahead, PageSize: h.Page, TornReads: h.Torn, FailWhileEmptied: h.Emptying,
		AbortsOverlap: w.profile.PersistentUploads && !h.abortsUploads(),
	})
	for _, bucket := range []string{historyBucket, otherBucket} {
		w.s3.CreateBucket(bucket)
		if w.versions() != "" {
			w.setVersioning(bucket, types.BucketVersioningStatusEnabled)
		}
		if w.versions() == "locked" {
			w.lock(bucket)
		}
	}
	for _, plan := range h.Sessions {
		w.sessions = append(w.sessions, w.newSession(plan))
	}
	return w
}

// versions returns which versions the bucket keeps. Some servers do not support versioning.
func (w *world) versions() string {
	if w.profile.Name == "r2" || w.profile.Name == "aws-directory" {
		return ""
	}
	return w.Versions
}

func (w *world) setVersioning(bucket string, status types.BucketVersioningStatus) {
	_, err := w.s3.Client(nil).PutBucketVersioning(w.t.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// lock enables Object Lock with a default retention for a bucket.
func (w *world) lock(bucket string) {
	_, err := w.s3.Client(nil).PutObjectLockConfiguration(w.t.Context(), &s3.PutObjectLockConfigurationInput{
		Bucket: &bucket, ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{
				Mode: types.ObjectLockRetentionModeGovernance, Days: aws.Int32(1),
			}},
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) replica(index int) *replica {
	if r := w.replicas[index]; r != nil {
		return r
	}
	r := &replica{world: w, index: index, memory: driver.NewBudget(8 << 20), route: driver.NewEndpoint()}
	for _, plan := range w.Sessions {
		if plan.Replica == index {
			r.skew = plan.Skew
		}
	}
	r.ctx, r.cancel = context.WithCancel(w.t.Context())
	r.journals = r.newJournals()
	if w.Quota > 0 {
		r.usages = driver.NewUsages()
		r.quota, _ = r.usages.Of(r.client(nil), historyBucket, "")
	}
	w.replicas[index] = r
	go r.upkeep()
	return r
}

// upkeep removes interrupted uploads that sessions have replaced, as a server does every ten seconds.
func (r *replica) upkeep() {
	for {
		select {
		case <-time.After(10 * time.Second):
		case <-r.ctx.Done():
			return
		}
		r.world.mu.Lock()
		journals := slices.Clone(r.opened)
		r.world.mu.Unlock()
		for _, j := range journals {
			_ = j.RemoveChanged(r.ctx) // S3 may be unreachable
		}
	}
}

func (w *world) client(c *s3sim.Caller, optFns ...func(*s3.Options)) *s3.Client {
	return w.s3.Client(c, append(optFns, func(o *s3.Options) {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		if w.Emptying {
			s3client.RetryUnstored(w.Profile)(o)
		}
	})...)
}

func (w *world) newSession(plan sessionPlan) *session {
	r := w.replica(plan.Replica)
	s := &session{world: w, plan: plan, replica: r, reported: map[string]int64{}}
	s.ctx, s.cancel = context.WithCancelCause(r.ctx)
	s.open(r.journals)
	return s
}

// open opens the file systems of a session.
func (s *session) open(journals map[string]*driver.Journal) {
	w, r := s.world, s.replica
	opts := driver.Options{
		Objects: w.objects(), PartSize: max(historyPart, s.plan.Part), CopyLimit: w.Copies, Memory: r.memory,
		Endpoint: r.route, NoOverwrite: s.plan.NoOverwrite,
		Truncate: s.plan.Truncate, Owner: s.plan.Owner, Profile: w.profile,
	}
	if r.quota != nil {
		limits := []driver.Limit{{Usage: r.quota, Bytes: w.Quota}}
		opts.Quotas = driver.Quotas{Usages: r.usages, Limits: func() []driver.Limit { return limits }}
	}
	s.files = map[string]*drivertest.Fs{}
	for bucket, journal := range journals {
		opts.Journal = journal
		s.files[bucket] = drivertest.MustNewSteady(
			s.ctx, r.client(s.operation), bucket, opts.WithSmallestPart(historyPart))
	}
}

// file returns the file system and the path for a name in a step.
func (s *session) file(name string) (files *drivertest.Fs, inside string) {
	bucket, inside := placeOf(name)
	return s.files[bucket], inside
}

// newJournals returns the journals for sessions that begin from now on, for example after a reload of the
// configuration.
func (r *replica) newJournals() map[string]*driver.Journal {
	journals := map[string]*driver.Journal{}
	for _, bucket := range []string{historyBucket, otherBucket} {
		journals[bucket] = r.route.NewJournal(r.client(nil), bucket, "", r.world.profile, r.world.objects(), nil)
		if r.world.Abandoned > 0 {
			journals[bucket].SetAbandonedAfter(r.world.Abandoned)
		}
		r.world.mu.Lock()
		r.opened = append(r.opened, journals[bucket])
		r.world.mu.Unlock()
	}
	return journals
}

// client returns a client of the replica. Each request belongs to the operation that current returns, or to none if
// current is nil.
func (r *replica) client(current func() *operation) *s3.Client {
	caller := &s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
		op, _ := o.Tag.(*operation)
		return r.world.fault(r, op, o)
	}}
	if current != nil {
		caller.Tag = func() any { return current() }
	}
	return r.world.client(caller, func(o *s3.Options) { o.HTTPClient = connection{o.HTTPClient, r, current} })
}

func (s *session) operation() *operation {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return s.current
}

// fault returns the duration of a request, and the fault that the history has for it.
func (w *world) fault(r *replica, op *operation, o s3sim.Operation) s3sim.Fault {
	if r.ctx.Err() != nil {
		return s3sim.Fault{LoseRequest: true}
	}
	id, counter := -1-r.index, &r.own
	if op != nil {
		id, counter = op.ID, &op.requests
	}
	number, same := counter.next(o)
	hash := fnv.New64a()
	fmt.Fprint(hash, w.Seed, id, o.Name, steadyKey(o.Key), same)
	h := hash.Sum64()
	f := s3sim.Fault{
		Before: time.Millisecond + time.Duration(h%8_000_000), After: time.Millisecond + time.Duration(h>>24%8_000_000),
		Forget: h>>50%2 == 0,
	}
	if passed := time.Since(w.begun); w.Throttled > 0 && passed > throttledAfter &&
		passed < throttledAfter+w.Throttled {
		if op != nil {
			op.faulty.Store(true)
		}
		f.Status, f.Code = 503, "SlowDown"
		return f
	}
	if !w.Calm && h>>52%16 == 0 {
		f.Before += time.Duration(h >> 30 % 2_000_000_000)
	}
	if op != nil {
		w.addFaults(r, op, o, number, &f)
	}
	if out := r.outage(); out != nil && !out.Frozen {
		now := time.Since(w.begun)
		f.LoseRequest = f.LoseRequest || out.left(now) > 0 || out.left(now+f.Before) > 0
		if f.LoseResponse = f.LoseResponse || out.left(now+f.Before+f.After) > 0; op != nil && f.LoseResponse {
			op.faulty.Store(true)
		}
	}
	return f
}

// addFaults adds the faults that the history has for a request of an operation.
func (w *world) addFaults(r *replica, op *operation, o s3sim.Operation, number int, f *s3sim.Fault) {
	for _, fault := range op.Faults {
		if fault.Request != number && (fault.Kind != "refuse-three" || number < fault.Request || number > fault.Request+2) {
			continue
		}
		op.faulty.Store(true)
		switch fault.Kind {
		case "delay":
			f.Before += fault.Delay
		case "lose-request":
			f.LoseRequest = true
		case "lose-response":
			f.LoseResponse = true
		case "slow-down", "refuse-three":
			f.Status, f.Code, f.Performed = 503, "SlowDown", false
		case "too-many":
			f.Status, f.Code, f.Performed = 429, "TooManyRequests", false
		case "fail":
			f.Status, f.Code, f.Performed = 500, "InternalError", false
		case "fail-performed":
			f.Status, f.Code, f.Performed = 500, "InternalError", true
		case "fail-behind-ok", "fail-performed-behind-ok":
			f.Status, f.Code, f.Performed = 500, "InternalError", fault.Kind == "fail-performed-behind-ok"
			if o.Name == "CompleteMultipartUpload" || o.Name == "CopyObject" || o.Name == "UploadPartCopy" {
				f.Status = 200
			}
		case "cut":
			f.Cut = 100
		case "die":
			w.die(r)
			f.LoseResponse = true
		}
	}
}

// throttledAfter is the time that a history runs before S3 refuses all requests.
const throttledAfter = 20 * time.Millisecond

// die ends a replica: it sends no more requests and receives no more responses.
func (w *world) die(r *replica) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.cancel()
	for _, s := range w.sessions {
		if s.replica == r && s.current != nil {
			s.current.faulty.Store(true)
		}
	}
}

// run runs all sessions to their end, and checks what they leave.
func (w *world) run() {
	if w.Quota > 0 {
		for _, r := range w.replicas {
			if err := r.quota.Count(r.ctx); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	w.counted.Store(true)
	for _, step := range w.Steps {
		if step.First {
			w.sessions[step.Session].do(step)
		}
	}
	if w.versions() == "suspended" {
		w.setVersioning(historyBucket, types.BucketVersioningStatusSuspended)
		w.setVersioning(otherBucket, types.BucketVersioningStatusSuspended)
	}
	var sessions sync.WaitGroup
	for i, s := range w.sessions {
		sessions.Go(func() {
			for _, step := range w.Steps {
				if step.Session == i && !step.First && s.replica.ctx.Err() == nil && !s.over {
					time.Sleep(step.Wait)
					s.replica.awaken()
					s.do(step)
				}
			}
			s.end()
		})
	}
	sessions.Wait()
	if w.Cut != nil {
		time.Sleep(w.Cut.left(max(w.Cut.After, time.Since(w.begun))))
	}
	// A clock that is ahead delays sweeps. If S3 may still complete an upload, they keep its record for ten minutes.
	settle := settleTime + w.Abandoned + max(0, w.Ahead)
	if w.profile.PersistentUploads {
		settle += lateCompletion
	}
	time.Sleep(settle)
	w.finalChecks()
	for _, r := range w.replicas {
		r.cancel()
	}
	time.Sleep(settleTime) // until the background work has ended
}

// settleTime limits how long a replica may continue to work after its last session has ended.
const settleTime = 3 * time.Minute

func (s *session) end() {
	s.world.mu.Lock()
	s.over = true
	s.world.mu.Unlock()
	s.cancel(errSessionEnd)
}

// do runs a step.
func (s *session) do(step step) {
	op := s.world.begin(s, step)
	err := s.perform(op)
	s.world.finish(op, err)
}

const (
	writeNew    = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	writeOn     = os.O_WRONLY | os.O_CREATE
	writeAppend = os.O_WRONLY | os.O_CREATE | os.O_APPEND
)

func (s *session) perform(op *operation) error {
	files, name := s.file(op.Name)
	target, to := s.file(op.To)
	switch op.Do {
	case "stor":
		return s.write(op, writeNew, 0, s.world.fileOf(op.ID, op.Size))
	case "appe":
		return s.write(op, writeAppend, 0, s.world.fileOf(op.ID, op.Size))
	case "rest":
		return s.write(op, writeOn, int64(op.Offset), s.world.fileOf(op.ID, op.Size))
	case "resume", "resume-append":
		return s.resume(op)
	case "size":
		return s.size(op)
	case "read":
		return s.read(op)
	case "rename":
		return files.RenameTo(target, name, to)
	case "copy":
		return files.CopyTo(s.replica.ctx, target, name, to)
	case "remove":
		return files.RemoveFile(name)
	case "mkdir":
		return files.Mkdir(name, 0)
	case "rmdir":
		return files.RemoveDir(name)
	case "chtimes":
		return files.Chtimes(name, time.Time{}, time.Unix(1_000_000_000+int64(op.ID), 0))
	case "list":
		return s.list(op)
	case "cwd":
		_, err := files.StatDir(name)
		return err
	case "foreign-put", "foreign-delete", "foreign-restore":
		return s.world.foreign(s.replica.ctx, op)
	case "foreign-multipart":
		return s.world.foreignMultipart(s.replica.ctx, op)
	case "foreign-abort":
		return s.world.foreignAbort(s.replica.ctx, op)
	case "reload":
		s.open(s.replica.newJournals())
		s.world.mu.Lock()
		clear(s.reported)
		s.world.mu.Unlock()
		return nil
	case "sweep":
		age := cmp.Or(op.Age, settleTime)
		_, err := s.replica.journals[historyBucket].Sweep(s.replica.ctx, age)
		_, otherErr := s.replica.journals[otherBucket].Sweep(s.replica.ctx, age)
		return errors.Join(err, otherErr)
	case "quit":
		s.end()
		return nil
	case "die":
		s.world.die(s.replica)
		return nil
	}
	return fmt.Errorf("no step is called %q", op.Do)
}

// foreign runs an operation of another S3 client on a file, which does not know of the driver. It may also store the
// previous content of the file again, with the same ETag.
func (w *world) foreign(ctx context.Context, op *operation) error {
	client := w.client(&s3sim.Caller{Tag: func() any { return op }})
	bucket, key := placeOf(op.Name)
	if op.Do == "foreign-delete" {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
		return err
	}
	content := w.fileOf(op.ID, op.Size)
	if op.Do == "foreign-restore" {
		w.mu.Lock()
		states := w.alive(op.Name, 0, w.seq)
		w.mu.Unlock()
		before := slices.DeleteFunc(states[:len(states)-1], func(s state) bool { return !s.exists })
		if len(before) == 0 {
			return nil
		}
		content = before[len(before)-1].content
	}
	in := foreignAttributes(op.ID)
	in.Bucket, in.Key, in.Body = &bucket, &key, bytes.NewReader(content)
	_, err := client.PutObject(ctx, &in)
	return err
}

// foreignMultipart stores a file in two parts that no journal knows, or aborts the upload at the end.
func (w *world) foreignMultipart(ctx context.Context, op *operation) error {
	client, content := w.client(&s3sim.Caller{Tag: func() any { return op }}), w.fileOf(op.ID, op.Size)
	bucket, key := placeOf(op.Name)
	a := foreignAttributes(op.ID)
	upload, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &bucket, Key: &key, ContentType: a.ContentType, Metadata: a.Metadata, Tagging: a.Tagging,
		StorageClass: a.StorageClass, CacheControl: a.CacheControl,
	})
	if err != nil {
		return err
	}
	var completed types.CompletedMultipartUpload
	for number := int32(1); number <= 2; number++ {
		part := content
		if number == 1 {
			part = content[:min(historyPart, len(content))]
		}
		content = content[len(part):]
		out, err := client.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: &bucket, Key: &key, UploadId: upload.UploadId, PartNumber: &number, Body: bytes.NewReader(part),
		})
		if err != nil {
			return err
		}
		completed.Parts = append(completed.Parts, types.CompletedPart{PartNumber: &number, ETag: out.ETag})
		if len(content) == 0 {
			break
		}
		time.Sleep(op.Pause)
	}
	if op.Breaks {
		_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &bucket, Key: &key, UploadId: upload.UploadId,
		})
		return err
	}
	_, err = client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &bucket, Key: &key, UploadId: upload.UploadId, MultipartUpload: &completed,
	})
	return err
}

// abortsUploads reports whether the history aborts uploads that may be in the middle of being completed.
func (h *history) abortsUploads() bool {
	return slices.ContainsFunc(h.Steps, func(s step) bool { return s.Do == "foreign-abort" })
}

// foreignAbort aborts all uploads, as a lifecycle rule does.
func (w *world) foreignAbort(ctx context.Context, op *operation) error {
	client, bucket := w.client(&s3sim.Caller{Tag: func() any { return op }}), historyBucket
	for id, key := range w.s3.Uploads(historyBucket) {
		_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &bucket, Key: &key, UploadId: &id,
		})
		if err != nil && !s3error.HasCode(err, "NoSuchUpload") {
			return err
		}
	}
	return nil
}

// fileOf returns the content of the file that a step uploads. If all files begin with the same bytes, it is the content
// for step 0.
func (w *world) fileOf(id, size int) []byte {
	if w.Same {
		id = 0
	}
	return fileOf(id, size)
}

// fileOf returns the content of the file that a step uploads. Every eight bytes contain the number of the step and
// their offset.
func fileOf(id, size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%03d%04d.", id, i)
	}
	return b.Bytes()[:size]
}

// write uploads content. If the step says so, the client is lost in the middle.
func (s *session) write(op *operation, flag int, offset int64, content []byte) error {
	files, name := s.file(op.Name)
	f, err := files.OpenAt(name, flag, offset)
	if err != nil {
		return err
	}
	s.world.opened(op, content, !op.Breaks)
	if op.Breaks {
		content = content[:min(op.Cut, len(content))]
	}
	_, err = io.Copy(f, &sender{op: op, world: s.world, content: content, half: len(content) / 2})
	if op.Breaks {
		s.world.lost(op)
		f.(interface{ Abort(error) }).Abort(errClientLost)
	}
	closeErr := f.Close()
	if closeErr == nil && err != nil {
		return err
	}
	return closeErr
}

// paces is the number of pieces in which half a file arrives if it has a steady pace.
const paces = 15

// A sender is the client's end of a data connection.
type sender struct {
	op      *operation
	world   *world
	content []byte
	half    int
	paused  bool
}

func (c *sender) Read(p []byte) (int, error) {
	c.world.waitsForClient(c.op, true)
	defer c.world.waitsForClient(c.op, false)
	c.op.session.replica.awaken()
	defer c.op.session.replica.awaken()
	if c.op.Pause > 0 && !c.paused && len(c.content) <= c.half {
		c.paused = true
		select {
		case <-time.After(c.op.Pause):
		case <-c.op.session.replica.ctx.Done():
			return 0, errClientLost
		}
	}
	if len(c.content) == 0 {
		return 0, io.EOF
	}
	size := max(1, c.half)
	if c.op.Pace > 0 {
		size = max(1, c.half/paces)
		select {
		case <-time.After(c.op.Pace):
		case <-c.op.session.replica.ctx.Done():
			return 0, errClientLost
		}
	}
	n := copy(p, c.content[:min(len(c.content), size)])
	c.content = c.content[n:]
	c.world.sent(c.op, n)
	return n, nil
}

// resume resumes an interrupted upload as clients do: it requests the size first.
func (s *session) resume(op *operation) error {
	content := s.world.fileOf(op.Of, op.Size)
	files, name := s.file(op.Name)
	info, err := files.PendingUpload(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > int64(op.Size) {
		s.world.beginsAnew(op)
		return s.write(op, writeNew, 0, content)
	}
	if err != nil {
		return err
	}
	n := info.Size()
	s.world.sawPending(op, n)
	if op.Do == "resume" && n > 0 {
		return s.write(op, writeOn, n, content[n:])
	}
	return s.write(op, writeAppend, 0, content[n:])
}

func (s *session) size(op *operation) error {
	files, name := s.file(op.Name)
	info, err := files.PendingUpload(name)
	if err == nil {
		s.world.sawPending(op, info.Size())
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err = files.StatFile(name)
	if err == nil {
		s.world.sawFile(op, info.Size())
	}
	return err
}

func (s *session) read(op *operation) error {
	files, name := s.file(op.Name)
	f, err := files.OpenAt(name, os.O_RDONLY, int64(op.Offset))
	if err != nil {
		return err
	}
	defer f.Close()
	op.got, err = io.ReadAll(f)
	return err
}

func (s *session) list(op *operation) error {
	files, name := s.file(op.Name)
	entries, err := files.List(name)
	if err != nil {
		return err
	}
	for info, err := range entries {
		if err != nil {
			return err
		}
		if !info.IsDir() {
			op.names = append(op.names, path.Join(op.Name, info.Name()))
		}
	}
	slices.Sort(op.names)
	return nil
}

var _ afero.File // returned by OpenAt
