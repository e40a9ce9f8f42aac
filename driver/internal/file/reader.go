package file

import (
	"context"
	"io"
	"time"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// parallelRTT is the round-trip time above which several parallel requests are faster than one. A server in the
	// same network responds faster and sends as fast as the network or the processors allow, so several requests would
	// only share this speed. Amazon S3 takes longer even within a region, and one connection to it is slower than most
	// networks.
	parallelRTT = 3 * time.Millisecond

	// A download that spends at least waitingShare of its time waiting for S3 sends more requests. A download that
	// waits for at most idleShare has more requests than its client needs, and gives up 1/reduction of them.
	waitingShare = 0.5
	idleShare    = 0.05
	reduction    = 4

	// firstInterval is the duration of the first measurement, before the reader uses a second request. At least
	// firstBytes must have arrived by that time, so that a client that reads only the beginning of a file costs a
	// single request. Later measurements take interval.
	firstInterval = 30 * time.Millisecond
	firstBytes    = 1 << 20
	interval      = 50 * time.Millisecond

	// memoryDelay is the time that a download waits after it did not get memory before it tries again.
	memoryDelay = 200 * time.Millisecond
)

// A Reader reads one version of an object from an offset. Only one goroutine may call its methods.
type Reader struct {
	ctx         context.Context
	bucket      *s3api.Bucket
	version     s3api.Version
	memory      *membudget.Budget
	stats       *s3api.Stats
	maxRequests int

	offset     int64       // offset of the next byte to read
	stream     *Range      // reads from offset, unless the prefetcher does; nil until its first request
	prefetcher *prefetcher // nil while one request is enough
	buffer     membudget.TransferBuffer
	unread     []byte // received and not read yet; part of buffer
	// responses counts the responses that delivered bytes, except the responses of the stream.
	responses int

	wanted   int           // number of requests
	reduceAt int64         // before this offset, the download does not reduce the number of requests
	since    time.Time     // start of the measurement; may be in the future
	waited   time.Duration // time spent waiting for S3 since then
	received int64         // bytes received from the stream
}

// NewReader returns a reader for a version from an offset. body is the body of a response with all these bytes. The
// reader sends at most maxRequests in parallel. The caller must call Close.
func NewReader(
	ctx context.Context, b *s3api.Bucket, v s3api.Version, offset int64, body io.ReadCloser, memory *membudget.Budget,
	stats *s3api.Stats, maxRequests int,
) *Reader {
	r := &Reader{
		ctx: ctx, bucket: b, version: v, memory: memory, stats: stats, maxRequests: maxRequests, offset: offset,
		buffer: memory.TransferBuffer(), wanted: 1, since: time.Now().Add(firstInterval - interval),
	}
	r.openStream()
	r.stream.body, r.stream.responses = body, 1
	return r
}

func (r *Reader) openStream() {
	r.stream = NewRange(r.ctx, r.bucket, r.version, r.offset, r.version.Size)
	r.stream.responses, r.responses = r.responses, 0
}

func (r *Reader) closeStream() {
	if r.stream != nil {
		r.stream.Close()
		r.responses += r.stream.responses
		r.stream = nil
	}
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	next, err := r.Next()
	if err != nil {
		return 0, err
	}
	n := copy(p, next)
	r.Advance(n)
	return n, nil
}

// Next waits for data and returns some of it. The slice belongs to the reader. Call Advance with the number of bytes
// used.
func (r *Reader) Next() ([]byte, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	if len(r.unread) > 0 {
		return r.unread, nil
	}
	if r.prefetching() {
		r.closeStream()
		begin := time.Now()
		b, err := r.prefetcher.take()
		r.adjust(begin)
		if err == nil {
			r.buffer.Hold(b.memory)
			r.unread = b.bytes()
			return r.unread, nil
		}
		// Continue with one stream, which finds out whether the error of the prefetcher ends the download.
		r.closePrefetcher()
	}
	room := r.buffer.Room(r.version.Size - r.offset)
	n, err := r.receive(room)
	r.unread = room[:n]
	return r.unread, err
}

// Advance marks n bytes from Next as read.
func (r *Reader) Advance(n int) {
	r.unread = r.unread[n:]
	r.offset += int64(n)
}

// receive reads from the stream. It returns at least one byte or an error.
func (r *Reader) receive(p []byte) (int, error) {
	if r.stream == nil || r.stream.offset != r.offset {
		r.closeStream()
		r.openStream()
	}
	if r.prefetcher != nil {
		p = p[:min(int64(len(p)), r.prefetcher.start-r.offset)]
	}
	for {
		begin := time.Now()
		n, err := r.stream.Read(p)
		r.received += int64(n)
		r.adjust(begin)
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// prefetching reports whether the next byte comes from the prefetcher.
func (r *Reader) prefetching() bool { return r.prefetcher != nil && r.offset >= r.prefetcher.start }

// adjust records that the reader has waited for S3 since begin, and requests more chunks if they make the download
// faster.
func (r *Reader) adjust(begin time.Time) {
	now := time.Now()
	r.waited += now.Sub(begin)
	if elapsed := now.Sub(r.since); elapsed >= interval && r.received >= firstBytes {
		share := r.waited.Seconds() / elapsed.Seconds()
		switch open := r.requests(); {
		case share >= waitingShare && r.stats.Nearest(now) >= parallelRTT:
			r.wanted = r.maxRequests
		case share <= idleShare && r.offset >= r.reduceAt:
			r.wanted = max(open-max(open/reduction, 1), 1)
			r.reduceAt = r.offset + int64(r.wanted)*maxChunk // prefetched data would distort the next measurement
		default:
			r.wanted = open
		}
		r.since, r.waited = now, 0
	}
	for r.requests() < r.wanted && r.next() < r.version.Size {
		if !r.prefetch() {
			r.pause(now, r.requests())
			return
		}
	}
}

// requests returns the number of requests that are in flight or have unread chunks, including the stream.
func (r *Reader) requests() (n int) {
	if !r.prefetching() {
		n++
	}
	if r.prefetcher != nil {
		n += r.prefetcher.count()
	}
	return n
}

// next returns the offset of the next chunk.
func (r *Reader) next() int64 {
	if r.prefetcher != nil {
		return r.prefetcher.next
	}
	return r.stream.offset + r.chunkSize()
}

// chunkSize returns the size of all chunks of a prefetcher.
func (r *Reader) chunkSize() int64 {
	if r.prefetcher != nil {
		return r.prefetcher.size
	}
	left := r.version.Size - r.stream.offset
	return min(max(left/int64(r.maxRequests), minChunk), maxChunk, r.memory.Limit()/budgetChunks)
}

// prefetch requests one more chunk. The stream continues up to the first chunk.
func (r *Reader) prefetch() bool {
	if r.prefetcher == nil {
		r.prefetcher = newPrefetcher(r, r.next(), r.chunkSize())
	}
	if !r.prefetcher.open() {
		if r.prefetcher.count() == 0 && !r.prefetching() {
			r.closePrefetcher()
		}
		return false
	}
	r.responses++
	return true
}

// closePrefetcher ends prefetching. The reader continues with one request.
func (r *Reader) closePrefetcher() {
	if r.prefetcher != nil {
		r.prefetcher.close()
		r.prefetcher = nil
		r.pause(time.Now(), 1)
	}
}

// pause sets the number of requests and keeps it for a while.
func (r *Reader) pause(now time.Time, wanted int) {
	r.wanted, r.since, r.waited = wanted, now.Add(memoryDelay), 0
}

// Offset returns the offset of the next Read.
func (r *Reader) Offset() int64 { return r.offset }

// SeekTo sets the offset of the next Read. It sends no request, and does nothing if the offset does not change.
func (r *Reader) SeekTo(offset int64) {
	if offset != r.offset {
		r.closePrefetcher()
		r.unread, r.offset = nil, offset
	}
}

// Close returns the connection to the pool if everything was read, and closes it otherwise.
func (r *Reader) Close() {
	r.closeStream()
	r.closePrefetcher()
	r.buffer.Release()
}
