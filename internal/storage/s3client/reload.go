package s3client

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/reload"
)

// All returns all buckets followed by the buckets of their folders, sorted by tenant and folder.
func All(buckets map[string]*Bucket) []*Bucket {
	var all []*Bucket
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		all = append(append(all, buckets[name]), buckets[name].Folders...)
	}
	return all
}

// Reuse replaces new buckets by equal ones from before, including the buckets of folders, so that their state is kept.
// It never reuses a bucket that usable rejects.
func Reuse(buckets, before map[string]*Bucket, usable func(*Bucket) bool) {
	reload.Keep(buckets, before, func(_ string, b, old *Bucket) bool {
		for i, f := range b.Folders {
			same := slices.IndexFunc(old.Folders, func(o *Bucket) bool { return usable(o) && f.equal(o) })
			if same >= 0 {
				b.Folders[i] = old.Folders[same]
			}
		}
		return usable(old) && b.equal(old) && slices.Equal(b.Folders, old.Folders)
	})
}

// equal reports whether two buckets of one factory have the same client, settings and object attributes.
func (b *Bucket) equal(other *Bucket) bool {
	return b.Tenant == other.Tenant && b.Folder == other.Folder && b.Name == other.Name && b.Prefix == other.Prefix &&
		b.Client == other.Client && b.links == other.links && b.keys == other.keys &&
		b.account.profile == other.account.profile &&
		b.resumable == other.resumable && b.resumeRequired == other.resumeRequired &&
		string(b.customerKey) == string(other.customerKey) &&
		reflect.DeepEqual(b.Objects, other.Objects) && reflect.DeepEqual(b.rules, other.rules)
}

// UsesOldKey reports whether the bucket or one of its folders uses an access key that next and its folders no longer
// have. A nil next has no keys. Credentials from the SDK are never old, because the SDK renews them.
func (b *Bucket) UsesOldKey(next *Bucket) bool {
	type key struct{ id, secret string }
	keysOf := func(b *Bucket) map[key]bool {
		keys := map[key]bool{}
		for _, one := range append([]*Bucket{b}, b.Folders...) {
			if !one.account.credentialsFromSDK {
				keys[key{one.account.accessKeyID, one.account.secretAccessKey}] = true
			}
		}
		return keys
	}
	var current map[key]bool
	if next != nil {
		current = keysOf(next)
	}
	for used := range keysOf(b) {
		if !current[used] {
			return true
		}
	}
	return false
}

// A Place identifies a bucket on an S3 server, regardless of the credentials and the form of the URL.
type Place struct{ server, bucket string }

// Place returns the place of the bucket. Endpoints that differ only in case, a trailing slash or the default port are
// the same server, and all AWS endpoints are the same server.
func (b *Bucket) Place() Place {
	endpoint := b.account.endpoint
	u, err := url.Parse(endpoint)
	switch {
	case strings.HasPrefix(profileOfEndpoint(endpoint, b.Name), "aws"):
		return Place{"", b.Name}
	case err != nil:
		return Place{endpoint, b.Name}
	}
	u.Scheme, u.Host, u.Path = strings.ToLower(u.Scheme), strings.ToLower(u.Host), strings.TrimRight(u.Path, "/")
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	return Place{u.String(), b.Name}
}

// SamePlace reports whether two Buckets are the same bucket on the same S3 server.
func (b *Bucket) SamePlace(other *Bucket) bool { return b.Place() == other.Place() }

// Forget drops all clients, roles and endpoints that these buckets do not use.
func (f *Factory) Forget(buckets map[string]*Bucket) {
	clients, roles, routes := map[*s3.Client]bool{}, map[*role]bool{}, map[*driver.Endpoint]bool{}
	for _, b := range All(buckets) {
		clients[b.Client], clients[b.links], roles[b.account.role], routes[b.Endpoint] = true, true, true, true
	}
	maps.DeleteFunc(f.clients, func(_ account, c client) bool { return !clients[c.Client] })
	maps.DeleteFunc(f.roles, func(_ string, r *role) bool { return !roles[r] })
	maps.DeleteFunc(f.routes, func(_ string, e *driver.Endpoint) bool { return !routes[e] })
}
