package admin

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Source is the server behind a [Handler]. Its methods are safe for concurrent use.
type Source interface {
	Server() Server
	// Sessions returns the sessions of this replica, unsorted.
	Sessions() []report.SessionInfo
	// Disconnect ends a session with reply 421, without waiting for it. It reports whether the session
	// exists.
	Disconnect(id string) bool
	// Tenants returns the tenants sorted by name, with their numbers among the given sessions.
	Tenants(sessions []report.SessionInfo) []Tenant
	// LastLogins returns the users that have logged in to this replica since it started, sorted by tenant and
	// name.
	LastLogins() []account.LastLogin
	// Uploads returns the incomplete uploads of a tenant on all replicas, or of all tenants if tenant is
	// empty.
	Uploads(ctx context.Context, tenant string) (*Uploads, error)
	// Abort removes an interrupted upload. The error is an [Error] with status 404 if there is no such upload
	// or S3 has completed it, and EBUSY if a session is working on it or S3 may still complete it. Any other
	// error names the bucket that failed.
	Abort(ctx context.Context, tenant, id string) error
}

// A Server is the state of a replica. Times are in UTC.
type Server struct {
	Version  string    `json:"version"`
	Replica  int       `json:"replica"`  // starting at 0
	Replicas int       `json:"replicas"` // number of replicas
	Started  time.Time `json:"started"`
	// ConfigHash is the hexadecimal hash of the configuration in use and all files that it names.
	ConfigHash   string           `json:"config_hash"`
	Reloaded     time.Time        `json:"reloaded"` // when the configuration in use was read
	Ready        bool             `json:"ready"`
	Draining     bool             `json:"draining"`
	Certificates []Certificate    `json:"certificates"`
	Refusals     map[string]int64 `json:"refusals"` // since the start, by the key of the limit
}

// A Certificate is a certificate that the server presents to clients.
type Certificate struct {
	Tenant   string    `json:"tenant"` // empty for the certificate of the server
	Names    []string  `json:"names"`
	NotAfter time.Time `json:"not_after"`
}

// A Tenant is the state of a tenant.
type Tenant struct {
	Name string `json:"name"`
	Bucket
	Folders  []Folder `json:"folders,omitempty"` // with buckets of their own
	Sessions int      `json:"sessions"`          // on this replica
	Quota    *Quota   `json:"quota,omitempty"`   // nil without a quota
}

// A Bucket is the location of files.
type Bucket struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix"`
	BucketUp *bool  `json:"bucket_up"` // whether the last check succeeded; nil before the first check
	Reason   string `json:"reason"`    // error of the last check
}

// A Folder is a directory of a tenant that has its own bucket.
type Folder struct {
	Folder string `json:"folder"`
	Bucket
}

// A Quota is the quota of a tenant and its usage.
type Quota struct {
	Bytes    *int64 `json:"bytes"` // nil until they are counted
	MaxBytes int64  `json:"max_bytes"`
}

// Uploads are the incomplete uploads of the requested tenants.
type Uploads struct {
	Uploads    []Upload     `json:"uploads"`    // at most 1,000 of each bucket
	Total      int          `json:"total"`      // total number of uploads
	Unanswered []Unanswered `json:"unanswered"` // the buckets whose uploads could not be listed
}

// An Unanswered is a bucket whose uploads could not be listed.
type Unanswered struct {
	Tenant string `json:"tenant"`
	Bucket string `json:"bucket"`
	Reason string `json:"reason"` // error message with the tenant and the bucket
}

// An Upload is an incomplete upload: in progress, or interrupted and kept.
type Upload struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	User   string `json:"user"` // empty if unknown
	Path   string `json:"path"` // in the tenant
	Bytes  *int64 `json:"bytes"`
	// LastPart is the time at which a session last worked on the upload.
	LastPart time.Time `json:"last_part"`
	State    string    `json:"state"` // live, stalled, interrupted or ending
}
