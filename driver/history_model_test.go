package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A model follows the state of each object in the order in which requests took effect, and checks each change against
// the operation that caused it. It does not have to guess the order of simultaneous operations, because the simulator
// reports it.
type model struct {
	world   *world
	profile driver.Profile

	begun time.Time

	mu         sync.Mutex
	seq        int // number of the last request that took effect
	versions   map[string][]state
	uploads    map[string]*operation // the operations that created them, by upload ID
	operations []*operation
	violation  *violation
}

// A violation is a broken promise.
type violation struct{ kind, text string }

func (v *violation) String() string { return v.kind + ": " + v.text }

// A state is the state of a key after a request.
type state struct {
	from       int
	exists     bool
	content    []byte
	mtime      string     // set by MFMT, in the metadata
	attributes string     // other attributes
	stored     time.Time  // by the clock of S3, in whole seconds
	by         *operation // nil for the server itself
	began      *operation // the operation that created the upload, if there was one
}

// An operation is a step that is running or has ended.
type operation struct {
	step
	session  *session
	requests requests
	faulty   atomic.Bool // a fault affects one of its requests

	// The following fields are guarded by the mutex of the model.
	start, end int // numbers of the last request before it began and before it ended
	ended      bool
	err        error

	published [][]byte            // the contents that it has written, in order
	copied    map[string][][]byte // the contents that it has written, by the key from which they were copied
	copiedAt  map[string]int      // number of the last such request
	moved     []string            // keys that it has copied and then deleted

	headed map[string]int // last HEAD request by key
	listed map[string]int // last listing by prefix

	// The following fields belong to uploads.
	content   []byte // content that the client has
	wholly    bool   // the client sends the whole content
	sent      int
	lost      bool // the client is lost
	takenOver bool // the upload was taken over by the server or by a session that may do so

	stalledTo    int       // number of bytes when its record last said that it has stalled
	deadFrom     time.Time // when it counts as dead if its record is not written again; zero if it has no record
	openedAt     int
	waiting      time.Time // since when it has been waiting for its client; zero if it is not waiting
	reportedSize int64     // size of the pending upload that was reported to its session
	sizeReported bool

	// The following fields are results.
	size  int64
	got   []byte
	names []string
}

func (m *model) init(w *world) {
	m.world, m.begun = w, time.Now()
	m.versions, m.uploads = map[string][]state{}, map[string]*operation{}
}

// trace prints an event if tracing is enabled.
func (m *model) trace(format string, args ...any) {
	if *historyTrace {
		m.world.t.Logf("%v "+format, append([]any{time.Since(m.begun)}, args...)...)
	}
}

func (m *model) begin(s *session, step step) *operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trace("%d step %d (%s %q %q) begins", m.seq, step.ID, step.Do, step.Name, step.To)
	op := &operation{
		step: step, session: s, start: m.seq, copied: map[string][][]byte{}, copiedAt: map[string]int{},
		headed: map[string]int{}, listed: map[string]int{},
	}
	op.reportedSize, op.sizeReported = s.reported[step.Name]
	m.operations = append(m.operations, op)
	s.current = op
	return op
}

// opened records that a file was opened for the content of a client.
func (m *model) opened(op *operation, content []byte, wholly bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.content, op.wholly, op.openedAt = content, wholly, m.seq
}

func (m *model) sent(op *operation, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.sent += n
}

func (m *model) waitsForClient(op *operation, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.waiting = time.Time{}
	if waits {
		op.waiting = time.Now()
	}
}

// lost records that the client of an upload is lost.
func (m *model) lost(op *operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.lost = true
}

// sawFile records that a session has seen a file, so that it no longer expects a pending upload.
func (m *model) sawFile(op *operation, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.size = size
	delete(op.session.reported, op.Name)
}

// beginsAnew records that an upload must not resume another one.
func (m *model) beginsAnew(op *operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.sizeReported = false
}

// sawPending records that a session has seen a pending upload. No session may see an upload that is live, that belongs
// to another user, or that has all bytes of its client, because the client would then send no more.
func (m *model) sawPending(op *operation, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.session.reported[op.Name] = n
	op.reportedSize, op.sizeReported = n, true
	if m.profile.Name == "" {
		return
	}
	fits := false
	for _, other := range m.interrupted(op) {
		fits = fits || int64(len(other)) > n
	}
	if !fits {
		m.violate(
			"live-upload-shown",
			"step %d was shown a pending upload of %q of %d bytes, and none was interrupted whose client has sent more",
			op.ID, op.Name, n)
	}
}

func (m *model) violate(kind, format string, args ...any) {
	if m.violation == nil {
		m.violation = &violation{kind, fmt.Sprintf(format, args...)}
	}
}

// alive returns the states that a key had between two requests.
func (m *model) alive(key string, from, to int) []state {
	states := []state{{}}
	for _, s := range m.versions[key] {
		switch {
		case s.from <= from:
			states[0] = s
		case s.from <= to:
			states = append(states, s)
		}
	}
	return states
}

// stateOf returns the new state of a key with this object.
func (m *model) stateOf(o *s3sim.Object, by, began *operation) state {
	s := state{
		from: m.seq, exists: o != nil, content: bytesOf(o), mtime: o.Metadata("mtime"), attributes: m.attributesOf(o),
		by: by, began: began,
	}
	if o != nil {
		s.stored = o.Modified
	}
	return s
}

func bytesOf(o *s3sim.Object) []byte {
	if o == nil {
		return nil
	}
	return o.Content.Bytes()
}

// observe checks a request that took effect.
func (m *model) observe(e s3sim.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seq++
	op, _ := e.Tag.(*operation)
	isRecord := strings.HasPrefix(e.Key, journal)
	if e.Key != "" {
		e.Key = nameOf(e.Bucket, e.Key)
	} else {
		e.Prefix = nameOf(e.Bucket, e.Prefix)
	}
	m.trace("%d %s %q %s: %d", m.seq, e.Name, e.Key+e.Prefix, e.UploadID, e.Status)
	switch e.Name {
	case "HeadObject", "GetObject":
		if op != nil {
			op.headed[e.Key] = m.seq
		}
		return
	case "ListObjectsV2":
		if op != nil {
			op.listed[e.Prefix] = m.seq
		}
		return
	case "CreateMultipartUpload":
		m.uploads[e.UploadID] = op
		return
	case "UploadPart", "UploadPartCopy", "AbortMultipartUpload":
		m.touched(e, op)
		return
	case "CompleteMultipartUpload":
		m.touched(e, op)
	case "PutObject", "CopyObject", "DeleteObject", "DeleteObjects":
	default:
		return
	}
	if e.Status >= 300 || e.Old == e.New {
		return
	}
	if isRecord {
		m.recorded(e)
		return
	}
	m.check(e, op)
	m.versions[e.Key] = append(m.versions[e.Key], m.stateOf(e.New, op, m.uploads[e.UploadID]))
	m.checkQuota(e, op)
}

// recorded follows the record of an upload. If the record says that the upload has stalled, another session may take it
// over and end it, even if its client sends something just before the record is written.
func (m *model) recorded(e s3sim.Event) {
	const holder, state, stalled, upload = "holder", "state", "stalled", "upload"
	owner := m.uploads[e.New.Metadata(upload)]
	if owner == nil {
		return
	}
	wasStalled := e.Old.Metadata(state) == stalled
	if e.New.Metadata(holder) != e.Old.Metadata(holder) && (wasStalled || !m.live(owner)) {
		owner.takenOver = true
	}
	switch {
	case e.New.Metadata(state) == stalled:
		owner.stalledTo = math.MaxInt
	case wasStalled:
		owner.stalledTo = m.seq
	}
	const missed = 4
	seconds, _ := strconv.Atoi(e.New.Metadata("heartbeat-seconds"))
	owner.deadFrom = time.Now().Add(missed*time.Duration(seconds)*time.Second - clockStep)
}

// clockStep is the maximum error of an age in whole seconds.
const clockStep = 2 * time.Second

// touched checks a request for a multipart upload, which may belong to another session.
func (m *model) touched(e s3sim.Event, op *operation) {
	owner := m.uploads[e.UploadID]
	if op != nil && op.Do == "foreign-abort" && owner != nil && e.Status < 300 {
		owner.takenOver = true
		return
	}
	completes := e.Name == "CompleteMultipartUpload" && e.Status < 300 && e.Old != e.New
	if completes && op != nil && owner == op && op.takenOver && m.profile.ConditionalPut && !op.faulty.Load() {
		m.violate(
			"taken-over", "step %d (%s %q) has completed its upload after another session has taken it over", op.ID,
			op.Do, op.Name)
	}
	if e.Status >= 300 || owner == nil || owner == op || owner.Do != "foreign-multipart" && !m.live(owner) {
		return // no session may touch an upload of another S3 client
	}
	by := "the server"
	if op != nil {
		by = fmt.Sprintf("step %d (%s %q)", op.ID, op.Do, op.Name)
	}
	m.violate("live-upload", "%s of %q by %s is for the upload of step %d, which is live", e.Name, e.Key, by, owner.ID)
}

// stalled is the time that an upload may wait for its client before another session may take it over.
const stalled = 10 * time.Second

// live reports whether a session is working on an upload. A session that cannot write its record counts as dead after a
// while.
func (m *model) live(op *operation) bool {
	if !op.deadFrom.IsZero() && op.session.replica.outage() != nil && time.Now().After(op.deadFrom) {
		return false
	}
	return !op.ended && !op.lost && !op.takenOver && op.session.replica.ctx.Err() == nil &&
		(op.waiting.IsZero() || time.Since(op.waiting) < stalled)
}

// check checks a change of an object.
func (m *model) check(e s3sim.Event, op *operation) {
	if op == nil {
		m.violate("unnamed", "the server made a %s of %q", e.Name, e.Key)
		return
	}
	if e.New == nil {
		m.checkDelete(e, op)
		return
	}
	content := bytesOf(e.New)
	if e.Name == "DeleteObject" { // a delete marker that has just hidden the object of another client
		if !m.isBack(e.Key, op, content) {
			m.violate(
				"unnamed", "step %d (%s %q) has made an older version of %q the current one, which is %s", op.ID, op.Do,
				op.Name, e.Key, m.describe(content))
		}
		op.moved = slices.DeleteFunc(op.moved, func(key string) bool { return key == e.Key })
		return
	}
	if by := m.versions[e.Key]; slices.ContainsFunc(by, func(s state) bool {
		return s.by == op && s.exists
	}) && by[len(by)-1].by != op {
		m.violate(
			"twice", "step %d (%s %q %q) has stored %q a second time, over what step %d has done since", op.ID, op.Do,
			op.Name, op.To, e.Key, by[len(by)-1].by.ID)
	}
	op.published = append(op.published, content)
	switch op.Do {
	case "foreign-put", "foreign-restore", "foreign-multipart":
	case "stor", "appe", "rest", "resume", "resume-append":
		m.checkUpload(e, op, content)
	case "rename", "copy":
		m.checkCopy(e, op, content)
	case "mkdir":
		if e.Key != op.Name+"/" || len(content) > 0 || e.Old != nil && e.Old.Content.Size() > 0 {
			m.violate("unnamed", "step %d (mkdir %q) has written %q", op.ID, op.Name, e.Key)
		}
		m.wantAttributes(e, op, m.attributesOf(e.New), []string{m.newAttributes(e.Key)})
	case "chtimes":
		if e.Key != op.Name || !bytes.Equal(content, bytesOf(e.Old)) && !m.inWindow(e, op) {
			m.violate(
				"overwritten", "step %d (chtimes %q) has replaced %s by %s", op.ID, op.Name, m.describe(bytesOf(e.Old)),
				m.describe(content))
		}
		if got := e.New.Metadata("mtime"); got != timeOf(op) {
			m.violate("metadata", "step %d (chtimes %q) has set the time %q", op.ID, op.Name, got)
		}
		m.checkTimeAttributes(e, op)
	default:
		m.violate("unnamed", "step %d (%s %q) has written %q", op.ID, op.Do, op.Name, e.Key)
	}
}

// isBack reports whether an operation has restored what it had just deleted.
func (m *model) isBack(key string, op *operation, content []byte) bool {
	states := m.versions[key]
	n := len(states)
	return n > 1 && states[n-1].by == op && bytes.Equal(states[n-2].content, content)
}

// timeOf returns the time that a step sets, in the format of the metadata.
func timeOf(op *operation) string { return strconv.Itoa(1_000_000_000+op.ID) + ".000000000" }

// lastBy returns the operation that last changed a key, or nil.
func (m *model) lastBy(key string) *operation {
	states := m.versions[key]
	if len(states) == 0 {
		return nil
	}
	return states[len(states)-1].by
}

// inWindow reports whether an operation could not know better: the server lacks a condition for its request, and the
// object was replaced after the operation had checked it.
func (m *model) inWindow(e s3sim.Event, op *operation) bool {
	p := m.profile
	has := map[string]bool{
		"PutObject": p.ConditionalPut, "CompleteMultipartUpload": p.ConditionalComplete,
		"CopyObject":   p.ConditionalCopy,
		"DeleteObject": p.ConditionalDelete, "DeleteObjects": p.ConditionalBatchDelete,
	}[e.Name]
	last := max(op.headed[e.Key], m.lastListed(e.Key, op))
	changed := 0
	if states := m.versions[e.Key]; len(states) > 0 {
		changed = states[len(states)-1].from
	}
	return !has && last > 0 && changed > last
}

// lastListed returns when an operation last listed a key.
func (m *model) lastListed(key string, op *operation) (last int) {
	for prefix, at := range op.listed {
		if strings.HasPrefix(key, prefix) {
			last = max(last, at)
		}
	}
	return last
}

// lostTime reports whether an operation has deleted a time that was set after the file was copied, although it could
// have known. Within one replica it can always know. Otherwise it must have checked the file after the copy: no
// condition of S3 distinguishes the file from the previous one with the same ETag, and a listing only returns the
// second in which it was stored. A newer file with the same bytes counts as a copy from an earlier attempt, and so does
// every file if files must not be replaced.
func (m *model) lostTime(e s3sim.Event, op *operation) bool {
	to, mtime := op.To+strings.TrimPrefix(e.Key, op.Name), e.Old.Metadata("mtime")
	states := m.versions[e.Key]
	copies := m.alive(to, op.start, m.seq)
	if mtime == "" || len(states) < 2 || slices.ContainsFunc(copies, func(s state) bool {
		return s.exists && s.mtime == mtime
	}) {
		return false
	}
	if op.copiedAt[e.Key] == 0 {
		return !op.session.plan.NoOverwrite && !slices.ContainsFunc(copies, func(s state) bool {
			return s.exists && s.stored.After(e.Old.Modified)
		})
	}
	now, before, last := states[len(states)-1], states[len(states)-2], op.headed[e.Key]
	if now.stored.After(before.stored) {
		last = max(last, m.lastListed(e.Key, op))
	}
	return now.by.session.replica == op.session.replica || last < op.copiedAt[e.Key] || last > now.from
}

// checkUpload checks what an upload has stored. The object must begin with the bytes that were there before and that
// the client wants to keep, or with the bytes of the interrupted upload that it resumes. Everything that the client has
// sent must follow.
func (m *model) checkUpload(e s3sim.Event, op *operation, content []byte) {
	old := bytesOf(e.Old)
	switch {
	case e.Key != op.Name:
		m.violate("unnamed", "step %d (%s %q) has written %q", op.ID, op.Do, op.Name, e.Key)
	case op.session.plan.NoOverwrite && e.Old != nil && !m.inWindow(e, op):
		m.violate(
			"overwritten", "step %d (%s %q) has replaced %s, which it must not", op.ID, op.Do, op.Name, m.describe(old))
	case !op.wholly || op.sent < len(op.content):
		m.violate(
			"fragment", "step %d (%s %q) has stored %s, but its client was lost", op.ID, op.Do, op.Name,
			m.describe(content))
	case e.New.Metadata("mtime") != "":
		m.violate(
			"metadata", "step %d (%s %q) has stored new bytes with the time of the old ones", op.ID, op.Do, op.Name)
	case m.lastBy(e.Key) == op: // a second attempt, because the response to the first one was lost
	default:
		for _, base := range m.bases(e, op) {
			if bytes.Equal(content, slices.Concat(base, op.content)) {
				m.checkAttributes(e, op, content)
				return
			}
		}
		for _, object := range m.restarted(e, op) {
			if bytes.Equal(content, object) {
				m.checkAttributes(e, op, content)
				return
			}
		}
		m.violate(
			"mixture", "step %d (%s %q, offset %d) has stored %s; its client has sent %s, and there was %s", op.ID,
			op.Do, op.Name, op.Offset,
			m.describe(content), m.describe(op.content), m.describe(old))
	}
}

// replaced returns the objects that an upload may have replaced, and whether there may have been none.
func (m *model) replaced(e s3sim.Event, op *operation) (objects [][]byte, absent bool) {
	absent = e.Old == nil
	if e.Old != nil {
		objects = append(objects, bytesOf(e.Old))
	}
	if m.inWindow(e, op) {
		for _, s := range m.alive(e.Key, op.start, m.seq) {
			absent = absent || !s.exists
			if s.exists {
				objects = append(objects, s.content)
			}
		}
	}
	return objects, absent
}

// restarted returns the objects that an upload from an offset may create. It keeps the bytes after its own, unless its
// session truncates.
func (m *model) restarted(e s3sim.Event, op *operation) (made [][]byte) {
	// its client resumes a pending upload
	if op.Do != "rest" || op.sizeReported && int64(op.Offset) == op.reportedSize {
		return nil
	}
	objects, _ := m.replaced(e, op)
	for _, object := range objects {
		if op.Offset > len(object) {
			continue
		}
		result := slices.Concat(object[:op.Offset], op.content)
		if !op.session.plan.Truncate {
			result = slices.Concat(result, object[min(len(result), len(object)):])
		}
		made = append(made, result)
	}
	return made
}

// bases returns the contents to which an upload may have added its bytes, except for uploads that overwrite the middle
// of an object.
func (m *model) bases(e s3sim.Event, op *operation) [][]byte {
	objects, absent := m.replaced(e, op)
	switch resumed := heads(m.interrupted(op), op.reportedSize); op.Do {
	case "appe", "rest":
		reported := op.sizeReported && (op.Do == "appe" || int64(op.Offset) == op.reportedSize)
		switch {
		case reported && (absent || op.Do == "rest"):
			return resumed
		case reported: // its client knows of a pending upload and sends the rest
			return nil
		case op.Do == "rest":
			return heads(m.interrupted(op), int64(op.Offset))
		case absent:
			return append(objects, nil)
		}
		return objects
	case "resume", "resume-append":
		if op.sizeReported {
			return resumed
		}
	}
	return [][]byte{nil}
}

// heads returns the first n bytes of each content that is long enough.
func heads(contents [][]byte, n int64) [][]byte {
	var heads [][]byte
	for _, c := range contents {
		if int64(len(c)) >= n {
			heads = append(heads, c[:n])
		}
	}
	return heads
}

// interrupted returns the files of interrupted uploads of the same owner to the same name, with the bytes that their
// clients have sent. It includes every upload that was not live at some time since the operation began. If an upload
// may continue one of several contents, it includes each result.
func (m *model) interrupted(op *operation) [][]byte {
	var files [][]byte
	for _, other := range m.operations {
		if other == op || other.openedAt == 0 && other.content == nil || other.Name != op.Name {
			continue
		}
		if m.live(other) && other.stalledTo < op.start {
			continue
		}
		if other.session.plan.Owner != op.session.plan.Owner || other.ended && other.err == nil ||
			m.replacedSince(other, op) {
			continue
		}
		sent := other.content[:min(other.sent, len(other.content))]
		for _, base := range m.startsOf(other) {
			files = append(files, slices.Concat(base, sent))
		}
	}
	return files
}

// replacedSince reports whether an operation must know that an interrupted upload has ended: either the file was stored
// since and has existed from then on, or a session of the same replica has changed the name or a directory above it,
// whatever happened to the file afterwards.
func (m *model) replacedSince(interrupted, op *operation) bool {
	states := m.versions[op.Name]
	for i, s := range states {
		if s.from <= interrupted.openedAt || s.from >= op.start || s.by == interrupted {
			continue
		}
		gone := slices.ContainsFunc(states[i:], func(s state) bool { return !s.exists })
		if interrupted.ended && s.from > interrupted.end && !gone {
			return true
		}
		by := s.by
		if by != nil && by.Do != "chtimes" && !strings.HasPrefix(by.Do, "foreign-") && by.ended && by.err == nil && by.end < op.start &&
			by.session.replica == op.session.replica && by.session.plan.Owner != "" {
			return true
		}
	}
	return slices.ContainsFunc(m.operations, func(by *operation) bool {
		above := by.Do == "rename" && strings.HasPrefix(op.Name, by.Name+"/") || by.Do == "rmdir" && by.Name != op.Name &&
			strings.HasPrefix(op.Name, by.Name+"/") || by.To != "" && strings.HasPrefix(op.Name, by.To+"/")
		return above && by.ended && by.err == nil && by.start >= interrupted.openedAt && by.end < op.start &&
			by.session.replica == op.session.replica && by.session.plan.Owner != ""
	})
}

// startsOf returns the contents to which an interrupted upload may have added its bytes.
func (m *model) startsOf(op *operation) [][]byte {
	if op.Do == "stor" || op.Do == "appe" && !op.sizeReported || !op.sizeReported && op.Do != "rest" {
		return [][]byte{nil}
	}
	n := op.reportedSize
	if op.Do == "rest" {
		n = int64(op.Offset)
	}
	var starts [][]byte
	if op.Do == "appe" {
		starts = append(starts, nil)
	}
	for _, other := range m.operations {
		if other.ID != op.ID && other.start < op.start && other.Name == op.Name && other.content != nil {
			sent := other.content[:min(other.sent, len(other.content))]
			for _, base := range m.startsOf(other) {
				starts = append(starts, heads([][]byte{slices.Concat(base, sent)}, n)...)
			}
		}
	}
	for _, s := range m.alive(op.Name, op.start, op.openedAt) {
		starts = append(starts, heads([][]byte{s.content}, n)...)
	}
	return starts
}

// checkCopy checks what a rename or a copy has written.
func (m *model) checkCopy(e s3sim.Event, op *operation, content []byte) {
	source := op.Name
	inside, below := strings.CutPrefix(e.Key, op.To+"/")
	switch {
	case below:
		source = path.Join(op.Name, inside)
		if strings.HasSuffix(e.Key, "/") {
			source += "/"
		}
		if inside == "" {
			source = op.Name + "/"
		}
	case e.Key != op.To:
		m.violate("unnamed", "step %d (%s %q %q) has written %q", op.ID, op.Do, op.Name, op.To, e.Key)
		return
	}
	op.copied[source] = append(op.copied[source], content)
	op.copiedAt[source] = m.seq
	mtime, attributes := e.New.Metadata("mtime"), m.attributesOf(e.New)
	same := func(s state) bool { return s.exists && bytes.Equal(s.content, content) }
	states := m.alive(source, op.start, m.seq)
	was := slices.ContainsFunc(states, same)
	others, tags := splitTags(attributes)
	switch {
	case was && !m.unsure() && !(slices.ContainsFunc(states, func(s state) bool {
		had, _ := splitTags(s.attributes)
		return same(s) && s.mtime == mtime && had == others
	}) && slices.ContainsFunc(states, func(s state) bool {
		_, had := splitTags(s.attributes)
		return same(s) && had == tags // S3 copies the tags itself, from an object with the same bytes
	})):
		m.violate(
			"metadata", "step %d (%s %q %q) has written %q with the time %q and %s, which %q never had", op.ID, op.Do,
			op.Name, op.To, e.Key, mtime, attributes, source)
	case !was:
		m.violate(
			"mixture", "step %d (%s %q %q) has written %s to %q, which %q never was", op.ID, op.Do, op.Name, op.To,
			m.describe(content), e.Key, source)
	case e.Old == nil || m.lastBy(e.Key) == op || below && bytes.Equal(bytesOf(e.Old), content) || m.inWindow(e, op):
	case below:
		m.violate(
			"directory-overwritten", "step %d (%s %q %q) has replaced %q, which was %s, by %s", op.ID, op.Do, op.Name,
			op.To, e.Key,
			m.describe(bytesOf(e.Old)), m.describe(content))
	case op.session.plan.NoOverwrite:
		m.violate(
			"overwritten", "step %d (%s %q %q) has replaced %s, which it must not", op.ID, op.Do, op.Name, op.To,
			m.describe(bytesOf(e.Old)))
	}
}

// checkDelete checks what an operation has deleted.
func (m *model) checkDelete(e s3sim.Event, op *operation) {
	old := bytesOf(e.Old)
	moved := e.Key == op.Name || strings.HasPrefix(e.Key, op.Name+"/")
	undone := e.Key == op.To || strings.HasPrefix(e.Key, op.To+"/")
	switch {
	case op.Do == "foreign-delete", op.Do == "remove" && e.Key == op.Name,
		op.Do == "rmdir" && e.Key == op.Name+"/" && len(old) == 0:
		return
	case strings.HasSuffix(e.Key, "/") && len(old) == 0 && op.Do == "rename" && moved:
		return
	case op.Do == "rename" && moved && m.hasCopy(e.Key, old, op):
		if m.lostTime(e, op) {
			m.violate(
				"time-lost", "step %d (rename %q %q) has deleted %q with the time %q, which it has not copied", op.ID,
				op.Name, op.To, e.Key, e.Old.Metadata("mtime"))
		}
		op.moved = append(op.moved, e.Key)
		return
	case op.Do == "rename" && moved && m.inWindow(e, op):
		return
	case op.Do == "rename" && undone && m.hasDeleted(op.Name+strings.TrimPrefix(e.Key, op.To), old, op):
		m.violate(
			"both-deleted", "step %d (%s %q %q) has deleted %q, which was %s, and what it was copied from", op.ID,
			op.Do, op.Name, op.To, e.Key, m.describe(old))
		return
	case (op.Do == "rename" || op.Do == "copy") && undone && slices.ContainsFunc(op.published, func(c []byte) bool {
		return bytes.Equal(c, old)
	}):
		return
	}
	m.violate(
		"deleted", "step %d (%s %q %q) has deleted %q, which was %s; it has copied %d versions of it", op.ID, op.Do,
		op.Name, op.To, e.Key,
		m.describe(old), len(op.copied[e.Key]))
}

// hasDeleted reports whether an operation has deleted a content of a key and has not restored it.
func (m *model) hasDeleted(key string, content []byte, op *operation) bool {
	states, deleted := m.versions[key], false
	for i, s := range states {
		switch {
		case s.by != op:
		case s.exists:
			deleted = false
		case i > 0 && states[i-1].exists && bytes.Equal(states[i-1].content, content):
			deleted = true
		}
	}
	return deleted
}

// hasCopy reports whether a file that a rename deletes has existed at the new name, because of this rename or an
// earlier one.
func (m *model) hasCopy(key string, content []byte, op *operation) bool {
	to := op.To + strings.TrimPrefix(key, op.Name)
	same := func(c []byte) bool { return bytes.Equal(c, content) }
	return slices.ContainsFunc(op.copied[key], same) ||
		slices.ContainsFunc(m.alive(to, op.start, m.seq), func(s state) bool { return s.exists && same(s.content) })
}

// describe returns the steps that the bytes come from.
func (m *model) describe(content []byte) string {
	if len(content) == 0 {
		return "[0 bytes]"
	}
	var runs []string
	for at := 0; at < len(content); {
		id, from, n := m.longestRun(content[at:])
		if n == 0 {
			n, id = 1, -1
		}
		runs = append(runs, fmt.Sprintf("%d:%d-%d", id, from, from+n))
		at += n
	}
	if len(runs) > 8 {
		runs = append(runs[:8], "...")
	}
	return "[" + strings.Join(runs, " ") + "]"
}

// longestRun finds the file that the first bytes belong to.
func (m *model) longestRun(content []byte) (id, from, length int) {
	const unit = 8
	for shift := range min(unit, len(content)) {
		field := content[shift:min(shift+unit, len(content))]
		step, err := strconv.Atoi(string(field[:min(3, len(field))]))
		index, indexErr := 0, error(nil)
		if len(field) == unit {
			index, indexErr = strconv.Atoi(string(field[3:7]))
		}
		start := index*unit - shift
		if err != nil || indexErr != nil || start < 0 {
			continue
		}
		file := fileOf(step, start+len(content))[start:]
		n := 0
		for n < len(content) && content[n] == file[n] {
			n++
		}
		if n > length {
			id, from, length = step, start, n
		}
	}
	return id, from, length
}

// finish records how an operation ended, and checks the reply to its client.
func (m *model) finish(op *operation, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op.end, op.ended, op.err = m.seq, true, err
	m.trace("%d step %d (%s %q %q) ends: %v", m.seq, op.ID, op.Do, op.Name, op.To, err)
	if op.session.replica.ctx.Err() != nil {
		return // the client has disconnected
	}
	m.checkRefusal(op)
	switch op.Do {
	case "stor", "appe", "rest", "resume", "resume-append":
		m.checkUploadReply(op)
		delete(op.session.reported, op.Name)
	case "rename", "copy":
		m.checkCopyReply(op)
	case "mkdir", "rmdir", "chtimes":
		check := map[string]func(*operation){"mkdir": m.checkMkdir, "rmdir": m.checkRmdir, "chtimes": m.checkTime}[op.Do]
		if err == nil {
			check(op)
		}
	case "remove":
		if err == nil && !m.wasAbsent(op.Name, op) {
			m.violate("reply", "step %d (remove %q) has succeeded, and it was never gone", op.ID, op.Name)
		}
	case "read":
		m.checkRead(op)
	case "list":
		m.checkList(op)
	case "size":
		if errors.Is(err, fs.ErrNotExist) && !m.wasAbsent(op.Name, op) {
			m.violate("reply", "step %d (size %q) has found nothing, and it was there", op.ID, op.Name)
		}
	}
}

func (m *model) wasAbsent(key string, op *operation) bool {
	return slices.ContainsFunc(m.alive(key, op.start, op.end), func(s state) bool { return !s.exists })
}

func (m *model) checkUploadReply(op *operation) {
	refused := false
	for _, kind := range []error{
		fs.ErrExist, fs.ErrInvalid, fs.ErrNotExist, syscall.EDQUOT, syscall.ESTALE, errClientLost,
	} {
		refused = refused || errors.Is(op.err, kind)
	}
	nothing := op.Do != "stor" && len(op.content) == 0
	switch {
	case op.err == nil && len(op.published) == 0 && !nothing && !m.hadContent(op):
		m.violate("reply", "step %d (%s %q) has succeeded, and nothing was stored", op.ID, op.Do, op.Name)
	case refused && len(op.published) > 0:
		m.violate("reply", "step %d (%s %q) was refused (%v), and %s was stored", op.ID, op.Do, op.Name, op.err, m.describe(op.published[0]))
	}
}

// hadContent reports whether another session has completed the upload of an operation.
func (m *model) hadContent(op *operation) bool {
	return slices.ContainsFunc(m.alive(op.Name, op.start, op.end), func(s state) bool {
		return s.exists && s.began == op && bytes.HasSuffix(s.content, op.content)
	})
}

func (m *model) checkCopyReply(op *operation) {
	switch {
	case op.Name == op.To:
	case errors.Is(op.err, fs.ErrNotExist) && len(op.copied[op.Name]) > 0:
		m.violate("reply", "step %d (%s %q %q) was refused (%v), and it has replaced the target", op.ID, op.Do, op.Name, op.To, op.err)
	case errors.Is(op.err, syscall.ESTALE) && slices.Contains(op.moved, op.Name) && !op.faulty.Load():
		m.violate("reply", "step %d (%s %q %q) was refused (%v), and it has done all", op.ID, op.Do, op.Name, op.To, op.err)
	case op.err != nil:
	case len(op.published) == 0 && !m.hadTarget(op):
		m.violate("reply", "step %d (%s %q %q) has succeeded, and there was nothing of the new name", op.ID, op.Do, op.Name, op.To)
	case len(op.published) == 0 && op.Do == "copy" && m.hadFiles(op):
		m.violate("reply", "step %d (%s %q %q) has succeeded, and nothing was copied", op.ID, op.Do, op.Name, op.To)
	case op.Do == "rename":
		for key := range m.versions {
			if key != op.Name && !strings.HasPrefix(key, op.Name+"/") || strings.HasPrefix(op.To, op.Name+"/") {
				continue
			}
			if states := m.alive(key, op.start, op.end); len(states) == 1 && states[0].exists {
				m.violate("reply", "step %d (rename %q %q) has succeeded, and %q is still there", op.ID, op.Name, op.To, key)
			}
		}
	}
}

// hadTarget reports whether anything existed at the new name.
func (m *model) hadTarget(op *operation) bool {
	for key := range m.versions {
		if key != op.To && !strings.HasPrefix(key, op.To+"/") {
			continue
		}
		if slices.ContainsFunc(m.alive(key, op.start, op.end), func(s state) bool { return s.exists }) {
			return true
		}
	}
	return false
}

// checkMkdir checks that a directory that was made existed, with a marker or with any file in it.
func (m *model) checkMkdir(op *operation) {
	for key := range m.versions {
		if !strings.HasPrefix(key, op.Name+"/") {
			continue
		}
		if slices.ContainsFunc(m.alive(key, op.start, op.end), func(s state) bool { return s.exists }) {
			return
		}
	}
	m.violate("reply", "step %d (mkdir %q) has succeeded, and there was no directory", op.ID, op.Name)
}

// checkRmdir checks that a directory that was removed did not exist.
func (m *model) checkRmdir(op *operation) {
	for key := range m.versions {
		if strings.HasPrefix(key, op.Name+"/") && !m.wasAbsent(key, op) {
			m.violate("reply", "step %d (rmdir %q) has succeeded, and %q was there all the time", op.ID, op.Name, key)
		}
	}
}

// checkTime checks that a file had the time that was set.
func (m *model) checkTime(op *operation) {
	dated := func(s state) bool { return s.exists && s.mtime == timeOf(op) }
	if !slices.ContainsFunc(m.alive(op.Name, op.start, op.end), dated) {
		m.violate("reply", "step %d (chtimes %q) has succeeded, and the file never had the time", op.ID, op.Name)
	}
}

// hadFiles reports whether the source of an operation has bytes that the target does not have.
func (m *model) hadFiles(op *operation) bool {
	for key := range m.versions {
		if key != op.Name && !strings.HasPrefix(key, op.Name+"/") {
			continue
		}
		from := m.alive(key, op.start, op.end)
		to := m.alive(op.To+strings.TrimPrefix(key, op.Name), op.start, op.end)
		if len(from) == 1 && from[0].exists && len(to) == 1 &&
			(!to[0].exists || !bytes.Equal(from[0].content, to[0].content)) {
			return true
		}
	}
	return false
}

func (m *model) checkRead(op *operation) {
	switch {
	case errors.Is(op.err, fs.ErrNotExist) && !m.wasAbsent(op.Name, op):
		m.violate("reply", "step %d (read %q) has found nothing, and it was there", op.ID, op.Name)
	case op.err != nil:
	case !slices.ContainsFunc(m.alive(op.Name, op.start, op.end), func(s state) bool {
		return s.exists && bytes.Equal(s.content, op.got)
	}):
		m.violate("read", "step %d (read %q) has got %s, which it never was", op.ID, op.Name, m.describe(op.got))
	}
}

// checkList checks that a listing shows everything that existed the whole time, and nothing that never existed.
func (m *model) checkList(op *operation) {
	if op.err != nil && !errors.Is(op.err, fs.ErrNotExist) {
		return
	}
	for key := range m.versions {
		if path.Dir(key) != op.Name || strings.HasSuffix(key, "/") {
			continue
		}
		states := m.alive(key, op.start, op.end)
		_, listed := slices.BinarySearch(op.names, key)
		always := !slices.ContainsFunc(states, func(s state) bool { return !s.exists })
		never := !slices.ContainsFunc(states, func(s state) bool { return s.exists })
		switch {
		case always && !listed:
			m.violate("list", "step %d (list %q) does not show %q, which was there", op.ID, op.Name, key)
		case never && listed:
			m.violate("list", "step %d (list %q) shows %q, which was not there", op.ID, op.Name, key)
		}
	}
}

// finalChecks checks what is left after all sessions have ended.
func (w *world) finalChecks() {
	ctx, done := context.WithTimeout(w.t.Context(), time.Hour)
	defer done()
	for _, bucket := range []string{historyBucket, otherBucket} {
		open := w.s3.Uploads(bucket)
		w.mu.Lock()
		for id := range open {
			if op := w.uploads[id]; op != nil && op.ended && op.err == nil && !op.faulty.Load() {
				w.violate("leak", "step %d (%s %q) has succeeded, and its upload is open", op.ID, op.Do, op.Name)
			}
		}
		w.mu.Unlock()
		journal := driver.NewEndpoint().NewJournal(w.s3.Client(nil), bucket, "", w.profile, driver.Objects{}, nil)
		if _, err := journal.Sweep(ctx, 0); err != nil {
			w.fail("leak", "the sweep has failed: %v", err)
		}
		w.leftovers(bucket)
	}
	w.countQuotas(ctx)
}

func (w *world) fail(kind, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violate(kind, format, args...)
}

// leftovers checks for uploads that no sweep has ended. An upload may be open if the response that created it was lost.
func (w *world) leftovers(bucket string) {
	for id, key := range w.s3.Uploads(bucket) {
		w.mu.Lock()
		op := w.uploads[id]
		w.mu.Unlock()
		if op != nil && !op.faulty.Load() && op.session.replica.ctx.Err() == nil && op.Do != "foreign-multipart" {
			w.fail("leak", "the upload of step %d to %q is open after a sweep", op.ID, key)
		}
	}
	for _, o := range w.s3.Objects(bucket) {
		if strings.HasPrefix(o.Key, journal) {
			w.fail("leak", "the record %q is there after a sweep", o.Key)
		}
		if o.Broken() {
			w.fail("broken", "the parts of %q were deleted while S3 made the object of them", o.Key)
		}
	}
}

// stored returns the number of stored bytes, in total and by the replica that has stored them.
func (m *model) stored() (sum int64, by map[*replica]int64) {
	by = map[*replica]int64{}
	for _, states := range m.versions {
		if last := states[len(states)-1]; last.exists {
			sum += int64(len(last.content))
			if last.by != nil {
				by[last.by.session.replica] += int64(len(last.content))
			}
		}
	}
	return sum, by
}

// checkQuota checks that a quota has not allowed too many bytes. Replicas count separately, so this needs a single
// replica. A file exists twice during a rename, and a file that has grown by an append or a copy counts too.
func (m *model) checkQuota(e s3sim.Event, op *operation) {
	renames := slices.ContainsFunc(m.operations, func(other *operation) bool {
		return other.Do == "rename" && (!other.ended || other.err != nil)
	})
	if m.world.Quota == 0 || len(m.world.replicas) > 1 || renames || len(bytesOf(e.New)) <= len(bytesOf(e.Old)) {
		return
	}
	if sum, _ := m.stored(); sum > m.world.Quota {
		m.violate("quota", "step %d (%s %q) has stored %d bytes, so that there are %d", op.ID, op.Do, op.Name, len(bytesOf(e.New)), sum)
	}
}

// countQuotas compares quotas with the content of the bucket. A single replica must know of everything that it has
// stored, and after a count of everything in the bucket.
func (w *world) countQuotas(ctx context.Context) {
	var sum int64
	for _, o := range w.s3.Objects(historyBucket) {
		sum += o.Content.Size()
	}
	w.mu.Lock()
	_, stored := w.stored()
	w.mu.Unlock()
	for _, r := range w.replicas {
		if r.quota == nil || r.ctx.Err() != nil {
			continue
		}
		// A replica misses the bytes of other replicas' files that it has replaced or moved. If S3 does not compare the
		// source of a copy, it also misses the bytes of a larger version.
		if used, _ := r.quota.Used(); used < stored[r] && len(w.replicas) == 1 && !w.profile.UncheckedSources {
			w.fail("quota", "replica %d knows of %d bytes, and has stored %d of those that are there", r.index, used, stored[r])
		}
		if err := r.quota.Count(ctx); err != nil {
			w.fail("quota", "the count has failed: %v", err)
		}
		if used, _ := r.quota.Used(); used != sum {
			w.fail("quota", "replica %d counts %d bytes, and there are %d", r.index, used, sum)
		}
	}
}
