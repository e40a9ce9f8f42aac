package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/tenant"
	"github.com/babelftp/babelftp/internal/upkeep"
)

// maxUploads is how many uploads of one bucket are shown.
const maxUploads = 1000

// Uploads implements [admin.Source]. It leaves out buckets that cannot be used, as Tenants shows. Where tenants share a prefix of a bucket, an upload
// is that of the tenant which has its user.
func (o *Overview) Uploads(ctx context.Context, name string) ([]admin.Upload, int, error) {
	buckets, err := o.buckets(name)
	if err != nil {
		return nil, 0, err
	}
	var mu sync.Mutex
	uploads, all := []admin.Upload{}, 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(upkeep.MaxParallel)
	for _, b := range buckets {
		group.Go(func() error {
			return panics.Catch(func() error {
				some, more, err := o.uploadsIn(account.InTenant(ctx, b.Tenant), b)
				mu.Lock()
				defer mu.Unlock()
				uploads, all = append(uploads, some...), all+more
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	slices.SortFunc(uploads, func(a, b admin.Upload) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Path, b.Path), cmp.Compare(a.ID, b.ID))
	})
	return uploads, all, nil
}

// buckets are those with a journal of a tenant, or of all.
func (o *Overview) buckets(name string) ([]*s3client.Bucket, error) {
	all := o.parts.Buckets()
	if name != "" {
		all = slices.DeleteFunc(slices.Clone(all), func(b *s3client.Bucket) bool { return b.Tenant != name })
		if len(all) == 0 {
			return nil, fmt.Errorf("tenant %s: %w", name, fs.ErrNotExist)
		}
	}
	var usable []*s3client.Bucket
	for _, b := range all {
		known, err := b.Up()
		if known && err == nil && b.Usable() {
			if b.Journal == nil {
				return nil, errNoJournal
			}
			usable = append(usable, b)
		}
	}
	return usable, nil
}

// uploadsIn are those of a bucket.
func (o *Overview) uploadsIn(ctx context.Context, b *s3client.Bucket) (uploads []admin.Upload, all int, err error) {
	pending, all, err := b.Journal.Pending(ctx, maxUploads)
	if err != nil {
		return nil, 0, fmt.Errorf("tenant %s: bucket %s: %w", b.Tenant, b.Name, err)
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
		u := admin.Upload{
			ID: p.ID, Tenant: b.Tenant, User: user, Path: strings.TrimSuffix("/"+strings.Trim(b.Folder, "/"), "/") + "/" + strings.TrimPrefix(p.Key, b.Prefix),
			LastPart: p.Written.UTC(), State: p.State,
		}
		if p.Bytes >= 0 {
			u.Bytes = &p.Bytes
		}
		uploads = append(uploads, u)
	}
	return uploads, all, nil
}

// owners are the users of a tenant, by the IDs of the owners of uploads.
func (o *Overview) owners(b *s3client.Bucket, name string) map[string]string {
	owners := map[string]string{}
	for _, user := range o.parts.Registry.Users(name) {
		owners[b.Journal.OwnerID(tenant.Owner(user, name))] = user
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

// Abort implements [admin.Source].
func (o *Overview) Abort(ctx context.Context, name, id string) error {
	ctx = account.InTenant(ctx, name)
	buckets, err := o.buckets(name)
	if err != nil {
		return err
	}
	for _, b := range buckets {
		if err := b.Journal.Abort(ctx, id); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("upload %s of tenant %s: %w: it may be complete, or removed", id, name, fs.ErrNotExist)
}
