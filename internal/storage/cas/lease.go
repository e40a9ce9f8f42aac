package cas

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"time"
)

const (
	// releaseAttempts limits the attempts to release the lease.
	releaseAttempts = 3
	// noHolder is the holder in a released lease. IDs of servers contain no lower-case letters.
	noHolder = "released"
)

// A Lease lets only one of several servers do something at a time. It is an object in S3, which is read with GetObject
// and written with PutObject.
//
// The object contains the ID of the server that holds the lease. Each renewal writes a new version. Each server
// measures the age of a version by itself, because clocks may differ.
//
// A released lease is not deleted, but overwritten with an object without a holder. Every S3 server with conditions
// supports them for writes, but few do for deletions. So if the SDK repeats a release late, it does not affect the
// next holder.
//
// A lease is acquired with compare-and-swap. Some S3 servers ignore or reject conditions. On these, two servers that
// acquire the lease at the same moment both hold it, until the one that wrote first checks again.
//
// The struct holds what one server knows about the lease. It is not safe for concurrent use.
type Lease struct {
	// Expiry is the time without a new version after which the holder is presumed dead.
	Expiry time.Duration

	bucket *Bucket
	key    string
	log    *slog.Logger // logs that the lease of a dead server is taken over

	id    string
	held  bool
	other Version   // last version of another server
	since time.Time // when this server first saw other
}

// NewLease returns a lease that this server does not hold. It sends no request. Another server takes the lease over if
// no version was written for expiry.
func NewLease(bucket *Bucket, key string, expiry time.Duration, log *slog.Logger) *Lease {
	return &Lease{Expiry: expiry, bucket: bucket, key: key, log: log, id: rand.Text()}
}

// String returns the URL of the object.
func (l *Lease) String() string { return l.bucket.URL(l.key) }

// Held reports whether this server held the lease after the last Hold and has not released it.
func (l *Lease) Held() bool { return l.held }

// Hold acquires or renews the lease, and reports whether this server holds it now. After an error, its state is
// unchanged.
func (l *Lease) Hold(ctx context.Context) (held bool, err error) {
	now, err := l.read(ctx)
	if err != nil {
		return false, err
	}
	if !l.isOwn(now) {
		l.held = false
		if isHeld(now) && !l.expired(now) {
			return false, nil
		}
		if isHeld(now) {
			l.log.Warn("lease of another server expired; taking it over", "lease", l.String())
		}
	}
	if written, err := l.write(ctx, l.id, now); err != nil || !written {
		l.held = l.held && err != nil
		return false, err
	}
	l.held = true
	return true, nil
}

// Release releases the lease if this server holds it.
func (l *Lease) Release(ctx context.Context) error {
	l.held = false
	var failed error
	for range releaseAttempts {
		now, err := l.read(ctx)
		if err != nil || !l.isOwn(now) {
			return err
		}
		if _, failed = l.write(ctx, noHolder, now); failed == nil {
			return nil
		}
	}
	return failed
}

// isOwn reports whether this server wrote a version as the holder.
func (l *Lease) isOwn(v Version) bool { return strings.HasPrefix(v.Data, l.id+" ") }

// isHeld reports whether a server holds the lease in this version.
func isHeld(v Version) bool { return v.Data != "" && !strings.HasPrefix(v.Data, noHolder+" ") }

// expired reports whether the server that wrote a version is presumed dead.
func (l *Lease) expired(v Version) bool {
	if v != l.other {
		l.other, l.since = v, time.Now()
	}
	return time.Since(l.since) >= l.Expiry
}

// write replaces a version by one with this holder. It returns false if another server was faster.
func (l *Lease) write(ctx context.Context, holder string, before Version) (written bool, err error) {
	_, written, err = l.bucket.Write(ctx, l.key, holder+" "+rand.Text(), before)
	return written, err
}

// read returns the current version in S3.
func (l *Lease) read(ctx context.Context) (Version, error) { return l.bucket.Read(ctx, l.key) }
