package admin

import (
	"context"
	"sync"
	"time"
)

const (
	// historyInterval is the time between two samples.
	historyInterval = 10 * time.Second
	// historySize is the number of samples, for one hour.
	historySize = 360
)

// Totals are counts since the start of a replica, except for the sessions.
type Totals struct {
	Sessions                       int64 // open now
	UploadedBytes, DownloadedBytes int64
	Logins, FailedLogins           int64
	Errors                         int64 // failed transfers, logins that failed because of an error, and failures of S3
}

// historySeries are the series of a history. Those with a rate are the increase in an interval.
func historySeries() []struct {
	name string
	rate bool
	of   func(t *Totals) int64
} {
	return []struct {
		name string
		rate bool
		of   func(t *Totals) int64
	}{
		{"sessions", false, func(t *Totals) int64 { return t.Sessions }},
		{"uploads_bytes", true, func(t *Totals) int64 { return t.UploadedBytes }},
		{"downloads_bytes", true, func(t *Totals) int64 { return t.DownloadedBytes }},
		{"logins", true, func(t *Totals) int64 { return t.Logins }},
		{"failed_logins", true, func(t *Totals) int64 { return t.FailedLogins }},
		{"errors", true, func(t *Totals) int64 { return t.Errors }},
	}
}

// History has the samples of the last hour. All series have the same length.
type History struct {
	Interval int       `json:"interval"` // seconds between two samples
	Until    time.Time `json:"until"`    // time of the last sample
	Since    time.Time `json:"since"`    // time of the first sample; earlier ones are 0
	// Series has the values by name, oldest first: the number of sessions, and the number of bytes, logins, failed
	// logins and errors since the previous sample.
	Series map[string][]int64 `json:"series"`
}

// A Recorder samples the totals of a replica. Its methods are safe for concurrent use.
type Recorder struct {
	totals func() Totals

	mu      sync.Mutex
	last    Totals
	since   time.Time
	at      int64 // number of intervals since 1970 at the last sample
	samples [][historySize]int64
}

// NewRecorder returns a recorder of these totals.
func NewRecorder(totals func() Totals) *Recorder {
	return &Recorder{totals: totals, samples: make([][historySize]int64, len(historySeries()))}
}

// Run takes a sample every ten seconds until ctx ends, at the same times on all replicas.
func (r *Recorder) Run(ctx context.Context) {
	for {
		now := time.Now()
		r.sample(now)
		select {
		case <-time.After(now.Truncate(historyInterval).Add(historyInterval).Sub(now)):
		case <-ctx.Done():
			return
		}
	}
}

// sample adds a sample. If samples are missing, for example because the machine was suspended, they are 0.
func (r *Recorder) sample(now time.Time) {
	totals := r.totals()
	r.mu.Lock()
	defer r.mu.Unlock()
	at := now.UnixNano() / int64(historyInterval)
	if r.since.IsZero() {
		r.since, r.at, r.last = now.UTC(), at, totals
	}
	for missing := r.at + 1; missing <= min(at, r.at+historySize); missing++ {
		for i := range r.samples {
			r.samples[i][missing%historySize] = 0
		}
	}
	r.at = max(r.at, at)
	for i, s := range historySeries() {
		if !s.rate {
			r.samples[i][r.at%historySize] = s.of(&totals)
			continue
		}
		r.samples[i][r.at%historySize] += s.of(&totals) - s.of(&r.last)
	}
	r.last = totals
}

// History returns the samples of the last hour.
func (r *Recorder) History() *History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &History{
		Interval: int(historyInterval / time.Second), Until: time.Unix(0, r.at*int64(historyInterval)).UTC(),
		Since: r.since, Series: map[string][]int64{},
	}
	for i, s := range historySeries() {
		values := make([]int64, historySize)
		for n := range values {
			values[n] = r.samples[i][(r.at+1+int64(n))%historySize]
		}
		h.Series[s.name] = values
	}
	return h
}

// add adds the samples of another replica at the same times.
func (h *History) add(other *History) {
	shift := int(h.Until.Sub(other.Until) / historyInterval)
	for name, values := range h.Series {
		more := other.Series[name]
		for n := range values {
			if at := n + shift; at >= 0 && at < len(more) {
				values[n] += more[at]
			}
		}
	}
	if other.Since.Before(h.Since) {
		h.Since = other.Since
	}
}
