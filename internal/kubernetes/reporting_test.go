package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A fakeServer has the state of tenants.
type fakeServer struct {
	health       map[string]server.TenantHealth
	certificates []certs.Certificate
	missing      []string
	usage        *admin.Usage
	problems     func(tenant string) []string

	mu     sync.Mutex
	probes int
}

func (s *fakeServer) TenantHealth(tenant string) server.TenantHealth { return s.health[tenant] }
func (s *fakeServer) ProbeTenant(_ context.Context, tenant string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes++
	return s.problems(tenant)
}
func (s *fakeServer) TenantCertificates(string) ([]certs.Certificate, []string) {
	return s.certificates, s.missing
}
func (s *fakeServer) Usage(context.Context) *admin.Usage { return s.usage }

// A cluster is an API server with resources, a server, and a leader, which all work only when the test says so.
type cluster struct {
	t       *testing.T
	server  *fakeServer
	objects map[resourceKey]*Object
	shown   map[resourceKey]*Object // what the watch has shown; nil: objects
	version int
	now     time.Time
	log     bytes.Buffer
	leader  *leader
	writes  []string // NAME and state of the written statuses
	events  []string
	fail    func(name string) error
	merge   *config.ResourceMerge
	putting sync.Mutex
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{
		t: t, objects: map[resourceKey]*Object{}, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
		server: &fakeServer{health: map[string]server.TenantHealth{}, usage: &admin.Usage{},
			problems: func(string) []string { return nil }},
		fail: func(string) error { return nil },
	}
	c.elect()
	return c
}

// elect makes a new process the leader.
func (c *cluster) elect() {
	r := newReporter(reporterOptions{
		log: slog.New(slog.NewTextHandler(&c.log, nil)), put: c.put,
		object: func(kind config.ResourceKind, namespace, name string) *Object {
			if c.shown != nil {
				return c.shown[resourceKey{kind, namespace, name}]
			}
			return c.objects[resourceKey{kind, namespace, name}]
		},
	})
	r.server, r.limit, r.now = c.server, flowcontrol.NewFakeAlwaysRateLimiter(), func() time.Time { return c.now }
	c.leader = newLeader(r, func(o *Object, events []event) {
		for _, e := range events {
			c.events = append(c.events, fmt.Sprintf("%s: %s %s: %s", o.Name, e.kind, e.reason, e.message))
		}
	})
	c.leader.askUsage(c.t.Context())
	if c.merge != nil {
		r.Applied(c.merge)
	}
}

// put is the API server.
func (c *cluster) put(_ context.Context, kind config.ResourceKind, o *Object) (*Object, error) {
	c.putting.Lock()
	defer c.putting.Unlock()
	if err := c.fail(o.Name); err != nil {
		return nil, err
	}
	key := resourceKey{kind, o.Namespace, o.Name}
	stored := c.objects[key]
	group := schema.GroupResource{Group: Group, Resource: string(kind)}
	switch {
	case stored == nil:
		return nil, apierrors.NewNotFound(group, o.Name)
	case stored.ResourceVersion != o.ResourceVersion || stored.UID != o.UID:
		return nil, apierrors.NewConflict(group, o.Name, errors.New("the object has been modified"))
	}
	next := *stored
	c.version++
	next.Status, next.ResourceVersion = o.Status, strconv.Itoa(c.version)
	c.objects[key] = &next
	c.writes = append(c.writes, o.Name)
	return &next, nil
}

// resource stores a resource, or the next generation of one, and returns its outcome.
func (c *cluster) resource(o config.ResourceOutcome, kind config.ResourceKind, name string) *config.ResourceOutcome {
	key := resourceKey{kind, "team", name}
	next := &Object{}
	if before := c.objects[key]; before != nil {
		*next = *before
	} else {
		next.Kind, next.Namespace, next.Name, next.UID = string(kind), "team", name, types.UID("uid-"+name)
	}
	c.version++
	next.Generation++
	next.ResourceVersion = strconv.Itoa(c.version)
	c.objects[key] = next
	o.Resource = &config.Resource{
		Kind: kind, Namespace: "team", Name: name, UID: string(next.UID), Generation: next.Generation,
		Created: c.now, Spec: fmt.Appendf(nil, `{"generation":%d}`, next.Generation),
	}
	if o.Reason == config.ResourceAccepted {
		o.Used = &config.AcceptedSpec{Generation: next.Generation, Spec: o.Resource.Spec}
	}
	return &o
}

func (c *cluster) tenant(o config.ResourceOutcome) *config.ResourceOutcome {
	o.Tenant = "team_acme"
	return c.resource(o, config.TenantResource, "acme")
}

func (c *cluster) user(name string, o config.ResourceOutcome) *config.ResourceOutcome {
	o.Tenant, o.User = "team_acme", name
	return c.resource(o, config.UserResource, name)
}

// apply puts outcomes into use.
func (c *cluster) apply(outcomes ...*config.ResourceOutcome) {
	c.merge = &config.ResourceMerge{Outcomes: outcomes}
	c.leader.Applied(c.merge)
}

// run lets the leader work until it has nothing to do, and returns the number of writes.
func (c *cluster) run() int {
	c.t.Helper()
	before := len(c.writes)
	for {
		for c.leader.step(c.t.Context()) {
		}
		if c.leader.probing == 0 {
			break
		}
		<-c.leader.news
	}
	c.leader.step(c.t.Context())
	return len(c.writes) - before
}

// pass lets time pass and the leader work.
func (c *cluster) pass(d time.Duration) int {
	c.t.Helper()
	c.now = c.now.Add(d)
	c.leader.askUsage(c.t.Context())
	return c.run()
}

func (c *cluster) status(kind config.ResourceKind, name string) (s Status) {
	c.t.Helper()
	must.OK(c.t, json.Unmarshal(c.objects[resourceKey{kind, "team", name}].Status, &s))
	return s
}

// want checks conditions of the form TYPE=STATUS REASON MESSAGE.
func (c *cluster) want(kind config.ResourceKind, name string, want ...string) {
	c.t.Helper()
	var got []string
	for _, v := range c.status(kind, name).Conditions {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s=%s %s %s", v.Type, v.Status, v.Reason, v.Message)))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: got conditions\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// usable sets the state of the bucket of the tenant.
func (c *cluster) usable(storage *s3client.Bucket, err error) {
	c.server.health["team_acme"] = server.TenantHealth{Storage: storage, Checked: true, Err: err}
}

var accepts = config.ResourceOutcome{Reason: config.ResourceAccepted}

const (
	tenantKind = config.TenantResource
	userKind   = config.UserResource

	firstInUse = "Accepted=True Accepted generation 1 is in use"
	bucketOK   = "BucketReady=True Ready"
	allOK      = "Ready=True Ready"
)

func TestConditions(t *testing.T) {
	bucket := &s3client.Bucket{}
	down := errors.New("tenant team_acme: bucket \"acme\": does not exist: correct tenants.team_acme.bucket")
	const isDown = "NotUsable tenant team_acme: bucket \"acme\": does not exist: correct spec.bucket"
	used := &config.AcceptedSpec{Generation: 1, Spec: []byte("{}")}
	refused := config.ResourceOutcome{Reason: config.ResourceInvalid, Message: "spec.prefix: wrong"}
	refusedAfter := refused
	refusedAfter.Used = used
	end := func(d time.Duration) []certs.Certificate {
		return []certs.Certificate{
			{Host: "late.example", NotAfter: time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)},
			{Host: "ftp.example", NotAfter: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).Add(d)},
		}
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name    string
		outcome config.ResourceOutcome
		health  server.TenantHealth
		probe   []string
		certs   []certs.Certificate
		missing []string
		want    []string
	}{
		{name: "ready", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true},
			want: []string{firstInUse, bucketOK, allOK}},
		{name: "warning", outcome: config.ResourceOutcome{Reason: config.ResourceAccepted, Message: "a text is refused"},
			health: server.TenantHealth{Storage: bucket, Checked: true},
			want:   []string{firstInUse + "; a text is refused", bucketOK, allOK}},
		{name: "checking", outcome: accepts, health: server.TenantHealth{Storage: bucket},
			want: []string{firstInUse, "BucketReady=Unknown Checking the bucket is being checked",
				"Ready=Unknown Checking the bucket is being checked"}},
		{name: "not-applied-yet", outcome: accepts,
			want: []string{firstInUse, "BucketReady=Unknown Checking the bucket is being checked",
				"Ready=Unknown Checking the bucket is being checked"}},
		{name: "down", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true, Err: down},
			want: []string{firstInUse, "BucketReady=False " + isDown, "Ready=False " + isDown}},
		{name: "probe", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true},
			probe: []string{"lacks s3:PutObject: set tenants.team_acme.s3.region", "folder /in: lacks s3:GetObject"},
			want: []string{firstInUse, "BucketReady=False ProbeFailed lacks s3:PutObject: set spec.s3.region; folder /in: lacks s3:GetObject",
				"Ready=False ProbeFailed lacks s3:PutObject: set spec.s3.region; folder /in: lacks s3:GetObject"}},
		{name: "refused", outcome: refused,
			want: []string{"Accepted=False Invalid spec.prefix: wrong",
				"BucketReady=Unknown NotAccepted no version of the spec is in use", "Ready=False Invalid spec.prefix: wrong"}},
		{name: "refused-with-a-version-in-use", outcome: refusedAfter,
			health: server.TenantHealth{Storage: bucket, Checked: true},
			want: []string{"Accepted=False Invalid spec.prefix: wrong", bucketOK,
				"Ready=False Invalid generation 1 stays in use: spec.prefix: wrong"}},
		{name: "certificate", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true}, certs: end(14 * day),
			want: []string{firstInUse, bucketOK,
				"CertificateReady=True Ready the certificate for ftp.example expires on 2026-11-15", allOK}},
		{name: "certificate-expires-soon", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true},
			certs: end(14*day - 1),
			want: []string{firstInUse, bucketOK,
				"CertificateReady=True ExpiresSoon the certificate for ftp.example expires on 2026-11-15: renew it", allOK}},
		{name: "certificate-expired", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true},
			certs: end(-1),
			want: []string{firstInUse, bucketOK, "CertificateReady=False Expired " +
				"the certificate for ftp.example expired on 2026-11-01, and clients reject it: renew it",
				"Ready=False Expired the certificate for ftp.example expired on 2026-11-01, and clients reject it: renew it"}},
		{name: "certificate-not-issued", outcome: accepts, health: server.TenantHealth{Storage: bucket, Checked: true},
			certs: end(90 * day), missing: []string{"a.example", "b.example"},
			want: []string{firstInUse, bucketOK, "CertificateReady=False NotIssued there is no certificate for a.example, " +
				"b.example yet: ACME has not issued one, or the host is not in tls.acme.hosts; the log of the servers has the reason",
				"Ready=False NotIssued there is no certificate for a.example, b.example yet: ACME has not issued one, " +
					"or the host is not in tls.acme.hosts; the log of the servers has the reason"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			c.server.health["team_acme"] = tt.health
			c.server.problems = func(string) []string { return tt.probe }
			c.server.certificates, c.server.missing = tt.certs, tt.missing
			c.apply(c.tenant(tt.outcome))
			c.run()
			c.want(tenantKind, "acme", tt.want...)
			s := c.status(tenantKind, "acme")
			if s.Name != "team_acme" || s.ObservedGeneration != 1 || (s.Accepted == nil) == (tt.outcome.Used != nil ||
				tt.outcome.Reason == config.ResourceAccepted) {
				t.Errorf("got status %+v", s)
			}
			if n := c.pass(time.Hour); n > 1 || n == 1 && tt.name != "certificate" {
				t.Errorf("%d writes without a change", n)
			}
		})
	}
}

func TestConditionsOfUsers(t *testing.T) {
	for _, tt := range []struct {
		name    string
		outcome config.ResourceOutcome
		enabled bool
		want    []string
	}{
		{"ready", accepts, true, []string{firstInUse, allOK}},
		{"disabled", config.ResourceOutcome{Reason: config.ResourceAccepted, Disabled: true}, false,
			[]string{firstInUse, "Ready=True Disabled the user is disabled"}},
		{"no-tenant", config.ResourceOutcome{Reason: config.ResourceTenantNotFound, Message: "tenant x does not exist"}, false,
			[]string{"Accepted=False TenantNotFound tenant x does not exist", "Ready=False TenantNotFound tenant x does not exist"}},
		{"refused", config.ResourceOutcome{Reason: config.ResourceSecretNotFound, Message: "no Secret x",
			Used: &config.AcceptedSpec{Generation: 7, Spec: []byte("{}")}}, true,
			[]string{"Accepted=False SecretNotFound no Secret x",
				"Ready=False SecretNotFound generation 7 stays in use: no Secret x"}},
		{"long", config.ResourceOutcome{Reason: config.ResourceInvalid, Message: strings.Repeat("é", maxMessage)}, false,
			[]string{"Accepted=False Invalid " + strings.Repeat("é", maxMessage/2-2) + " ...",
				"Ready=False Invalid " + strings.Repeat("é", maxMessage/2-2) + " ..."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			c.apply(c.user("alice", tt.outcome))
			c.run()
			c.want(userKind, "alice", tt.want...)
			if s := c.status(userKind, "alice"); s.Name != "alice@team_acme" || *s.Enabled != tt.enabled || s.Users != nil {
				t.Errorf("got status %+v", s)
			}
		})
	}
}

// An unchanged resource is not written again: by the same leader, by the next one, or with the same numbers.
func TestNoWriteWithoutAChange(t *testing.T) {
	c := newCluster(t)
	c.usable(&s3client.Bucket{}, nil)
	c.server.certificates = []certs.Certificate{{Host: "ftp.example", NotAfter: c.now.Add(365 * 24 * time.Hour)}}
	tenant, alice := c.tenant(accepts), c.user("alice", accepts)
	c.apply(tenant, alice)
	if c.run(); len(c.writes) < 2 {
		t.Fatalf("got writes %q", c.writes)
	}
	c.apply(tenant, alice)
	if n := c.pass(time.Hour); n != 0 {
		t.Errorf("the same leader: %d writes", n)
	}
	for _, health := range []server.TenantHealth{
		{}, {Storage: &s3client.Bucket{}}, {Storage: &s3client.Bucket{}, Checked: true},
	} {
		c.server.health["team_acme"] = health
		c.server.probes = 0
		c.elect()
		if n := c.run(); n != 0 || c.server.probes != 0 {
			t.Errorf("a new leader with %+v: %d writes, %d probes", health, n, c.server.probes)
		}
		c.server.health["team_acme"] = server.TenantHealth{Storage: &s3client.Bucket{}, Checked: true}
	}
	next := *alice
	c.apply(tenant, &next)
	if n := c.pass(time.Hour); n != 0 {
		t.Errorf("a new outcome without a difference: %d writes", n)
	}
}

// Only changes of a status change its time.
func TestLastTransitionTime(t *testing.T) {
	c := newCluster(t)
	bucket := &s3client.Bucket{}
	c.usable(bucket, nil)
	begun := c.now
	c.apply(c.tenant(accepts))
	c.run()
	c.pass(time.Hour)
	c.apply(c.tenant(config.ResourceOutcome{Reason: config.ResourceInvalid, Message: "wrong",
		Used: &config.AcceptedSpec{Generation: 1, Spec: []byte("{}")}}))
	c.run()
	c.elect()
	c.pass(time.Hour)
	for _, v := range c.status(tenantKind, "acme").Conditions {
		want, generation := begun, int64(2)
		if v.Type == conditionAccepted || v.Type == conditionReady {
			want = begun.Add(time.Hour)
		} else {
			generation = 1
		}
		if !v.LastTransitionTime.Time.Equal(want) || v.ObservedGeneration != generation {
			t.Errorf("%s: got time %v and generation %d", v.Type, v.LastTransitionTime, v.ObservedGeneration)
		}
	}
}

// Numbers are written at most once a minute for each resource, and conditions at once.
func TestNumbers(t *testing.T) {
	c := newCluster(t)
	bucket := &s3client.Bucket{}
	c.usable(bucket, nil)
	alice, bob := c.user("alice", accepts), c.user("bob", config.ResourceOutcome{Reason: config.ResourceInvalid})
	tenant := c.tenant(accepts)
	c.apply(tenant, alice, bob)
	c.run()
	login := c.now.Add(time.Second)
	sessions := func(n int) {
		login = login.Add(time.Second)
		c.server.usage = &admin.Usage{Users: map[string]map[string]admin.UserUsage{
			"team_acme":  {"alice": {Sessions: n, LastLogin: login}, "bob": {Sessions: 5}},
			"other_acme": {"alice": {Sessions: 100}},
		}}
	}
	for i, step := range []struct {
		pass     time.Duration
		sessions int
		written  int64
	}{
		{time.Second, 1, 1}, {30 * time.Second, 2, 1}, {29 * time.Second, 3, 1}, {time.Second, 3, 3},
		{time.Second, 4, 3}, {time.Second, 3, 3}, {58 * time.Second, 3, 3}, {time.Hour, 0, 0},
	} {
		sessions(step.sessions)
		c.pass(step.pass)
		s := c.status(userKind, "alice")
		if *s.Sessions != step.written {
			t.Errorf("step %d: got %d sessions, want %d", i, *s.Sessions, step.written)
		}
		if got := *c.status(tenantKind, "acme").Sessions; got != step.written+5 {
			t.Errorf("step %d: got %d sessions of the tenant, want %d", i, got, step.written+5)
		}
	}
	if got := c.status(userKind, "alice").LastLogin; !got.Time.Equal(login) {
		t.Errorf("got last login %v, want %v", got, login)
	}
	if got := *c.status(tenantKind, "acme").Users; got != 1 {
		t.Errorf("got %d users", got)
	}
	if got := *c.status(userKind, "bob").Sessions; got != 0 {
		t.Errorf("a user that is not in use has %d sessions", got)
	}
	sessions(7)
	c.pass(time.Second)
	c.usable(bucket, errors.New("down"))
	sessions(8)
	if n := c.pass(time.Second); n != 1 || *c.status(tenantKind, "acme").Sessions != 13 {
		t.Errorf("%d writes of a lost bucket, %d sessions", n, *c.status(tenantKind, "acme").Sessions)
	}
	c.server.usage = &admin.Usage{}
	c.elect()
	if n := c.run(); n != 0 {
		t.Errorf("a new leader writes numbers at once: %d writes", n)
	}
	c.pass(time.Hour)
	if s := c.status(userKind, "alice"); *s.Sessions != 0 || s.LastLogin == nil {
		t.Errorf("servers that have forgotten the login: got %+v", s)
	}
}

// A login before the user was created is of a deleted user with its name.
func TestLoginOfADeletedUser(t *testing.T) {
	c := newCluster(t)
	c.server.usage = &admin.Usage{Users: map[string]map[string]admin.UserUsage{
		"team_acme": {"alice": {LastLogin: c.now.Add(-time.Second)}}}}
	c.elect()
	c.apply(c.user("alice", accepts))
	c.run()
	if s := c.status(userKind, "alice"); s.LastLogin != nil {
		t.Errorf("got last login %v", s.LastLogin)
	}
}

// A replica that does not respond is logged once, and the others are counted.
func TestReplicaWithoutUsage(t *testing.T) {
	c := newCluster(t)
	c.apply(c.user("alice", accepts))
	c.server.usage = &admin.Usage{
		Users:   map[string]map[string]admin.UserUsage{"team_acme": {"alice": {Sessions: 2}}},
		Missing: map[int]error{1: errors.New("connection refused")},
	}
	c.pass(time.Second)
	c.pass(time.Second)
	if got := *c.status(userKind, "alice").Sessions; got != 2 {
		t.Errorf("got %d sessions", got)
	}
	if got := c.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "replica=1") {
		t.Errorf("the log has %q", got)
	}
}

// The buckets of a tenant are probed after each change of the storage, again after a failure, and as soon as a bucket
// can be used again.
func TestProbes(t *testing.T) {
	c := newCluster(t)
	bucket := &s3client.Bucket{}
	c.usable(bucket, nil)
	problems := []string{"lacks s3:PutObject"}
	c.server.problems = func(string) []string { return problems }
	c.apply(c.tenant(accepts))
	probes := func(want int, what string) {
		t.Helper()
		if c.server.probes != want {
			t.Errorf("%s: got %d probes, want %d", what, c.server.probes, want)
		}
		c.server.probes = 0
	}
	c.run()
	probes(1, "first")
	c.pass(firstProbeRetry - time.Second)
	probes(0, "before the retry")
	c.pass(time.Second)
	probes(1, "retry")
	c.pass(firstProbeRetry)
	probes(0, "before the second retry")
	c.usable(bucket, errors.New("down"))
	c.pass(time.Second)
	c.want(tenantKind, "acme", firstInUse, "BucketReady=False NotUsable down", "Ready=False NotUsable down")
	c.pass(time.Hour)
	probes(0, "a bucket that is down")
	problems = nil
	c.usable(bucket, nil)
	c.pass(time.Second)
	probes(1, "a bucket that is back")
	c.want(tenantKind, "acme", firstInUse, bucketOK, allOK)
	c.pass(time.Hour)
	probes(0, "after success")
	c.usable(bucket, errors.New("down"))
	c.pass(time.Second)
	c.usable(bucket, nil)
	c.pass(time.Second)
	probes(0, "back after success")
	c.want(tenantKind, "acme", firstInUse, bucketOK, allOK)
	c.usable(&s3client.Bucket{}, nil) // for example, users may do more
	c.pass(time.Second)
	probes(1, "other storage")
	if n := len(c.writes); n != 7 {
		t.Errorf("%d writes, want 7: checking, failed, down, failed, ready, down, ready", n)
	}
}

// Many tenants are probed and written in bounded steps, each once.
func TestManyResources(t *testing.T) {
	c := newCluster(t)
	const tenants, users = 100, 2000
	var outcomes []*config.ResourceOutcome
	for i := range tenants {
		name := fmt.Sprint("t", i)
		c.server.health["team_"+name] = server.TenantHealth{Storage: &s3client.Bucket{}, Checked: true}
		o := accepts
		o.Tenant = "team_" + name
		outcomes = append(outcomes, c.resource(o, tenantKind, name))
	}
	for i := range users {
		outcomes = append(outcomes, c.user(fmt.Sprint("u", i), accepts))
	}
	c.apply(outcomes...)
	if !c.leader.step(t.Context()) || len(c.writes) != maxBatch || c.leader.probing != maxProbes {
		t.Errorf("the first step writes %d statuses and probes %d tenants", len(c.writes), c.leader.probing)
	}
	if c.run(); c.server.probes != tenants || len(c.writes) < tenants+users || len(c.writes) > 2*tenants+users {
		t.Errorf("%d writes, %d probes", len(c.writes), c.server.probes)
	}
	c.server.usage = &admin.Usage{Users: map[string]map[string]admin.UserUsage{"team_acme": {}}}
	for i := range users {
		c.server.usage.Users["team_acme"][fmt.Sprint("u", i)] = admin.UserUsage{Sessions: 1}
	}
	c.now = c.now.Add(time.Hour)
	c.leader.askUsage(t.Context())
	before := len(c.writes)
	if c.leader.step(t.Context()) || len(c.writes)-before != maxNumbers {
		t.Errorf("a step writes numbers of %d resources", len(c.writes)-before)
	}
	for range users/maxNumbers - 1 {
		c.leader.step(t.Context())
	}
	if got := len(c.writes) - before; got != users {
		t.Errorf("numbers of %d resources are written", got)
	}
}

// What the API server says to a write decides what happens next.
func TestWriteErrors(t *testing.T) {
	group := schema.GroupResource{Group: Group, Resource: Users}
	for _, tt := range []struct {
		name    string
		err     error
		retries bool
		logged  string
	}{
		{"conflict", apierrors.NewConflict(group, "alice", errors.New("x")), true, ""},
		{"not-found", apierrors.NewNotFound(group, "alice"), false, ""},
		{"down", errors.New("connection refused"), true, "connection refused"},
		{"throttled", apierrors.NewTooManyRequests("slow down", 1), true, "slow down"},
		{"forbidden", apierrors.NewForbidden(group, "alice", errors.New("no role")), true, "no role"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			attempts := 0
			c.fail = func(string) error { attempts++; return tt.err }
			c.apply(c.user("alice", accepts))
			c.run()
			for range 100 {
				c.leader.step(t.Context())
			}
			if attempts != 1 || len(c.events) != 0 {
				t.Errorf("%d attempts at once, events %q", attempts, c.events)
			}
			c.pass(firstRetry)
			if want := map[bool]int{true: 2, false: 1}[tt.retries]; attempts != want {
				t.Errorf("%d attempts after %v, want %d", attempts, firstRetry, want)
			}
			if got := c.log.String(); (tt.logged == "") != (got == "") || !strings.Contains(got, tt.logged) ||
				strings.Count(got, "\n") > 1 {
				t.Errorf("the log has %q", got)
			}
			c.fail = func(string) error { return nil }
			if n := c.pass(maxRetry); (n == 1) != tt.retries {
				t.Errorf("%d writes", n)
			}
		})
	}
}

// A leader does not overwrite what it has not read.
func TestStaleLeader(t *testing.T) {
	key := resourceKey{userKind, "team", "alice"}
	t.Run("changed-spec", func(t *testing.T) {
		c := newCluster(t)
		first := c.user("alice", accepts)
		c.shown = map[resourceKey]*Object{key: c.objects[key]}
		second := c.user("alice", accepts)
		c.apply(first)
		if n := c.run(); n != 0 {
			t.Errorf("%d writes for an old version", n)
		}
		c.shown = nil
		c.apply(second)
		c.pass(time.Second)
		if s := c.status(userKind, "alice"); s.ObservedGeneration != 2 || s.Accepted.Generation != 2 {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("newer-status", func(t *testing.T) {
		c := newCluster(t)
		first := c.user("alice", accepts)
		c.apply(c.user("alice", accepts))
		c.run()
		c.elect()
		c.apply(first)
		if n := c.pass(time.Hour); n != 0 {
			t.Errorf("a leader with old outcomes writes %d times", n)
		}
	})
	t.Run("restored-status", func(t *testing.T) {
		c := newCluster(t)
		o := c.user("alice", accepts)
		c.objects[key].Status = json.RawMessage(`{"observedGeneration": 9, "accepted": {"generation": 9, "spec": {}}}`)
		c.apply(o)
		c.run()
		if s := c.status(userKind, "alice"); s.ObservedGeneration != 1 || s.Accepted.Generation != 1 {
			t.Errorf("a status from a backup stays: %+v", s)
		}
	})
	t.Run("own-write-not-shown-yet", func(t *testing.T) {
		c := newCluster(t)
		o := c.user("alice", accepts)
		c.shown = map[resourceKey]*Object{key: c.objects[key]}
		c.apply(o)
		c.run()
		again := *o
		c.apply(&again)
		attempts := 0
		c.fail = func(string) error { attempts++; return nil }
		if c.pass(time.Second); attempts > 0 {
			t.Errorf("%d attempts with an old resource version", attempts)
		}
		c.shown = nil
		if n := c.pass(time.Second); n != 0 {
			t.Errorf("%d writes", n)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		c := newCluster(t)
		c.apply(c.user("alice", accepts))
		delete(c.objects, key)
		if c.pass(time.Second); len(c.writes) > 0 || c.log.Len() > 0 {
			t.Errorf("writes %q, log %q", c.writes, &c.log)
		}
	})
	t.Run("created-again", func(t *testing.T) {
		c := newCluster(t)
		c.apply(c.user("alice", accepts))
		c.run()
		delete(c.objects, key)
		again := c.user("alice", accepts)
		c.objects[key].UID, again.Resource.UID = "other", "other"
		if n := c.pass(time.Second); n != 0 {
			t.Errorf("the outcome of a deleted resource is written to the next one")
		}
		c.apply(again)
		if n := c.pass(time.Second); n != 1 {
			t.Errorf("%d writes of the new resource", n)
		}
	})
	t.Run("not-read-yet", func(t *testing.T) {
		c := newCluster(t)
		c.usable(&s3client.Bucket{}, nil)
		tenant := c.tenant(accepts)
		c.apply(tenant)
		c.run()
		c.server.probes, c.shown = 0, map[resourceKey]*Object{}
		c.elect()
		next := *tenant
		c.apply(&next) // from the copy
		if n := c.pass(time.Second); n != 0 || c.server.probes != 0 {
			t.Errorf("%d writes and %d probes before the resource was read", n, c.server.probes)
		}
		c.shown = nil
		if n := c.pass(time.Second); n != 0 || c.server.probes != 0 {
			t.Errorf("%d writes and %d probes of an unchanged resource", n, c.server.probes)
		}
		c.server.usage = &admin.Usage{Users: map[string]map[string]admin.UserUsage{"team_acme": {"x": {Sessions: 1}}}}
		if c.pass(time.Hour); *c.status(tenantKind, "acme").Sessions != 1 {
			t.Error("the numbers are not written")
		}
	})
	t.Run("undecodable", func(t *testing.T) {
		c := newCluster(t)
		o := c.user("alice", accepts)
		c.objects[key].Status = json.RawMessage(`{"observedGeneration": "x"}`)
		c.apply(o)
		c.run()
		c.want(userKind, "alice", firstInUse, allOK)
	})
}

// Each change of a condition is one event, also if the leader changes or resources are read again.
func TestEvents(t *testing.T) {
	c := newCluster(t)
	bucket := &s3client.Bucket{}
	step := func(what string, want ...string) {
		t.Helper()
		c.pass(time.Second)
		c.elect()
		c.pass(time.Hour)
		if !slices.Equal(c.events, want) {
			t.Errorf("%s: got events\n%s\nwant\n%s", what, strings.Join(c.events, "\n"), strings.Join(want, "\n"))
		}
		c.events = nil
	}
	c.usable(bucket, nil)
	c.server.certificates = []certs.Certificate{{Host: "ftp.example", NotAfter: c.now.Add(30 * 24 * time.Hour)}}
	tenant, alice := c.tenant(accepts), c.user("alice", accepts)
	c.apply(tenant, alice)
	step("first", "acme: Normal Accepted: generation 1 is in use", "alice: Normal Accepted: generation 1 is in use",
		"acme: Normal BucketReady: BucketReady is True")
	refused := config.ResourceOutcome{Reason: config.ResourceInvalid, Message: "wrong",
		Used: &config.AcceptedSpec{Generation: 1, Spec: []byte("{}")}}
	bad := c.user("alice", refused)
	c.apply(tenant, bad)
	step("refused", "alice: Warning Invalid: wrong")
	refused.Message = "wrong again"
	bad = c.user("alice", refused)
	c.apply(tenant, bad)
	step("refused again", "alice: Warning Invalid: wrong again")
	alice = c.user("alice", accepts)
	c.apply(tenant, alice)
	step("accepted", "alice: Normal Accepted: generation 4 is in use")
	c.usable(bucket, errors.New("the bucket is down"))
	step("down", "acme: Warning NotUsable: the bucket is down")
	c.usable(bucket, errors.New("the bucket is down for another reason"))
	step("still down")
	c.usable(bucket, nil)
	step("back", "acme: Normal BucketReady: BucketReady is True")
	c.now = c.now.Add(17 * 24 * time.Hour)
	step("expires", "acme: Warning ExpiresSoon: the certificate for ftp.example expires on 2026-12-01: renew it")
	c.server.certificates[0].NotAfter = c.now.Add(90 * 24 * time.Hour)
	step("renewed", "acme: Normal CertificateReady: the certificate for ftp.example expires on 2027-02-16")
	c.apply(tenant)
	step("deleted")
}

// A time that the API server has stored is compared in seconds.
func TestLastLoginInSeconds(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 999, time.UTC)
	a, b := &Status{LastLogin: &metav1.Time{Time: at}}, &Status{LastLogin: &metav1.Time{Time: at.Truncate(time.Second)}}
	if !a.sameNumbers(b) {
		t.Error("the times differ")
	}
}
