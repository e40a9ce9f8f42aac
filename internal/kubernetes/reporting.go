package kubernetes

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

const (
	// checkInterval is the time between two looks at the state of the buckets.
	checkInterval = time.Second
	// certificateInterval is the time between two checks of the certificates.
	certificateInterval = time.Minute
	// usageInterval is the time between two questions to all replicas.
	usageInterval = 15 * time.Second
	// numbersInterval is the minimum time between two writes of the numbers of a resource.
	numbersInterval = time.Minute

	// maxBatch is the number of statuses that are written before the leader looks for news, and maxParallelWrites how
	// many of them at the same time. At most maxNumbers of them have only new numbers, because others are urgent.
	maxBatch, maxParallelWrites, maxNumbers = 200, 16, 50
	// writeTimeout limits one write of a status.
	writeTimeout = 10 * time.Second
	// firstRetry is the time after which a failed write is repeated. It doubles up to maxRetry.
	firstRetry, maxRetry = time.Second, time.Minute
	// logInterval is the minimum time between two lines about failed writes.
	logInterval = time.Minute

	// maxProbes is the number of tenants whose buckets are probed at the same time.
	maxProbes = 8
	// firstProbeRetry is the time after which a failed probe is repeated. It doubles up to maxProbeRetry.
	firstProbeRetry, maxProbeRetry = 30 * time.Second, 5 * time.Minute
)

// A resourceKey identifies a resource.
type resourceKey struct {
	kind            config.ResourceKind
	namespace, name string
}

// An item is a resource and its status.
type item struct {
	key     resourceKey
	outcome *config.ResourceOutcome
	numbers numbers
	round   int  // of the last merge with this resource
	begun   bool // what an earlier leader has written was read

	queued     bool
	retryAt    time.Time     // not to be written before, because a write has failed
	retry      time.Duration // the time until retryAt
	numbersAt  time.Time     // time of the last write of numbers
	numbersDue time.Time     // not to be written before, because only numbers have changed
	written    string        // resource version that the last write has replaced

	tenant *tenantItem // nil for a user
}

// A tenantItem holds the state of a tenant.
type tenantItem struct {
	health      server.TenantHealth
	certificate *verdict // nil without a certificate
	probe       probe
	// probed means that an earlier leader has probed the generation in use, and found no problem.
	probed bool
}

// A probe is the last probe of the buckets of a tenant.
type probe struct {
	storage  *s3client.Bucket // what it has tried; nil before the first probe has ended
	problems []string
	running  bool
	next     time.Time // when it is repeated, if there are problems
	retry    time.Duration
}

// probed is the result of a probe.
type probed struct {
	of       *item
	storage  *s3client.Bucket
	problems []string
}

// A leader compares the resources with their statuses in the API, and writes those that differ. A new leader writes
// nothing if nothing has changed. Its fields are used by one goroutine, except those below mu.
type leader struct {
	*reporter
	event func(o *Object, events []event)

	merge     *config.ResourceMerge
	round     int
	items     map[resourceKey]*item
	tenants   []*item
	queue     []*item
	usage     *admin.Usage
	sessions  map[string]int64 // by tenant
	users     map[string]int64 // users in use, by tenant
	checked   time.Time
	certsRead time.Time
	probing   int
	logged    time.Time // when a failed write was logged
	news      chan struct{}

	mu      sync.Mutex
	asked   *admin.Usage // the last usage; nil after it was used
	results []probed
}

func newLeader(r *reporter, event func(*Object, []event)) *leader {
	return &leader{reporter: r, event: event, items: map[resourceKey]*item{}, news: make(chan struct{}, 1)}
}

// wakeUp lets the leader look for news.
func (l *leader) wakeUp() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// run writes statuses until ctx ends.
func (l *leader) run(ctx context.Context) {
	l.askUsage(ctx) // first of all, so that no number is written that is wrong
	panics.Go(func() {
		ticker := time.NewTicker(usageInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.askUsage(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		more, err := panics.Result(func() (bool, error) { return l.step(ctx), nil })
		if err != nil {
			l.log.Error("status of custom resources not written; retrying", "err", err)
		}
		if more && ctx.Err() == nil {
			continue
		}
		select {
		case <-l.news:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// askUsage asks all replicas.
func (l *leader) askUsage(ctx context.Context) {
	u, err := panics.Result(func() (*admin.Usage, error) { return l.server.Usage(ctx), nil })
	if err != nil || ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = u
	l.wakeUp()
}

// step looks for news and writes statuses. It reports whether there are more to write now.
func (l *leader) step(ctx context.Context) (more bool) {
	now := l.now()
	l.mu.Lock()
	usage, results := l.asked, l.results
	l.asked, l.results = nil, nil
	l.mu.Unlock()
	l.reporter.mu.Lock()
	merged := l.merged
	l.reporter.mu.Unlock()
	if usage != nil {
		l.use(usage)
	}
	if changed := merged != nil && merged != l.merge; changed {
		l.apply(merged)
		l.checked = time.Time{}
	}
	l.count()
	for _, r := range results {
		l.probeEnded(r, now)
	}
	if now.Sub(l.checked) >= checkInterval || len(results) > 0 {
		l.check(ctx, now)
	}
	return l.write(ctx, now)
}

// use replaces the usage.
func (l *leader) use(u *admin.Usage) {
	for n, err := range u.Missing {
		if l.usage == nil || l.usage.Missing[n] == nil {
			l.log.Warn("replica does not respond; the status of custom resources does not count its sessions",
				"replica", n, "err", err)
		}
	}
	l.usage, l.sessions = u, map[string]int64{}
	for tenant, users := range u.Users {
		for _, user := range users {
			l.sessions[tenant] += int64(user.Sessions)
		}
	}
}

// apply replaces the outcomes of the resources.
func (l *leader) apply(m *config.ResourceMerge) {
	l.merge, l.users, l.tenants, l.certsRead = m, map[string]int64{}, nil, time.Time{}
	l.round++
	for _, o := range m.Outcomes {
		key := resourceKey{o.Resource.Kind, o.Resource.Namespace, o.Resource.Name}
		it := l.items[key]
		if it == nil || it.outcome.Resource.UID != o.Resource.UID {
			it = &item{key: key, outcome: o}
			if key.kind == config.TenantResource {
				it.tenant = &tenantItem{}
			}
			l.items[key] = it
			l.enqueue(it)
		}
		if it.outcome != o {
			it.outcome = o
			if it.tenant != nil {
				it.tenant.probed = false
			}
			l.enqueue(it)
		}
		it.round = l.round
		if it.tenant != nil {
			l.tenants = append(l.tenants, it)
		} else if o.Used != nil {
			l.users[o.Tenant]++
		}
	}
	maps.DeleteFunc(l.items, func(_ resourceKey, it *item) bool { return it.round != l.round })
}

// begin notes what an earlier leader has written. It reports whether the resource can be read, which takes a moment
// after the start with a copy of the resources.
func (l *leader) begin(it *item, now time.Time) bool {
	if it.begun {
		return true
	}
	before, o := l.status(it)
	if o == nil {
		return false
	}
	it.begun = true
	if before.ObservedGeneration > 0 {
		it.numbersAt = now // the previous leader may have written them just before
	}
	if it.tenant != nil && it.outcome.Used != nil {
		c := before.condition(conditionBucket)
		it.tenant.probed = c != nil && c.Status == metav1.ConditionTrue &&
			c.ObservedGeneration == it.outcome.Used.Generation
	}
	return true
}

// status returns the status of a resource in the API and the resource, or an empty status and nil if it was deleted.
func (l *leader) status(it *item) (*Status, *Object) {
	s := &Status{}
	o := l.object(it.key.kind, it.key.namespace, it.key.name)
	if o == nil || string(o.UID) != it.outcome.Resource.UID {
		return s, nil
	}
	if len(o.Status) > 0 && json.Unmarshal(o.Status, s) != nil {
		return &Status{}, o // the next write replaces it
	}
	return s, o
}

// enqueue lets the status of a resource be compared and written.
func (l *leader) enqueue(it *item) {
	it.numbersDue = time.Time{}
	if !it.queued {
		it.queued = true
		l.queue = append(l.queue, it)
	}
}

// count finds the resources whose numbers have changed.
func (l *leader) count() {
	if l.usage == nil {
		return
	}
	for _, it := range l.items {
		if n := l.numbersOf(it.outcome); n != it.numbers {
			it.numbers = n
			l.enqueue(it)
		}
	}
}

// numbersOf returns the numbers of a resource. They are 0 if it is not in use, because another tenant or user may have
// its name.
func (l *leader) numbersOf(o *config.ResourceOutcome) (n numbers) {
	switch {
	case o.Used == nil:
	case o.Resource.Kind == config.TenantResource:
		n.users, n.sessions = l.users[o.Tenant], l.sessions[o.Tenant]
	default:
		u := l.usage.Users[o.Tenant][o.User]
		n.sessions = int64(u.Sessions)
		if !u.LastLogin.Before(o.Resource.Created) { // an older login was of a deleted user with this name
			n.lastLogin = u.LastLogin
		}
	}
	return n
}

// check compares the state of the tenants with what is known, and starts probes.
func (l *leader) check(ctx context.Context, now time.Time) {
	l.checked = now
	readCertificates := now.Sub(l.certsRead) >= certificateInterval
	if readCertificates {
		l.certsRead = now
	}
	var due []*item
	unchecked := false
	for _, it := range l.tenants {
		t, o := it.tenant, it.outcome
		var h server.TenantHealth
		if o.Used != nil {
			h = l.server.TenantHealth(o.Tenant)
		}
		begun := l.begin(it, now)
		if t.probed && h.Storage != nil {
			t.probe.storage, t.probed = h.Storage, false
		}
		last := t.health
		if t.health = h; h.Storage != last.Storage || h.Checked != last.Checked || text(h.Err) != text(last.Err) {
			l.enqueue(it)
		}
		if last.Err != nil && h.Err == nil {
			t.probe.next = now
		}
		if readCertificates {
			l.readCertificates(it, now)
		}
		unchecked = unchecked || h.Storage != nil && !h.Checked
		if begun && t.isDue(now) {
			due = append(due, it)
		}
	}
	if unchecked {
		return // logins wait for these checks, and probes would delay them
	}
	for _, it := range due[:min(len(due), maxProbes-l.probing)] {
		l.startProbe(ctx, it)
	}
}

// isDue reports whether the buckets should be probed now.
func (t *tenantItem) isDue(now time.Time) bool {
	h, p := t.health, &t.probe
	return h.Storage != nil && h.Checked && h.Err == nil && !p.running &&
		(p.storage != h.Storage || len(p.problems) > 0 && !now.Before(p.next))
}

// text returns the text of an error, or "".
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// readCertificates examines the certificates of a tenant.
func (l *leader) readCertificates(it *item, now time.Time) {
	var next *verdict
	if it.outcome.Used != nil {
		all, missing := l.server.TenantCertificates(it.outcome.Tenant)
		if v, ok := certificateReady(all, missing, now); ok {
			next = &v
		}
	}
	if !equal(next, it.tenant.certificate) {
		it.tenant.certificate = next
		l.enqueue(it)
	}
}

// startProbe tries the buckets of a tenant in the background.
func (l *leader) startProbe(ctx context.Context, it *item) {
	storage, tenant := it.tenant.health.Storage, it.outcome.Tenant
	it.tenant.probe.running = true
	l.probing++
	panics.Go(func() {
		problems, err := panics.Result(func() ([]string, error) { return l.server.ProbeTenant(ctx, tenant), nil })
		if err != nil {
			problems = []string{err.Error()}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.results = append(l.results, probed{it, storage, problems})
		l.wakeUp()
	})
}

// probeEnded uses the result of a probe.
func (l *leader) probeEnded(r probed, now time.Time) {
	l.probing--
	p := &r.of.tenant.probe
	p.running, p.storage, p.problems = false, r.storage, r.problems
	if len(p.problems) == 0 {
		p.retry = 0
	} else {
		p.retry = min(max(2*p.retry, firstProbeRetry), maxProbeRetry)
		p.next = now.Add(p.retry)
	}
	if l.items[r.of.key] == r.of {
		l.enqueue(r.of)
	}
}

// A write is a status to be written.
type write struct {
	of            *item
	before, after *Status
	object        *Object // before the write

	result *Object
	err    error
}

// write writes the statuses that differ, and reports whether there are more.
func (l *leader) write(ctx context.Context, now time.Time) (more bool) {
	var batch []*write
	onlyNumbers := 0
	queue := l.queue
	l.queue = nil
	for i, it := range queue {
		if len(batch) == maxBatch {
			l.queue, more = append(l.queue, queue[i:]...), true
			break
		}
		if l.items[it.key] != it {
			continue // deleted
		}
		w, urgent := l.compare(it, now)
		switch {
		case w != nil && (urgent || onlyNumbers < maxNumbers):
			if !urgent {
				onlyNumbers++
			}
			it.queued = false
			batch = append(batch, w)
		case w != nil || now.Before(it.retryAt) || now.Before(it.numbersDue):
			l.queue = append(l.queue, it)
		default:
			it.queued = false
		}
	}
	l.send(ctx, batch)
	for _, w := range batch {
		l.written(ctx, w, now)
	}
	return more
}

// compare returns the write that a resource needs now, or nil. It is urgent if more than numbers have changed.
func (l *leader) compare(it *item, now time.Time) (w *write, urgent bool) {
	if now.Before(it.retryAt) || now.Before(it.numbersDue) {
		return nil, false
	}
	l.begin(it, now)
	before, o := l.status(it)
	switch {
	case o == nil: // deleted, which the next outcomes say, or not read yet
		it.retryAt = now.Add(firstRetry)
		return nil, false
	case o.ResourceVersion == it.written:
		it.retryAt = now.Add(firstRetry) // the watch has not shown the last write yet
		return nil, false
	case before.ObservedGeneration > it.outcome.Resource.Generation && before.ObservedGeneration <= o.Generation:
		return nil, false // another leader knew a newer version, which this replica will read soon
	}
	after := l.next(it, before, now)
	urgent = !after.sameState(before)
	switch {
	case urgent:
	case after.sameNumbers(before):
		return nil, false
	case now.Sub(it.numbersAt) < numbersInterval:
		it.numbersDue = it.numbersAt.Add(numbersInterval)
		return nil, false
	}
	return &write{of: it, before: before, after: after, object: o}, urgent
}

// next returns the status that a resource should have.
func (l *leader) next(it *item, before *Status, now time.Time) *Status {
	o, n := it.outcome, it.numbers
	if last := before.lastLogin(); last.After(n.lastLogin) {
		n.lastLogin = last // before the servers were started
	}
	conditions := map[string]verdict{conditionAccepted: accepted(o)}
	if t := it.tenant; t == nil {
		conditions[conditionReady] = ready(o)
	} else {
		bucket := bucketReady(o, t.health, &t.probe, before.condition(conditionBucket))
		conditions[conditionBucket], conditions[conditionReady] = bucket, ready(o, bucket)
		if t.certificate != nil {
			conditions[conditionCertificate] = *t.certificate
			conditions[conditionReady] = ready(o, bucket, *t.certificate)
		}
	}
	return statusOf(before, o, conditions, n, now)
}

// send writes statuses in parallel.
func (l *leader) send(ctx context.Context, batch []*write) {
	var group errgroup.Group
	group.SetLimit(maxParallelWrites)
	for _, w := range batch {
		group.Go(func() error {
			w.err = panics.Catch(func() (err error) {
				if err := l.limit.Wait(ctx); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, writeTimeout)
				defer cancel()
				w.result, err = l.put(ctx, w.of.key.kind, w.body())
				return err
			})
			return nil
		})
	}
	_ = group.Wait() // the writes have the errors
}

// body returns the resource to send. It has the resource version that was read, so that a write fails if the resource
// has changed since.
func (w *write) body() *Object {
	o := &Object{TypeMeta: metav1.TypeMeta{APIVersion: groupVersion().String(), Kind: string(w.of.key.kind)}}
	o.Namespace, o.Name = w.of.key.namespace, w.of.key.name
	o.UID, o.ResourceVersion = types.UID(w.of.outcome.Resource.UID), w.object.ResourceVersion
	o.Status, _ = json.Marshal(w.after) // a Status has only values that JSON has
	return o
}

// written uses the result of a write.
func (l *leader) written(ctx context.Context, w *write, now time.Time) {
	it := w.of
	switch {
	case w.err == nil:
		it.retry, it.written = 0, w.object.ResourceVersion
		if w.before.Sessions != nil && !w.after.sameNumbers(w.before) {
			it.numbersAt = now
		}
		l.event(w.result, eventsOf(w.before, w.after))
		return
	case apierrors.IsNotFound(w.err), ctx.Err() != nil:
		return
	case apierrors.IsConflict(w.err):
		it.retry = 0 // the watch will show the change
	case now.Sub(l.logged) >= logInterval:
		l.logged = now
		l.log.Warn("status of a custom resource not written; retrying", "kind", it.key.kind, "namespace", it.key.namespace,
			"name", it.key.name, "err", w.err)
	}
	it.retry = min(max(2*it.retry, firstRetry), maxRetry)
	it.retryAt = now.Add(it.retry)
	l.enqueue(it)
}
