package kubernetes

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/certs"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
)

// leaseOf returns the name of the Lease that the leader holds. Each release has its own: the name of its StatefulSet,
// which is the name of a pod without its number.
func leaseOf(identity string) string {
	name := strings.TrimRight(identity, "0123456789")
	if name, ok := strings.CutSuffix(name, "-"); ok && len(name)+1 < len(identity) && name != "" {
		return name
	}
	return "babelftp"
}

// statusWrites is the number of statuses that the leader writes each second, and at once after an idle second.
const statusWrites = 200

// leaseTimes are the times of the election. They are shorter in tests.
type leaseTimes struct {
	duration time.Duration // until another replica takes the Lease of a leader that has crashed
	deadline time.Duration // until a leader without a connection to the API server stops
	retry    time.Duration // between two attempts to take or renew the Lease
}

// A tenantServer has the methods of a [server.Server] that the leader calls.
type tenantServer interface {
	TenantHealth(tenant string) server.TenantHealth
	ProbeTenant(ctx context.Context, tenant string) []string
	TenantCertificates(tenant string) (all []certs.Certificate, missing []string)
	Usage(ctx context.Context) *admin.Usage
}

// reporterOptions are the dependencies of a reporter. All are required.
type reporterOptions struct {
	client              clientset.Interface
	namespace, identity string
	log                 *slog.Logger
	// object returns a resource as the watch of the API server has shown it last, or nil. The object is not changed.
	object func(kind config.ResourceKind, namespace, name string) *Object
	// put replaces the status of a resource, if it still has the resource version, and returns the new resource.
	put func(ctx context.Context, kind config.ResourceKind, o *Object) (*Object, error)
}

// A reporter writes the status and the events of resources while this replica is the leader.
type reporter struct {
	reporterOptions
	server  tenantServer // set by Run
	lease   leaseTimes
	limit   flowcontrol.RateLimiter
	now     func() time.Time
	leading atomic.Int32 // 1 while this replica is the leader

	mu     sync.Mutex
	merged *config.ResourceMerge // the outcome in use; nil before the first one
	wake   func()                // wakes up the leader; nil before this replica was one
}

func newReporter(o reporterOptions) *reporter {
	return &reporter{
		reporterOptions: o, now: time.Now, limit: flowcontrol.NewTokenBucketRateLimiter(statusWrites, statusWrites),
		lease: leaseTimes{15 * time.Second, 10 * time.Second, 2 * time.Second}, // the defaults of client-go
	}
}

// Applied tells the reporter the outcome that is in use now.
func (r *reporter) Applied(m *config.ResourceMerge) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.merged = m
	if r.wake != nil {
		r.wake()
	}
}

// Leading reports whether this replica is the leader.
func (r *reporter) Leading() bool { return r.leading.Load() > 0 }

// Run takes part in the election of the leader until ctx ends, and then gives the Lease back.
func (r *reporter) Run(ctx context.Context, srv tenantServer) {
	r.server = srv
	ctx = klog.NewContext(ctx, klog.Logger{}) // client-go logs nothing, because the reporter logs each new leader
	events, stop := newEventWriter(ctx, r.client, r.identity)
	defer stop()
	var leader atomic.Value // the last one that was logged; client-go starts a goroutine for each call
	name := leaseOf(r.identity)
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}, Client: r.client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: r.identity},
			},
			LeaseDuration: r.lease.duration, RenewDeadline: r.lease.deadline, RetryPeriod: r.lease.retry, Name: name,
			// A write that is still in flight then fails if the next leader has written before.
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { r.lead(ctx, events) },
				OnStoppedLeading: func() {},
				OnNewLeader: func(identity string) {
					if leader.Swap(identity) != identity {
						r.log.Info("leader for the status of custom resources", "leader", identity)
					}
				},
			},
		})
		if err != nil {
			r.log.Error("status of custom resources not written", "err", err)
			return
		}
		elector.Run(ctx)
	}
}

// lead writes statuses until ctx ends.
func (r *reporter) lead(ctx context.Context, events *eventWriter) {
	r.leading.Add(1)
	defer r.leading.Add(-1)
	l := newLeader(r, events.write)
	r.mu.Lock()
	r.wake = l.wakeUp
	r.mu.Unlock()
	l.run(ctx)
}
