package state

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/storage/cas"
)

const (
	// pollInterval is the time between two reads of "changes".
	pollInterval = time.Second
	// listInterval is the time between two listings of all items.
	listInterval = time.Minute
	// saveInterval is the minimum time between two writes of the file.
	saveInterval = 10 * time.Second
	// parallelReads is the number of items that are read at the same time.
	parallelReads = 100
	// maxRecent is the number of changes that "changes" names. A server that has missed more lists all items.
	maxRecent = 200
	// announceTimeout limits how long a change is announced. The next listing finds it in any case.
	announceTimeout = 30 * time.Second
)

// A counter is the content of "changes".
type counter struct {
	N      int      `json:"n"`      // number of changes since the object was created
	Recent []string `json:"recent"` // names of the last changed items, the latest at the end
	ID     string   `json:"id"`     // differs in all versions

	version cas.Version
}

// parseCounter returns the content of "changes". An object that is missing or damaged counts as empty, and is replaced
// by the next change.
func parseCounter(v cas.Version) (c counter) {
	if err := json.Unmarshal([]byte(v.Data), &c); err != nil {
		c = counter{}
	}
	c.version = v
	return c
}

// since returns the names of the items that changed since an earlier state. ok is false if there were too many, or if
// the object was created again.
func (c counter) since(before counter) (names []string, ok bool) {
	n := c.N - before.N
	if n < 0 || n > len(c.Recent) {
		return nil, false
	}
	return c.Recent[len(c.Recent)-n:], true
}

// An announcer writes the names of changed items to "changes", in one write if there are several.
type announcer struct {
	mu      sync.Mutex
	names   []string
	running chan struct{} // closed when the running goroutine ends; nil without one
}

// announce writes a name in the background, even if ctx ends.
func (s *Store) announce(ctx context.Context, name string) {
	a := &s.announcer
	a.mu.Lock()
	defer a.mu.Unlock()
	a.names = append(a.names, name)
	if a.running == nil {
		a.running = make(chan struct{})
		ctx = context.WithoutCancel(ctx)
		panics.Go(func() { s.writeAnnouncements(ctx) })
	}
}

// Flush waits until all changes of this server are announced to the others.
func (s *Store) Flush(ctx context.Context) {
	s.announcer.mu.Lock()
	running := s.announcer.running
	s.announcer.mu.Unlock()
	if running == nil {
		return
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
}

// writeAnnouncements writes "changes" until all names are in it.
func (s *Store) writeAnnouncements(ctx context.Context) {
	a := &s.announcer
	for {
		a.mu.Lock()
		names := a.names
		a.names = nil
		if len(names) == 0 {
			close(a.running)
			a.running = nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		counting, done := context.WithTimeout(ctx, announceTimeout)
		if err := s.count(counting, names); err != nil {
			s.opts.Log.Warn("changed state not announced; other replicas find it within a minute", "err", err)
		}
		done()
	}
}

// count adds changes to "changes".
func (s *Store) count(ctx context.Context, names []string) error {
	key := s.opts.Prefix + "changes"
	version, err := s.bucket.Read(ctx, key)
	for range updateAttempts {
		if err != nil {
			return err
		}
		c := parseCounter(version)
		c.N += len(names)
		c.Recent = append(c.Recent, names...)
		c.Recent = c.Recent[max(0, len(c.Recent)-maxRecent):]
		c.ID = newID()
		data, failed := json.Marshal(c)
		if failed != nil {
			return failed
		}
		var ok bool
		if version, ok, err = s.bucket.Write(ctx, key, string(data), version); ok {
			return nil
		}
	}
	return errors.Join(err, ErrConflict)
}

// Run keeps the copy up to date until ctx ends. It first calls verify, which returns an error as long as the bucket is
// not usable, and repeats it until it succeeds. verify may be nil.
func (s *Store) Run(ctx context.Context, verify func(context.Context) error) {
	poll, list := time.NewTicker(s.opts.pollInterval), time.NewTicker(s.opts.listInterval)
	defer poll.Stop()
	defer list.Stop()
	var failure string
	var saved time.Time
	full := true
	for {
		err := panics.Catch(func() error {
			if verify != nil {
				if err := verify(ctx); err != nil {
					return err
				}
				verify = nil
			}
			if full {
				return s.sync(ctx)
			}
			return s.poll(ctx)
		})
		switch {
		case ctx.Err() != nil:
		case err == nil && failure != "":
			s.opts.Log.Info("shared state available again", "state", s.String())
			failure = ""
		case err != nil && err.Error() != failure:
			s.opts.Log.Error("shared state not available; the last known state stays in use", "state", s.String(), "err", err)
			failure = err.Error()
		}
		s.up.Store(err == nil)
		full = full && err != nil
		if time.Since(saved) >= saveInterval {
			s.Save()
			saved = time.Now()
		}
		select {
		case <-poll.C:
		case <-list.C:
			full = true
		case <-ctx.Done():
			return
		}
	}
}

// poll reads the items that "changes" names since the last call.
func (s *Store) poll(ctx context.Context) error {
	version, err := s.bucket.ReadChanged(ctx, s.opts.Prefix+"changes", s.known.version)
	if err != nil || version == s.known.version {
		return err
	}
	now := parseCounter(version)
	names, ok := now.since(s.known)
	if !ok {
		return s.sync(ctx)
	}
	slices.Sort(names)
	if err := s.readAll(ctx, slices.Compact(names)); err != nil {
		return err
	}
	s.known = now
	return nil
}

// sync lists all items and reads those that differ from the copy.
func (s *Store) sync(ctx context.Context) error {
	version, err := s.bucket.ReadChanged(ctx, s.opts.Prefix+"changes", s.known.version) // before the listing
	if err != nil {
		return err
	}
	began := s.now()
	listed, err := s.list(ctx, "")
	if err != nil {
		return err
	}
	var changed, removed []string
	s.mu.Lock()
	for name, etag := range listed {
		i := s.items[name]
		if (i == nil || !sameETag(i.version.ETag, etag)) && !sameETag(s.unreadable[name], etag) {
			changed = append(changed, name)
		}
	}
	for name, i := range s.items {
		if _, found := listed[name]; !found && i.generation <= began {
			removed = append(removed, name)
		}
	}
	maps.DeleteFunc(s.deleted, func(_ string, generation uint64) bool { return generation <= began })
	s.mu.Unlock()
	for _, name := range removed {
		s.apply(name, nil, began)
	}
	if err := s.readAll(ctx, changed); err != nil {
		return err
	}
	s.known = parseCounter(version)
	if !s.Known() {
		s.setComplete()
		s.Save() // the file of an incomplete copy
	}
	return nil
}

// List returns the names of the items in S3 that begin with prefix.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	etags, err := s.list(ctx, prefix)
	return slices.Sorted(maps.Keys(etags)), err
}

// Sync reads all items from S3, for programs that do not call Run.
func (s *Store) Sync(ctx context.Context) error { return s.sync(ctx) }

// sameETag compares ETags without their quotes, which some servers omit in listings.
func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// readAll reads items into the copy. Items that cannot be decrypted are logged once, and keep their last known value.
func (s *Store) readAll(ctx context.Context, names []string) error {
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(parallelReads)
	for _, name := range names {
		reading.Go(func() error {
			began := s.now()
			var known cas.Version
			s.mu.Lock()
			if i := s.items[name]; i != nil {
				known = i.version
			}
			s.mu.Unlock()
			version, err := s.bucket.ReadChanged(ctx, s.key(name), known)
			if err != nil || version == known && known.Exists() {
				return err
			}
			i, err := s.open(name, version)
			if err != nil {
				s.logUnreadable(name, version.ETag, err)
				return nil
			}
			s.apply(name, i, began)
			return nil
		})
	}
	return reading.Wait()
}

// logUnreadable logs an item that cannot be decrypted, once for each version.
func (s *Store) logUnreadable(name, etag string, err error) {
	s.mu.Lock()
	logged := s.unreadable[name] == etag
	s.unreadable[name] = etag
	s.mu.Unlock()
	if logged {
		return
	}
	hint := "restore the object, or delete it"
	if _, missing := errors.AsType[*keyring.UnknownKeyError](err); missing {
		hint = "add the key to state.keys"
	}
	s.opts.Log.Error("shared item cannot be read; the last known value stays in use", "hint", hint, "err", err)
}

// list returns the ETags of the items whose names begin with prefix, by name.
func (s *Store) list(ctx context.Context, prefix string) (etags map[string]string, err error) {
	etags = map[string]string{}
	below := s.key(prefix)
	pages := s3.NewListObjectsV2Paginator(s.opts.Client, &s3.ListObjectsV2Input{Bucket: &s.opts.Bucket, Prefix: &below})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			etags[strings.TrimPrefix(aws.ToString(o.Key), s.key(""))] = aws.ToString(o.ETag)
		}
	}
	return etags, nil
}
