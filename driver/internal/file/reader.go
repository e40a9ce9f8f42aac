package file

import (
	"context"
	"io"
	"time"

	"github.com/babelftp/babelftp/driver/internal/membudget"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// parallelRTT is the round-trip time from which on several requests bring more than one. A server of the same
	// network answers sooner, and sends as fast as the network or the processors allow: several requests would only
	// take turns. Amazon S3 takes longer, also within a region, and sends less by one connection than most networks
	// carry.
	parallelRTT = 3 * time.Millisecond

	// waitingShare is the least share of its time that a download waits for S3 when it needs more requests. idleShare
	// is the largest share when it has more requests than its client needs. It gives up one of reduction then.
	waitingShare = 0.5
	idleShare    = 0.05
	reduction    = 4

	// firstInterval is how long the reader measures before it wants a second request. firstBytes must have come by
	// then, so that a client that reads only the beginning of a file costs one request. Later measurements take
	// longer.
	firstInterval = 30 * time.Millisecond
	firstBytes    = 1 << 20
	interval      = 50 * time.Millisecond

	// memoryDelay is how long a download for which there was no memory does not ask for it again.
	memoryDelay = 200 * time.Millisecond
)

// A Reader reads one version of an object from an offset on. Its methods are for one goroutine.
type Reader struct {
	ctx     context.Context
	bucket  *s3api.Bucket
	version s3api.Version
	memory  *membudget.Budget
	stats   *s3api.Stats
	most    int

	offset     int64       // of the byte that is read next
	stream     *Range      // reads from offset, unless the prefetcher does; nil before its request
	prefetcher *prefetcher // nil while one request is enough
	buffer     membudget.TransferBuffer
	unread     []byte // has come and was not read yet; in buffer
	answers    int    // that have brought bytes, without those of the stream

	wanted   int           // requests
	reduceAt int64         // offset before which the download gives up no more of them
	since    time.Time     // when the measurement began, or will
	waited   time.Duration // for S3 since then
	received int64         // bytes of the stream
}

// NewReader returns a reader of a version from an offset on. The body is the answer to the request for all of these
// bytes. Up to most requests are under way in parallel. Close must end the reader.
func NewReader(
	ctx context.Context, b *s3api.Bucket, v s3api.Version, offset int64, body io.ReadCloser, memory *membudget.Budget,
	stats *s3api.Stats, most int,
) *Reader {
	r := &Reader{
		ctx: ctx, bucket: b, version: v, memory: memory, stats: stats, most: most, offset: offset,
		buffer: memory.TransferBuffer(), wanted: 1, since: time.Now().Add(firstInterval - interval),
	}
	r.openStream()
	r.stream.body, r.stream.answers = body, 1
	return r
}

func (r *Reader) openStream() {
	r.stream = NewRange(r.ctx, r.bucket, r.version, r.offset, r.version.Size)
	r.stream.answers, r.answers = r.answers, 0
}

func (r *Reader) closeStream() {
	if r.stream != nil {
		r.stream.Close()
		r.answers += r.stream.answers
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

// Next waits for the next bytes, and returns some of them. They belong to the reader. Advance says how many the
// caller has taken.
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
		// One stream continues, and finds out whether the error of the prefetcher ends the download.
		r.closePrefetcher()
	}
	room := r.buffer.Room(r.version.Size - r.offset)
	n, err := r.receive(room)
	r.unread = room[:n]
	return r.unread, err
}

// Advance says that so many bytes of Next were read.
func (r *Reader) Advance(n int) {
	r.unread = r.unread[n:]
	r.offset += int64(n)
}

// receive reads from the stream. It reads something, or returns an error.
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

// prefetching tells whether the next byte comes from the prefetcher.
func (r *Reader) prefetching() bool { return r.prefetcher != nil && r.offset >= r.prefetcher.start }

// adjust records that the reader has waited for S3 since begin, and requests more chunks if they are worth it.
func (r *Reader) adjust(begin time.Time) {
	now := time.Now()
	r.waited += now.Sub(begin)
	if elapsed := now.Sub(r.since); elapsed >= interval && r.received >= firstBytes {
		share := r.waited.Seconds() / elapsed.Seconds()
		switch open := r.requests(); {
		case share >= waitingShare && r.stats.Nearest(now) >= parallelRTT:
			r.wanted = r.most
		case share <= idleShare && r.offset >= r.reduceAt:
			r.wanted = max(open-max(open/reduction, 1), 1)
			r.reduceAt = r.offset + int64(r.wanted)*maxChunk // what has been fetched ahead shows nothing
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

// requests returns how many requests are under way or have unread chunks, with the stream.
func (r *Reader) requests() (n int) {
	if !r.prefetching() {
		n++
	}
	if r.prefetcher != nil {
		n += r.prefetcher.count()
	}
	return n
}

// next is where the next chunk begins.
func (r *Reader) next() int64 {
	if r.prefetcher != nil {
		return r.prefetcher.next
	}
	return r.stream.offset + r.chunkSize()
}

// chunkSize is the size of all chunks of a prefetcher.
func (r *Reader) chunkSize() int64 {
	if r.prefetcher != nil {
		return r.prefetcher.size
	}
	left := r.version.Size - r.stream.offset
	return min(max(left/int64(r.most), minChunk), maxChunk, r.memory.Limit()/budgetChunks)
}

// prefetch asks for a chunk. The stream continues up to the first chunk.
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
	r.answers++
	return true
}

// closePrefetcher continues with one request.
func (r *Reader) closePrefetcher() {
	if r.prefetcher != nil {
		r.prefetcher.close()
		r.prefetcher = nil
		r.pause(time.Now(), 1)
	}
}

// pause sets how many requests the reader wants, for a while.
func (r *Reader) pause(now time.Time, wanted int) {
	r.wanted, r.since, r.waited = wanted, now.Add(memoryDelay), 0
}

// Offset returns where the next Read begins.
func (r *Reader) Offset() int64 { return r.offset }

// SeekTo sets where the next Read begins. It makes no request. For the present offset it does nothing.
func (r *Reader) SeekTo(offset int64) {
	if offset != r.offset {
		r.closePrefetcher()
		r.unread, r.offset = nil, offset
	}
}

// Close returns the connection to the pool if the reader has read all, and closes it otherwise.
func (r *Reader) Close() {
	r.closeStream()
	r.closePrefetcher()
	r.buffer.Release()
}
