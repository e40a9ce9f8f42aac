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

// All returns the buckets with those of their folders, in the order of tenants and folders.
func All(buckets map[string]*Bucket) []*Bucket {
	var all []*Bucket
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		all = append(append(all, buckets[name]), buckets[name].Folders...)
	}
	return all
}

// Reuse keeps the buckets of before, and those of their folders, that are reached in the same way, so that what is
// known about them stays. It leaves out the buckets that usable refuses.
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

// equal reports whether two buckets of one factory are reached in the same way and take the same objects.
func (b *Bucket) equal(other *Bucket) bool {
	return b.Tenant == other.Tenant && b.Folder == other.Folder && b.Name == other.Name && b.Prefix == other.Prefix &&
		b.Client == other.Client && b.links == other.links && b.keys == other.keys &&
		b.account.profile == other.account.profile &&
		b.resumable == other.resumable && b.asked == other.asked &&
		string(b.customerKey) == string(other.customerKey) &&
		reflect.DeepEqual(b.Objects, other.Objects)
}

// UsesOldKey reports whether the bucket, or one of its folders, is reached with an access key that neither next nor its
// folders have. A nil next has no keys. Credentials that the SDK finds are renewed by the SDK, and are never old.
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

// A Place is a bucket of an S3 server, however it is reached.
type Place struct{ server, bucket string }

// Place returns where the objects are. Endpoints that differ in case, in a slash at the end or in the default port name
// the same server, and so do all endpoints of AWS.
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

// SamePlace reports whether two buckets are the same one of the same S3 server, however they are reached.
func (b *Bucket) SamePlace(other *Bucket) bool { return b.Place() == other.Place() }

// Forget drops the clients that none of the buckets has.
func (f *Factory) Forget(buckets map[string]*Bucket) {
	clients, roles, routes := map[*s3.Client]bool{}, map[*role]bool{}, map[*driver.Endpoint]bool{}
	for _, b := range All(buckets) {
		clients[b.Client], clients[b.links], roles[b.account.role], routes[b.Endpoint] = true, true, true, true
	}
	maps.DeleteFunc(f.clients, func(_ account, c client) bool { return !clients[c.Client] })
	maps.DeleteFunc(f.roles, func(_ string, r *role) bool { return !roles[r] })
	maps.DeleteFunc(f.routes, func(_ string, e *driver.Endpoint) bool { return !routes[e] })
}
