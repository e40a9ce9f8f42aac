package s3client

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

// Buckets returns the bucket of each tenant, by the tenant's name, including the buckets of its folders. It sends no
// requests to S3. The error names the bucket whose region is unknown, or whose known server lacks a required feature.
func (f *Factory) Buckets(cfg *config.Config) (map[string]*Bucket, error) {
	buckets := map[string]*Bucket{}
	for name, t := range cfg.Tenants {
		section := "tenants." + name
		layers := []layer{{section + ".s3", t.S3}, {"s3", cfg.S3}}
		b := newBucket(t, cfg.StorageOf(t), layers)
		b.partSize = int64(cfg.PartSize)
		b.Tenant, b.Name, b.Prefix, b.keys.bucket = name, t.Bucket, t.Prefix, section+".bucket"
		if err := b.connect(f, cfg.StorageOf(t), t.Presign); err != nil {
			return nil, err
		}
		for _, dir := range slices.Sorted(maps.Keys(t.Folders)) {
			fc, section := t.Folders[dir], section+".folders."+dir
			storage := cfg.StorageOfFolder(t, fc)
			folder := newBucket(t, storage, append([]layer{{section + ".s3", fc.S3}}, layers...))
			folder.Tenant, folder.Folder, folder.Prefix, folder.partSize = name, dir, fc.Prefix, b.partSize
			folder.Name, folder.keys.bucket = fc.Bucket, section+".bucket"
			if fc.Bucket == "" {
				folder.Name, folder.keys.bucket = b.Name, b.keys.bucket
			}
			if err := folder.connect(f, storage, t.Presign); err != nil {
				return nil, err
			}
			b.Folders = append(b.Folders, folder)
		}
		buckets[name] = b
	}
	return buckets, nil
}

// StateBucket returns the bucket of the shared state. It sends no requests to S3. The error says that its region is
// unknown, or that its known server lacks conditional writes.
func (f *Factory) StateBucket(cfg *config.Config) (*Bucket, error) {
	storage := cfg.State.S3.Inherit(cfg.S3)
	b := newBucket(&config.Tenant{}, storage, []layer{{"state.s3", cfg.State.S3}, {"s3", cfg.S3}})
	b.forState, b.Name, b.Prefix, b.keys.bucket = true, cfg.State.Bucket, cfg.State.Prefix, "state.bucket"
	return b, b.connect(f, storage, 0)
}

// newBucket returns a bucket of tenant t. storage is the result of merging layers.
func newBucket(t *config.Tenant, storage config.S3, layers []layer) *Bucket {
	return &Bucket{
		Objects:        objectsOf(&t.Objects),
		account:        accountOf(storage),
		keys:           configKeysOf(layers),
		rules:          needsOf(t.Objects.Rules),
		customerKey:    t.Objects.Key(),
		resumable:      t.Resume == config.KeepInterrupted,
		resumeRequired: t.Resume == config.KeepInterrupted && !t.ResumeByDefault,
	}
}

// A layer is a section of the configuration with settings for an S3 server. The first layer that sets a value wins.
type layer struct {
	section string
	s3      config.S3
}

// configKeysOf returns the section that each value comes from. The last layer is the section of the whole server,
// which is the default.
func configKeysOf(layers []layer) configKeys {
	first := func(gives func(config.S3) bool) string {
		for _, l := range layers[:len(layers)-1] {
			if gives(l.s3) {
				return l.section
			}
		}
		return layers[len(layers)-1].section
	}
	return configKeys{
		endpoint:    first(func(s config.S3) bool { return s.Endpoint != "" }),
		region:      first(func(s config.S3) bool { return s.Region != "" }),
		credentials: first(func(s config.S3) bool { return s.AccessKeyID != "" }),
		role:        first(func(s config.S3) bool { return s.AssumeRole.IsSet() }),
	}
}

// connect creates the client of a bucket, and its presigner if links are enabled. Links are valid for presign.
func (b *Bucket) connect(factory *Factory, storage config.S3, presign time.Duration) error {
	b.Endpoint = factory.route(b.account)
	if storage.AssumeRole.IsSet() {
		b.account.role = factory.assume(b, storage.AssumeRole, presign)
	}
	made, err := factory.client(b.account)
	b.Client, b.checksums = made.Client, made.checksums
	if err == nil && presign > 0 {
		public := b.account
		public.endpoint = cmp.Or(storage.PublicEndpoint, public.endpoint)
		var links client
		if links, err = factory.client(public); err == nil {
			b.Presigner, b.links = s3.NewPresignClient(links.Client), links.Client
		}
	}
	if err != nil {
		return b.newError(err, "its region is unknown", "set %s.region or AWS_REGION", b.keys.region)
	}
	// Errors that follow from the configuration alone stop the server. Errors found by requests only make one bucket
	// unusable.
	if known, ok := driver.ProfileNamed(b.knownProfile()); ok {
		b.setProfile(known)
		return b.checkSupported()
	}
	return nil
}
