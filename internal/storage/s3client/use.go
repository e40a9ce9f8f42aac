package s3client

import (
	"cmp"
	"fmt"
)

// A Use says what the server does in a bucket besides reading it.
type Use struct {
	Write  bool // users upload, or make directories
	Delete bool // users delete or rename
	Events bool // the bucket stores the events of a webhook
	Past   bool // users read older versions

	Restore bool // archived objects are restored

	Quarantine string // key prefix of quarantined files, empty without quarantine
}

// AddUse adds a use. It does nothing if the bucket has a [Watcher], because the check of the uses is over.
func (b *Bucket) AddUse(u Use) {
	if b.watched != nil {
		return
	}
	b.use = Use{
		b.use.Write || u.Write, b.use.Delete || u.Delete, b.use.Events || u.Events, b.use.Past || u.Past,
		b.use.Restore || u.Restore, cmp.Or(b.use.Quarantine, u.Quarantine),
	}
}

// Use returns all uses that were added.
func (b *Bucket) Use() Use { return b.use }

// Resumable reports whether users can resume uploads.
func (b *Bucket) Resumable() bool { return b.resumable }

// SharesCredentials reports whether both buckets are accessed with the same S3 account.
func (b *Bucket) SharesCredentials(other *Bucket) bool {
	x, y := b.account, other.account
	return x.endpoint == y.endpoint && x.accessKeyID == y.accessKeyID && (x.role == nil) == (y.role == nil) &&
		(x.role == nil || x.role.RoleARN == y.role.RoleARN)
}

func (b *Bucket) region() Region { return Region(b.Client.Options().Region) }

// RoleARN returns the role that is assumed for the bucket, or "".
func (b *Bucket) RoleARN() string {
	if b.account.role == nil {
		return ""
	}
	return b.account.role.RoleARN
}

// String names the bucket in errors.
func (b *Bucket) String() string {
	if b.forState {
		return fmt.Sprintf("state: bucket %q", b.Name)
	}
	if b.Folder != "" {
		return fmt.Sprintf("tenant %s: folder %s: bucket %q", b.Tenant, b.Folder, b.Name)
	}
	return fmt.Sprintf("tenant %s: bucket %q", b.Tenant, b.Name)
}
