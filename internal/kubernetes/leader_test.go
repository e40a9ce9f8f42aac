package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/admin"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/kubeapi"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

const (
	acmePath   = "/apis/babelftp.io/v1alpha1/namespaces/team/ftptenants/acme"
	eventsPath = "/api/v1/namespaces/team/events"

	acmeTenant = `
apiVersion: babelftp.io/v1alpha1
kind: FTPTenant
metadata: {namespace: team, name: acme}
spec: {bucket: acme}`
)

// quick are times with which a leader changes within a moment.
var quick = leaseTimes{duration: 900 * time.Millisecond, deadline: 600 * time.Millisecond, retry: 50 * time.Millisecond}

// acme reads the tenant from the API server.
func acme(t *testing.T, api *kubeapi.Server) *Object {
	found, err := api.Get(acmePath)
	if err != nil {
		return nil
	}
	text, err := json.Marshal(found)
	must.OK(t, err)
	o := &Object{}
	must.OK(t, json.Unmarshal(text, o))
	return o
}

// A candidate is a replica that wants to be the leader.
type candidate struct {
	*reporter
	stop func() // gives the Lease back
}

// elect starts a replica with the outcomes of acme and the number of sessions that it has counted.
func elect(t *testing.T, api *kubeapi.Server, identity string, sessions int, log *slog.Logger) *candidate {
	s, err := New(api.Config(), Options{Namespace: "ftp", Identity: identity, Logger: log})
	must.OK(t, err)
	r := s.reporter
	r.lease, r.object = quick, func(config.ResourceKind, string, string) *Object { return acme(t, api) }
	o := acme(t, api)
	r.Applied(&config.ResourceMerge{Outcomes: []*config.ResourceOutcome{{
		Resource: &config.Resource{Kind: config.TenantResource, Namespace: "team", Name: "acme", UID: string(o.UID),
			Generation: o.Generation, Spec: o.Spec},
		Tenant: "team_acme", Reason: config.ResourceAccepted,
		Used: &config.AcceptedSpec{Generation: o.Generation, Spec: o.Spec},
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		r.Run(ctx, &fakeServer{
			health:   map[string]server.TenantHealth{"team_acme": {Storage: &s3client.Bucket{}, Checked: true}},
			problems: func(string) []string { return nil },
			usage: &admin.Usage{
				Users: map[string]map[string]admin.UserUsage{"team_acme": {"alice": {Sessions: sessions}}},
			},
		})
	})
	c := &candidate{r, func() {
		cancel()
		running.Wait()
	}}
	t.Cleanup(c.stop)
	return c
}

// await waits until a condition is true.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("timeout: ", what)
		}
	}
}

// isReady reports whether the status of acme is complete.
func isReady(t *testing.T, api *kubeapi.Server) bool {
	s := &Status{}
	o := acme(t, api)
	_ = json.Unmarshal(o.Status, s) // no status yet
	c := s.condition(conditionReady)
	return c != nil && c.Status == "True" && c.ObservedGeneration == o.Generation
}

// Another replica continues when the leader stops, and writes nothing that is written already.
func TestLeaderChange(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(acmeTenant)
	log := &servicetest.Log{}
	first := elect(t, api, "babelftp-0", 3, slog.New(slog.NewTextHandler(log, nil)))
	await(t, "the first leader", func() bool { return isReady(t, api) })
	second := elect(t, api, "babelftp-1", 3, slog.New(slog.DiscardHandler))
	if o := acme(t, api); !bytes.Contains(o.Status, []byte(`"sessions":3`)) ||
		string(o.Spec) != `{"bucket":"acme"}` || second.Leading() || !first.Leading() {
		t.Errorf("got spec %s, status %s, leaders %t and %t", o.Spec, o.Status, first.Leading(), second.Leading())
	}
	writes := len(api.Requests("update", Tenants))
	if writes == 0 || writes > 2 {
		t.Errorf("%d writes of the first leader", writes)
	}
	first.stop()
	await(t, "the second leader", second.Leading)
	if first.Leading() {
		t.Error("the first leader leads after its end")
	}
	api.Apply(strings.Replace(acmeTenant, "bucket: acme", "bucket: other", 1))
	second.Applied(&config.ResourceMerge{Outcomes: []*config.ResourceOutcome{{
		Resource: &config.Resource{Kind: config.TenantResource, Namespace: "team", Name: "acme",
			UID: string(acme(t, api).UID), Generation: 2, Spec: []byte(`{"bucket":"other"}`)},
		Tenant: "team_acme", Reason: config.ResourceAccepted,
		Used: &config.AcceptedSpec{Generation: 2, Spec: []byte(`{"bucket":"other"}`)},
	}}})
	await(t, "the second version", func() bool { return isReady(t, api) })
	if n := len(api.Requests("update", Tenants)) - writes; n == 0 || n > 2 {
		t.Errorf("%d writes of the second leader", n)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "leader=babelftp-0") {
		t.Errorf("the log of the first replica has %q", got)
	}
	leases, err := api.Get("/apis/coordination.k8s.io/v1/namespaces/ftp/leases")
	must.OK(t, err)
	if text := fmt.Sprint(leases); !strings.Contains(text, "name:babelftp ") {
		t.Errorf("got leases %s", text)
	}
	var seen []string
	await(t, "the events", func() bool { seen = eventsIn(t, api); return len(seen) == 3 })
	if want := []string{
		"FTPTenant acme Normal Accepted: generation 1 is in use", "FTPTenant acme Normal Accepted: generation 2 is in use",
		"FTPTenant acme Normal BucketReady: BucketReady is True",
	}; !slices.Equal(seen, want) {
		t.Errorf("got events %q", seen)
	}
}

// eventsIn returns the events of the namespace, sorted. An event that was counted twice is there twice.
func eventsIn(t *testing.T, api *kubeapi.Server) (all []string) {
	found, err := api.Get(eventsPath)
	must.OK(t, err)
	text, err := json.Marshal(found)
	must.OK(t, err)
	var list struct {
		Items []struct {
			Type, Reason, Message string
			Count                 int
			InvolvedObject        struct{ Kind, Name string }
		}
	}
	must.OK(t, json.Unmarshal(text, &list))
	for _, e := range list.Items {
		for range e.Count {
			all = append(all, fmt.Sprintf("%s %s %s %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Type, e.Reason,
				e.Message))
		}
	}
	slices.Sort(all)
	return all
}

// A leader that does not reach the API server stops leading before another replica takes the Lease, and takes it again
// afterwards.
func TestLeaderWithoutAPIServer(t *testing.T) {
	api := kubeapi.New(t)
	api.Apply(acmeTenant)
	r := elect(t, api, "babelftp-0", 0, slog.New(slog.DiscardHandler))
	await(t, "the leader", r.Leading)
	await(t, "the status", func() bool { return isReady(t, api) })
	api.Stop()
	await(t, "the end of the leader", func() bool { return !r.Leading() })
	api.Start()
	await(t, "the leader after the outage", r.Leading)
}

func TestLeaseOf(t *testing.T) {
	for identity, want := range map[string]string{
		"babelftp-0": "babelftp", "team-ftp-12": "team-ftp", "host": "babelftp", "": "babelftp", "7": "babelftp",
		"-7": "babelftp", "ftp7": "babelftp", "ftp-": "babelftp",
	} {
		if got := leaseOf(identity); got != want {
			t.Errorf("%q: got %q, want %q", identity, got, want)
		}
	}
}
