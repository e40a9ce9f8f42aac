package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A Source is the server of which a [Handler] tells. Any goroutine may call its methods.
type Source interface {
	Server() Server
	// Sessions are those of this replica, in no order.
	Sessions() []report.ShownSession
	// Disconnect ends a session with reply 421, and tells whether there is one of this ID. It does not wait.
	Disconnect(id string) bool
	// Tenants are sorted by name. Those of Sessions are counted.
	Tenants(sessions []report.ShownSession) []Tenant
	// Users are those who have logged in to this replica since it started, sorted by tenant and name.
	Users() []account.LastLogin
	// Uploads are those of a tenant, or of all for an empty name, of all replicas.
	Uploads(ctx context.Context, tenant string) (*Uploads, error)
	// Abort removes an interrupted upload. The error is an [Error] with 404 where there is none, or S3 has completed
	// it. It is EBUSY where a session works on it, or S3 may yet complete it. Any other says which bucket does not
	// answer.
	Abort(ctx context.Context, tenant, id string) error
	// Audit has the last events of the audit log, the oldest first.
	Audit() []json.RawMessage
}

// A Server is what there is to know of a replica. Times are in UTC.
type Server struct {
	Version  string    `json:"version"`
	Replica  int       `json:"replica"`  // its number, from 0
	Replicas int       `json:"replicas"` // how many there are
	Started  time.Time `json:"started"`
	// ConfigHash is the hash of the configuration in use with all files that it names, in hexadecimal.
	ConfigHash   string           `json:"config_hash"`
	Reloaded     time.Time        `json:"reloaded"` // when the configuration in use was read
	Ready        bool             `json:"ready"`
	Draining     bool             `json:"draining"`
	Certificates []Certificate    `json:"certificates"`
	Refusals     map[string]int64 `json:"refusals"` // so far, by the limit's key
}

// A Certificate is one that clients are shown.
type Certificate struct {
	Tenant   string    `json:"tenant"` // empty for that of the server
	Names    []string  `json:"names"`
	NotAfter time.Time `json:"not_after"`
}

// A Tenant is what there is to know of one.
type Tenant struct {
	Name string `json:"name"`
	Bucket
	Folders  []Folder `json:"folders,omitempty"` // with buckets of their own
	Sessions int      `json:"sessions"`          // on this replica
	Quota    *Quota   `json:"quota,omitempty"`   // nil without one
}

// A Bucket is where files are.
type Bucket struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix"`
	BucketUp *bool  `json:"bucket_up"` // whether it could be used at the last look; nil before the first
	Reason   string `json:"reason"`    // why not
}

// A Folder is a directory of a tenant that has a bucket of its own.
type Folder struct {
	Folder string `json:"folder"`
	Bucket
}

// A Quota is how much of it is used.
type Quota struct {
	Bytes    *int64 `json:"bytes"` // nil until they are counted
	MaxBytes int64  `json:"max_bytes"`
}

// Uploads are what there is to know of uploads that are not complete.
type Uploads struct {
	Uploads    []Upload     `json:"uploads"`    // 1,000 of each bucket at most
	Total      int          `json:"total"`      // how many there are
	Unanswered []Unanswered `json:"unanswered"` // the buckets whose uploads are not known
}

// An Unanswered is a bucket that has not told its uploads.
type Unanswered struct {
	Tenant string `json:"tenant"`
	Bucket string `json:"bucket"`
	Reason string `json:"reason"` // in words, with the tenant and the bucket
}

// An Upload is one that is not complete: interrupted and kept, or under way.
type Upload struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	User   string `json:"user"` // empty where it is not known
	Path   string `json:"path"` // in the tenant
	Bytes  *int64 `json:"bytes"`
	// LastPart is when a session has worked on the upload last.
	LastPart time.Time `json:"last_part"`
	State    string    `json:"state"` // live, stalled, interrupted or ending
}
