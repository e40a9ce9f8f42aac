package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

const (
	// maxUploads limits the uploads of one bucket that are returned.
	maxUploads = 1000

	// maxParallel limits the concurrent requests to one S3 server.
	maxParallel = 16
)

// Uploads implements [Source]. If tenants share a prefix of a bucket, an upload belongs to the tenant that
// has its user. S3 servers are queried independently, so a slow one does not delay the buckets of others.
func (o *Overview) Uploads(ctx context.Context, name string) (*Uploads, error) {
	buckets, err := o.buckets(name)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var noJournal error
	found := &Uploads{Uploads: []Upload{}, Unanswered: []Unanswered{}}
	servers := map[*driver.Endpoint][]*s3client.Bucket{}
	for _, b := range buckets {
		servers[b.Endpoint] = append(servers[b.Endpoint], b)
	}
	ask := func(b *s3client.Bucket) {
		var some []Upload
		var total int
		err := panics.Catch(func() (err error) {
			some, total, err = o.uploadsIn(account.InTenant(ctx, b.Tenant), b)
			return err
		})
		mu.Lock()
		defer mu.Unlock()
		found.Uploads, found.Total = append(found.Uploads, some...), found.Total+total
		if errors.Is(err, errNoJournal) {
			noJournal = err
		} else if err != nil {
			found.Unanswered = append(
				found.Unanswered, Unanswered{Tenant: b.Tenant, Bucket: b.Name, Reason: err.Error()})
		}
	}
	var all errgroup.Group
	for _, buckets := range servers {
		all.Go(func() error {
			var some errgroup.Group
			some.SetLimit(maxParallel)
			for _, b := range buckets {
				some.Go(func() error {
					ask(b)
					return nil
				})
			}
			return some.Wait()
		})
	}
	_ = all.Wait() // the functions report errors in found
	if noJournal != nil {
		return nil, noJournal
	}
	slices.SortFunc(found.Uploads, func(a, b Upload) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(found.Unanswered, func(a, b Unanswered) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Bucket, b.Bucket))
	})
	return found, nil
}

// buckets returns the buckets of a tenant, or all buckets if name is empty.
func (o *Overview) buckets(name string) ([]*s3client.Bucket, error) {
	all := o.parts.Buckets()
	if name == "" {
		return all, nil
	}
	all = slices.DeleteFunc(slices.Clone(all), func(b *s3client.Bucket) bool { return b.Tenant != name })
	if len(all) == 0 {
		return nil, errNoTenant(name, o.Tenants(nil))
	}
	return all, nil
}

// maxNamed limits the tenants that an error lists.
const maxNamed = 20

// errNoTenant returns the error for an unknown tenant. It lists the known ones.
func errNoTenant(name string, tenants []Tenant) error {
	var names []string
	for _, t := range tenants[:min(len(tenants), maxNamed)] {
		names = append(names, t.Name)
	}
	if more := len(tenants) - maxNamed; more > 0 {
		names = append(names, fmt.Sprint(more, " more"))
	}
	return &Error{http.StatusNotFound, fmt.Sprintf("unknown tenant %q: want one of %s", name, strings.Join(names, ", "))}
}

// journal returns the journal of a bucket. The error says why it cannot be used.
func journal(b *s3client.Bucket) (*driver.Journal, error) {
	if _, err := b.Up(); err != nil {
		return nil, errors.New(err.Error()) // must not match ErrNotExist, which means a missing upload
	}
	if b.Journal == nil {
		return nil, errNoJournal
	}
	return b.Journal, nil
}

// uploadsIn returns the uploads in a bucket.
func (o *Overview) uploadsIn(ctx context.Context, b *s3client.Bucket) (uploads []Upload, all int, err error) {
	j, err := journal(b)
	if err != nil {
		return nil, 0, err
	}
	pending, all, err := j.Pending(ctx, maxUploads)
	if err != nil {
		return nil, 0, explain(ctx, b, err)
	}
	owners := o.owners(b, b.Tenant)
	var others map[string]string
	for _, p := range pending {
		user, found := owners[p.OwnerID]
		if !found {
			if others == nil {
				others = o.otherOwners(b)
			}
			if _, theirs := others[p.OwnerID]; theirs {
				all--
				continue
			}
		}
		u := Upload{
			ID: p.ID, Tenant: b.Tenant, User: user,
			Path: strings.TrimSuffix("/"+strings.Trim(b.Folder, "/"), "/") + "/" +
				strings.TrimPrefix(p.Key, b.Prefix),
			LastPart: p.Written.UTC(), State: p.State,
		}
		if p.Bytes >= 0 {
			u.Bytes = &p.Bytes
		}
		uploads = append(uploads, u)
	}
	return uploads, all, nil
}

// explain adds the bucket to an error, and replaces the error of an expired deadline.
func explain(ctx context.Context, b *s3client.Bucket, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errSlow
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", b, err)
	}
	return err
}

// owners returns the users of a tenant, by their owner IDs in the journal.
func (o *Overview) owners(b *s3client.Bucket, name string) map[string]string {
	owners := map[string]string{}
	for _, user := range o.parts.Registry.Users(name) {
		owners[b.Journal.OwnerID(account.Owner(user, name))] = user
	}
	return owners
}

// otherOwners returns the users of other tenants that share the prefix of the bucket, by their owner IDs.
func (o *Overview) otherOwners(b *s3client.Bucket) map[string]string {
	owners := map[string]string{}
	for _, other := range o.parts.Buckets() {
		if other.Tenant == b.Tenant || other.Prefix != b.Prefix || !other.SamePlace(b) {
			continue
		}
		for id, user := range o.owners(b, other.Tenant) {
			owners[id] = user
		}
	}
	return owners
}

// Abort implements [Source].
func (o *Overview) Abort(ctx context.Context, name, id string) error {
	ctx = account.InTenant(ctx, name)
	buckets, err := o.buckets(name)
	if err != nil {
		return err
	}
	var unanswered error
	for _, b := range buckets {
		j, err := journal(b)
		if err == nil {
			err = explain(ctx, b, j.Abort(ctx, id))
		}
		switch {
		case err == nil, errors.Is(err, syscall.EBUSY):
			return err
		case !errors.Is(err, fs.ErrNotExist):
			unanswered = err
		}
	}
	if unanswered != nil {
		return unanswered
	}
	return &Error{http.StatusNotFound,
		fmt.Sprintf("tenant %s: upload %s not found: it may be complete, or removed", name, id)}
}
