package s3client

import (
	"cmp"
	"fmt"
)

// A Use says what the server does in a bucket, apart from reading it.
type Use struct {
	Write  bool // users upload, or make directories
	Delete bool // users delete or rename
	Events bool // it holds the events of a webhook
	Past   bool // users read older versions

	Restore bool // archived objects are restored

	Quarantine string // what the keys of refused files begin with, empty where they are not stored
}

// AddUse notes a use, in addition to those before. A bucket that has a [Watcher] keeps its uses.
func (b *Bucket) AddUse(u Use) {
	if b.watched != nil {
		return
	}
	b.use = Use{
		b.use.Write || u.Write, b.use.Delete || u.Delete, b.use.Events || u.Events, b.use.Past || u.Past,
		b.use.Restore || u.Restore, cmp.Or(b.use.Quarantine, u.Quarantine),
	}
}

// Use returns all uses.
func (b *Bucket) Use() Use { return b.use }

// Resumable tells whether users can resume uploads.
func (b *Bucket) Resumable() bool { return b.resumable }

// SharesCredentials tells whether one account of S3 reaches both buckets.
func (b *Bucket) SharesCredentials(other *Bucket) bool {
	x, y := b.account, other.account
	return x.endpoint == y.endpoint && x.accessKeyID == y.accessKeyID && (x.role == nil) == (y.role == nil) &&
		(x.role == nil || x.role.RoleARN == y.role.RoleARN)
}

func (b *Bucket) region() Region { return Region(b.Client.Options().Region) }

// RoleARN is the role that is assumed for the bucket, empty without one.
func (b *Bucket) RoleARN() string {
	if b.account.role == nil {
		return ""
	}
	return b.account.role.RoleARN
}

// String names the bucket in errors.
func (b *Bucket) String() string {
	if b.Folder != "" {
		return fmt.Sprintf("tenant %s: folder %s: bucket %q", b.Tenant, b.Folder, b.Name)
	}
	return fmt.Sprintf("tenant %s: bucket %q", b.Tenant, b.Name)
}
