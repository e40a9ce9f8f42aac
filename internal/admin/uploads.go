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
	// maxUploads is how many uploads of one bucket are shown.
	maxUploads = 1000

	// maxParallel is how many buckets of one S3 server are asked at the same time.
	maxParallel = 16
)

// Uploads implements [Source]. Where tenants share a prefix of a bucket, an upload is that of the tenant which
// has its user. A slow S3 server delays no bucket of another.
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
	_ = all.Wait() // none returns an error
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

// buckets are those of a tenant, or of all.
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

// maxNamed is how many tenants an error names.
const maxNamed = 20

// errNoTenant says that there is no such tenant, and which there are.
func errNoTenant(name string, tenants []Tenant) error {
	var names []string
	for _, t := range tenants[:min(len(tenants), maxNamed)] {
		names = append(names, t.Name)
	}
	if more := len(tenants) - maxNamed; more > 0 {
		names = append(names, fmt.Sprint(more, " more"))
	}
	return &Error{http.StatusNotFound, fmt.Sprintf("there is no tenant %q, but %s", name, strings.Join(names, ", "))}
}

// journal is that of a bucket which can be used. The error says why there is none.
func journal(b *s3client.Bucket) (*driver.Journal, error) {
	if _, err := b.Up(); err != nil {
		return nil, errors.New(err.Error()) // a missing file of credentials is no missing upload
	}
	if b.Journal == nil {
		return nil, errNoJournal
	}
	return b.Journal, nil
}

// uploadsIn are those of a bucket.
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
				others = o.ownersBeside(b)
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

// explain says which bucket has failed, or has not answered in time.
func explain(ctx context.Context, b *s3client.Bucket, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errSlow
	}
	if err != nil {
		err = fmt.Errorf("%v: %w", b, err)
	}
	return err
}

// owners are the users of a tenant, by the IDs of the owners of uploads.
func (o *Overview) owners(b *s3client.Bucket, name string) map[string]string {
	owners := map[string]string{}
	for _, user := range o.parts.Registry.Users(name) {
		owners[b.Journal.OwnerID(account.Owner(user, name))] = user
	}
	return owners
}

// ownersBeside are the users of other tenants that have the same prefix of the same bucket.
func (o *Overview) ownersBeside(b *s3client.Bucket) map[string]string {
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
		fmt.Sprintf("tenant %s has no upload %s: it may be complete, or removed", name, id)}
}
