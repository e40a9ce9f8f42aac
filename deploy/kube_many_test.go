//go:build kube

package deploy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// How many resources TestKubeMany has, and what it allows.
const (
	manyNamespaces = 10
	manyTenants    = 1_000
	manyUsers      = 10_000
	manyPassword   = "password_hash_secret: {name: ftp-users}"

	startLimit  = 5 * time.Second // from the start of the process until it knows all users
	memoryLimit = 250             // MiB

	changeRate = 200 // a second
	changeTime = 30 * time.Second
	// reloadRate limits how many changes of the configuration become one reload, a second.
	reloadRate = 2
)

// reloadMessage is logged for each reload of resources.
const reloadMessage = "tenants and users reloaded"

// TestKubeMany starts a server with 10,000 users in 1,000 tenants, and changes 200 of them each second.
func TestKubeMany(t *testing.T) {
	namespaces := map[string]string{}
	for n := range manyNamespaces {
		namespaces[fmt.Sprintf("many-%d", n)] = `{buckets: ["*"]}`
	}
	s := newSite(t, namespaces)
	s.fill()

	r := s.launch(0, "")
	start := time.Now()
	took := s.wait("becoming ready", waitTimeout, r.ready)
	processor, used := r.processorTime(), r.memory()
	t.Logf("ready after %v and %v of a processor, with %d MiB", took, processor, used)
	for range 50 { // a login waits for the check of the tenant's bucket
		user := manyLogin(rand.IntN(manyUsers))
		s.wait("the login of "+user, waitTimeout, func() error { return r.mayLogin(user) })
	}
	t.Logf("50 logins after %v, with %d MiB", time.Since(start), r.memory())
	if took > busyFactor*startLimit || processor > startLimit {
		t.Errorf("knew all users after %v and %v of a processor, want %v", took, processor, startLimit)
	}
	if used > memoryLimit {
		t.Errorf("uses %d MiB, want %d", used, memoryLimit)
	}
	s.change(r)
	const withGarbage = memoryLimit * 3 / 2 // of thousands of requests to S3 and the API server
	if used := r.memory(); used > withGarbage {
		t.Errorf("after changes: uses %d MiB, want %d", used, withGarbage)
	}
}

func manyLogin(user int) string {
	tenant := user % manyTenants
	return fmt.Sprintf("user-%d@many-%d_tenant-%d", user, tenant%manyNamespaces, tenant)
}

func manyPath(user int) string {
	return resourcePath(fmt.Sprintf("many-%d/ftpusers/user-%d", user%manyTenants%manyNamespaces, user))
}

// fill creates all resources. Tenants share a bucket by prefix.
func (s *site) fill() {
	s.t.Helper()
	start := time.Now()
	bucket := s.storage.Bucket(s.t)
	var documents []string
	for tenant := range manyTenants {
		documents = append(documents, manifest("FTPTenant", fmt.Sprintf("many-%d", tenant%manyNamespaces),
			fmt.Sprintf("tenant-%d", tenant), fmt.Sprintf("bucket: %s, prefix: t%d/", bucket, tenant)))
	}
	for user := range manyUsers {
		tenant := user % manyTenants
		documents = append(documents, manifest("FTPUser", fmt.Sprintf("many-%d", tenant%manyNamespaces),
			fmt.Sprintf("user-%d", user), fmt.Sprintf("tenant: tenant-%d, %s, home: /home-%d", tenant, manyPassword, user)))
	}
	work := make(chan string)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for document := range work {
				if err := s.TryApply(document); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	for _, document := range documents {
		work <- document
	}
	close(work)
	group.Wait()
	s.t.Logf("created %d resources in %v", len(documents), time.Since(start))
	if s.t.Failed() {
		s.t.FailNow()
	}
}

// change changes the home of random users, and measures how long some of the changes take until they are in effect.
func (s *site) change(r *replica) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), changeTime)
	defer cancel()
	before, start := r.log.Count(reloadMessage), time.Now()
	var group sync.WaitGroup
	work := make(chan int)
	changed := 0
	group.Go(func() {
		defer close(work)
		every := time.NewTicker(time.Second / changeRate)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			select {
			case <-ctx.Done():
				return
			case work <- changed:
				changed++
			}
		}
	})
	for range 32 {
		group.Go(func() {
			for n := range work {
				patch := fmt.Sprintf(`{"spec": {"home": "/changed-%d"}}`, n)
				if err := s.Patch(manyPath(1+rand.IntN(manyUsers-1)), patch); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	var delays []time.Duration
	processor := r.processorTime()
	for n := 0; ctx.Err() == nil; n++ { // user 0
		home := fmt.Sprintf("/sample-%d", n)
		must.OK(s.t, s.Patch(manyPath(0), fmt.Sprintf(`{"spec": {"home": %q}}`, home)))
		delays = append(delays, s.wait("a change", waitTimeout, func() error {
			return r.startsIn(manyLogin(0), home)
		}))
	}
	group.Wait()
	seconds := time.Since(start).Seconds()
	reloads := float64(r.log.Count(reloadMessage) - before)
	longest := time.Duration(0)
	for _, d := range delays {
		longest = max(longest, d)
	}
	s.t.Logf("%.0f changes a second for %.0f s: %.2f reloads a second, %d samples in effect after %v at most, %v of a processor, %d MiB",
		float64(changed)/seconds, seconds, reloads/seconds, len(delays), longest, r.processorTime()-processor,
		r.memory())
	if rate := reloads / seconds; rate > reloadRate*1.05 {
		s.t.Errorf("%.2f reloads a second, want %d", rate, reloadRate)
	}
	if longest > busyFactor*takesEffect {
		s.t.Errorf("a change took %v, want %v", longest, takesEffect)
	}
}

// processorTime returns the time for which a processor has run the server.
func (r *replica) processorTime() time.Duration {
	r.s.t.Helper()
	text := must.ReadFile(r.s.t, fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	fields := strings.Fields(text[strings.LastIndex(text, ")")+1:])
	var ticks time.Duration
	for _, field := range fields[11:13] { // utime and stime (proc(5)), in hundredths of a second
		n, err := strconv.Atoi(field)
		must.OK(r.s.t, err)
		ticks += time.Duration(n)
	}
	return ticks * time.Second / 100
}
