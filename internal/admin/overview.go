package admin

import (
	"errors"
	"net/http"
	"time"

	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Control gives access to the sessions.
type Control interface {
	Sessions() []report.SessionInfo
	Disconnect(id string) bool
}

// Parts are the parts of a server that an [Overview] reads. All are required.
type Parts struct {
	Version           string
	Replica, Replicas int
	Started           time.Time
	// Loaded returns the hexadecimal hash of the configuration in use, and when it was read.
	Loaded       func() (hash string, at time.Time)
	Health       *Probe
	Buckets      func() []*s3client.Bucket // buckets of all tenants, sorted by tenant
	Registry     *account.Registry
	Certificates *certs.Set
	// Listener returns the first name in the certificate of the admin listener and when it expires, or the
	// zero time without a certificate.
	Listener func() (host string, ends time.Time)
	Refusals func() map[string]int64 // since the start, by limit
}

// An Overview is the [Source] of a server.
type Overview struct {
	Control
	parts Parts
}

var _ Source = (*Overview)(nil)

// NewOverview returns an overview of the parts of a server.
func NewOverview(control Control, parts Parts) *Overview { return &Overview{control, parts} }

// Server implements [Source].
func (o *Overview) Server() Server {
	p := &o.parts
	hash, at := p.Loaded()
	s := Server{
		Version: p.Version, Replica: p.Replica, Replicas: p.Replicas, Started: p.Started.UTC(), ConfigHash: hash,
		Reloaded: at.UTC(),
		Ready:    p.Health.IsIn(Serving), Draining: p.Health.IsIn(Draining),
		Certificates: []Certificate{}, Refusals: p.Refusals(),
	}
	for _, c := range p.Certificates.Certificates() {
		s.Certificates = append(
			s.Certificates, Certificate{Tenant: c.Tenant, Names: []string{c.Host}, NotAfter: c.NotAfter.UTC()})
	}
	if host, ends := p.Listener(); !ends.IsZero() {
		s.Certificates = append(s.Certificates, Certificate{Names: []string{host}, NotAfter: ends.UTC()})
	}
	return s
}

// LastLogins implements [Source].
func (o *Overview) LastLogins() []account.LastLogin { return o.parts.Registry.LastLogins() }

// Tenants implements [Source].
func (o *Overview) Tenants(of []report.SessionInfo) []Tenant {
	sessions := map[string]int{}
	for i := range of {
		sessions[of[i].Tenant]++
	}
	tenants, index := []Tenant{}, map[string]int{}
	for _, b := range o.parts.Buckets() { // a tenant's own bucket comes before the buckets of its folders
		if b.Folder == "" {
			index[b.Tenant] = len(tenants)
			tenants = append(tenants, Tenant{Name: b.Tenant, Bucket: stateOf(b), Sessions: sessions[b.Tenant]})
			continue
		}
		t := &tenants[index[b.Tenant]]
		t.Folders = append(t.Folders, Folder{Folder: b.Folder, Bucket: stateOf(b)})
	}
	for _, q := range o.parts.Registry.Quotas() {
		i, found := index[q.Tenant]
		if !found || q.User != "" {
			continue
		}
		tenants[i].Quota = &Quota{MaxBytes: q.Limit}
		if used, known := q.Used(); known {
			tenants[i].Quota.Bytes = &used
		}
	}
	return tenants
}

// stateOf returns the result of the last check of a bucket.
func stateOf(b *s3client.Bucket) Bucket {
	state := Bucket{Bucket: b.Name, Prefix: b.Prefix}
	known, err := b.Up()
	if !known {
		return state
	}
	up := err == nil
	state.BucketUp = &up
	if err != nil {
		state.Reason = err.Error()
	}
	return state
}

var (
	// errNoJournal is returned by a server that keeps no record of uploads.
	errNoJournal = &Error{http.StatusNotImplemented, "uploads are not recorded because abandoned_uploads is 0"}
	errSlow      = errors.New("S3 did not respond in time")
)
