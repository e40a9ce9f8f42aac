package s3client

import (
	"context"
	"log/slog"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// foldersOf returns a configuration with two tenants of one account. One of them has folders.
func foldersOf() *config.Config {
	cfg := config.Default()
	cfg.S3 = config.S3{Endpoint: "http://127.0.0.1:9", AccessKeyID: "AK", SecretAccessKey: value.NewSecret("SK")}
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "acme-data",
			Folders: map[string]*config.Folder{"/a": {Bucket: "a-data"}, "/b": {Bucket: "b-data"}}},
		"umbrella": {Bucket: "umbrella-data"},
	}
	return cfg
}

// Equal buckets are kept with their clients. Clients that no bucket uses are dropped.
func TestReuse(t *testing.T) {
	f := NewFactory(&aws.Config{Region: "us-east-1"}, nil, slog.New(slog.DiscardHandler))
	buckets := func(cfg *config.Config) map[string]*Bucket {
		t.Helper()
		made, err := f.Buckets(cfg)
		must.OK(t, err)
		return made
	}
	before := buckets(foldersOf())
	if before["acme"].Client != before["umbrella"].Client || len(f.clients) != 1 {
		t.Error("tenants of one account do not share the client")
	}
	for name, tc := range map[string]struct {
		change func(*config.Config)
		stay   []bool // whether acme, its folders /a and /b, and umbrella are kept
	}{
		"nothing": {func(*config.Config) {}, []bool{true, true, true, true}},
		"prefix": {func(c *config.Config) {
			c.Tenants["umbrella"].Prefix = "new/"
		}, []bool{true, true, true, false}},
		"folder": {func(c *config.Config) {
			c.Tenants["acme"].Folders["/a"].Bucket = "other"
		}, []bool{false, false, true, true}},
		"resume": {func(c *config.Config) {
			c.Tenants["umbrella"].Resume = config.KeepInterrupted
		}, []bool{true, true, true, false}},
		"links": {func(c *config.Config) {
			c.Tenants["umbrella"].Presign = 3600e9
		}, []bool{true, true, true, false}},
		"storage": {func(c *config.Config) {
			c.Tenants["umbrella"].Objects.StorageClass = "GLACIER"
		}, []bool{true, true, true, false}},
		"account":      {func(c *config.Config) { c.S3.AccessKeyID = "other" }, []bool{false, false, false, false}},
		"keys-of-role": {func(c *config.Config) { c.Tenants["umbrella"].S3 = c.S3 }, []bool{true, true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := foldersOf()
			tc.change(cfg)
			after := buckets(cfg)
			Reuse(after, before, func(*Bucket) bool { return true })
			old, all := All(before), All(after)
			for i, want := range tc.stay {
				if (all[i] == old[i]) != want {
					t.Errorf("bucket %d of %s stays: %v", i, all[i].Tenant, !want)
				}
			}
		})
	}
	after := buckets(foldersOf())
	Reuse(after, before, func(b *Bucket) bool { return b != before["umbrella"] })
	if after["umbrella"] == before["umbrella"] || after["acme"] != before["acme"] {
		t.Error("kept a refused bucket, or replaced another one")
	}
	if f.Forget(before); len(f.clients) != 1 || len(f.routes) != 1 {
		t.Errorf("got %d clients and %d routes", len(f.clients), len(f.routes))
	}
	for _, b := range All(maps.Clone(before)) {
		if made, err := f.client(b.account); err != nil || made.Client != b.Client {
			t.Error("the client of a bucket in use was forgotten")
		}
	}
}

// A Watcher checks buckets that are added, stops checking those that are removed, and keeps the state of the others.
func TestWatchOtherBuckets(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	bucketOf := func() *Bucket {
		t.Helper()
		all, err := open(t.Context(), servicetest.NewConfig(t, s), s.AWSConfig())
		must.OK(t, err)
		return all[0]
	}
	first, second := bucketOf(), bucketOf()
	usable := make(chan *Bucket, 10)
	w := &Watcher{Log: slog.New(slog.DiscardHandler), Usable: func(ctx context.Context, b *Bucket) {
		if ctx.Err() == nil {
			usable <- b
		}
	}}
	w.Watch([]*Bucket{first})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		w.Run(ctx)
		close(ended)
	}()
	if got := <-usable; got != first {
		t.Error("an unchecked bucket is usable")
	}
	known := first.watched
	w.Watch([]*Bucket{first, second})
	if got := <-usable; got != second || first.watched != known || !first.Usable() {
		t.Error("the first bucket was checked again")
	}
	if first.AddOverwriteMode(config.DenyOverwrite) || !first.AddOverwriteMode(config.AllowOverwrite) {
		t.Error("a bucket in use got an overwrite mode without verification")
	}
	w.Watch([]*Bucket{second})
	cancel()
	<-ended
}

func TestPlace(t *testing.T) {
	of := func(endpoint, name string) *Bucket { return &Bucket{Name: name, account: account{endpoint: endpoint}} }
	base := of("http://s3.example:9000", "data")
	for _, test := range []struct {
		one, other *Bucket
		want       bool
	}{
		{base, of("http://s3.example:9000", "data"), true},
		{base, of("http://s3.example:9000/", "data"), true},
		{base, of("HTTP://S3.Example:9000", "data"), true},
		{base, of("http://s3.example:9001", "data"), false},
		{base, of("https://s3.example:9000", "data"), false},
		{base, of("http://s3.example:9000", "other"), false},
		{of("https://s3.example", "data"), of("https://s3.example:443/", "data"), true},
		{of("http://s3.example", "data"), of("http://s3.example:80", "data"), true},
		{of("http://s3.example", "data"), of("http://s3.example:443", "data"), false},
		{of("http://s3.example/one", "data"), of("http://s3.example/two", "data"), false},
		{of("", "data"), of("https://s3.eu-west-1.amazonaws.com", "data"), true},
		{of("", "data"), base, false},
	} {
		if got := test.one.SamePlace(test.other); got != test.want {
			t.Errorf("%v and %v: got %t, want %t", test.one.Place(), test.other.Place(), got, test.want)
		}
	}
}
