package account

import (
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// Quotas with the same root share a usage, regardless of how the configuration spells the root, and a reload keeps
// it.
func TestUsageByPlace(t *testing.T) {
	cfg := config.Default()
	user := func(root string) *config.User { return &config.User{Root: root, Quota: 100} }
	cfg.Tenants = map[string]*config.Tenant{
		"acme": {Bucket: "data", Prefix: "in/", Users: map[string]*config.User{
			"plain": user("/a"), "slash": user("/a/"), "dots": user("/b/../a/."), "twice": user("//a"), "other": user("/ab"), "below": user("/a/b"),
		}},
		"same":   {Bucket: "data", Prefix: "in/a/", Quota: 50, Users: map[string]*config.User{"root": user("/"), "none": user("")}},
		"bucket": {Bucket: "data2", Prefix: "in/a/", Quota: 50},
	}
	buckets := func() map[string]*s3client.Bucket {
		all := map[string]*s3client.Bucket{}
		for name, tc := range cfg.Tenants {
			all[name] = &s3client.Bucket{Tenant: name, Name: tc.Bucket, Prefix: tc.Prefix}
		}
		return all
	}
	r := registryWith(t, cfg, buckets())
	usages := func() map[string]any {
		found := map[string]any{}
		for _, q := range r.Quotas() {
			found[q.Tenant+"/"+q.User] = q.Usage
		}
		return found
	}
	first := usages()
	for who, same := range map[string]bool{
		"acme/slash": true, "acme/dots": true, "acme/twice": true, "same/": true, "same/root": true, "same/none": true,
		"acme/other": false, "acme/below": false, "bucket/": false,
	} {
		if first[who] == nil || (first[who] == first["acme/plain"]) != same {
			t.Errorf("%s shares the usage of acme/plain: got %t, want %t", who, !same, same)
		}
	}
	next := *cfg
	next.Tenants = map[string]*config.Tenant{}
	for name, tc := range cfg.Tenants {
		changed := *tc
		next.Tenants[name] = &changed
	}
	change(t, r, &next, buckets()) // for example with other credentials
	for who, usage := range usages() {
		if usage != first[who] {
			t.Errorf("%s has a different usage after a reload", who)
		}
	}
}
