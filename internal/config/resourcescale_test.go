package config

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// manyResources returns a cluster with 1,000 tenants and 10,000 users in 50 namespaces.
func manyResources(t testing.TB) *fakeCluster {
	f := newFakeCluster(t, allowAll)
	for i := range 1000 {
		namespace := fmt.Sprintf("ns-%d", i%50)
		f.secret(namespace, "login", "password_hash", hash)
		f.tenant(fmt.Sprintf("%s/t%d", namespace, i), fmt.Sprintf("{bucket: data-%d, prefix: in, hosts: [t%d.example], quota: 1GiB}", i, i))
		for j := range 10 {
			f.user(fmt.Sprintf("%s/u%d-%d", namespace, i, j), fmt.Sprintf("t%d", i), fmt.Sprintf("home: /h, root: /u%d", j))
		}
	}
	return f
}

// BenchmarkResources merges 1,000 tenants and 10,000 users for the first time, without a change, and after a change of
// one user and of one tenant.
func BenchmarkResources(b *testing.B) {
	f := manyResources(b)
	r := f.current()
	for name, change := range map[string]func(int){
		"cold":       func(int) { f.merge = nil },
		"unchanged":  func(int) {},
		"one-user":   func(n int) { f.user("ns-7/u7-3", "t7", fmt.Sprintf("home: /%d", n)) },
		"one-tenant": func(n int) { f.tenant("ns-7/t7", fmt.Sprintf("{bucket: data-7, prefix: in-%d}", n)) },
		"one-secret": func(int) { f.secret("ns-7", "login", "password_hash", hash) },
	} {
		b.Run(name, func(b *testing.B) {
			f.merged, f.merge = f.cfg.MergeResources(r, nil)
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				change(n)
				r = f.current()
				b.StartTimer()
				f.merged, f.merge = f.cfg.MergeResources(r, f.merge)
			}
		})
	}
}

// The limits are several times what a merge takes on a machine of 2026, so that other work does not fail the test.
func TestManyResources(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	f := manyResources(t)
	r := f.current()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	f.merged, f.merge = f.cfg.MergeResources(r, nil)
	cold := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	first := f.merged
	began = time.Now()
	f.merged, f.merge = f.cfg.MergeResources(r, f.merge)
	unchanged := time.Since(began)
	size := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20
	t.Logf("cold %v, unchanged %v, %d MiB", cold, unchanged, size)
	if first.UsersCount() != 10_000 || f.merged != first {
		t.Errorf("got %d users; the same configuration: %t", first.UsersCount(), f.merged == first)
	}
	if cold > 10*time.Second || unchanged > 200*time.Millisecond || size > 60 {
		t.Errorf("cold %v, unchanged %v, %d MiB", cold, unchanged, size)
	}
}
