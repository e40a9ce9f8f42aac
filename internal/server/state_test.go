package server

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A key is used a minute after it was made, replaced after a day, and removed when its last ticket has expired.
func TestTicketKeyRotation(t *testing.T) {
	now := time.Now()
	keys := ticketKeys(nil).rotated(now)
	first := keys[0].Key
	if got := keys.current(now); len(got) != 1 || got[0] != first {
		t.Errorf("the first key is not used at once: %v", keys)
	}
	text, err := json.Marshal(keys)
	must.OK(t, err)
	must.OK(t, json.Unmarshal(text, &keys))
	if again := keys.rotated(now.Add(ticketKeyAge - time.Second)); !slices.Equal(again, keys) {
		t.Errorf("a key was replaced early: %v", again)
	}
	now = now.Add(ticketKeyAge)
	keys = keys.rotated(now)
	if len(keys) != 2 || keys.current(now)[0] != first || keys.current(now)[1] == first {
		t.Errorf("the second key is not only accepted at first: %v", keys)
	}
	if got := keys.current(now.Add(ticketKeyDelay)); got[0] == first || got[1] != first {
		t.Errorf("the second key is not used after a minute: %v", keys)
	}
	now = now.Add(ticketKeyLifetime)
	if keys = keys.rotated(now); slices.ContainsFunc(keys, func(k ticketKey) bool { return k.Key == first }) {
		t.Errorf("a key is kept after its last ticket has expired: %v", keys)
	}
}

// stateConfig returns a configuration with shared state in a new bucket.
func stateConfig(t testing.TB, s *s3test.Server) *config.Config {
	cfg := servicetest.NewConfig(t, s)
	cfg.State = config.State{
		Bucket: s.Bucket(t), Prefix: "state/", Folder: t.TempDir(),
		Keys: value.NewSecret(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))),
	}
	return cfg
}

// A server without conditional writes is refused: a known one at the start, and an unknown one by the probe.
func TestStateNeedsConditions(t *testing.T) {
	s := s3test.Start(t, "sim-strict")
	cfg := stateConfig(t, s)
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	place, err := srv.ProbeState(t.Context())
	if place != "s3://"+cfg.State.Bucket+"/state/" || err == nil ||
		!strings.Contains(err.Error(), "no conditional writes, which state requires") {
		t.Errorf("ProbeState = %s, %v", place, err)
	}
	cfg.State.S3.Profile = "gcs"
	if _, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()}); err == nil ||
		!strings.Contains(err.Error(), "no conditional writes, which state requires") {
		t.Errorf("New returns %v", err)
	}
}

func TestProbeState(t *testing.T) {
	for _, name := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, name)
			cfg := stateConfig(t, s)
			srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
			must.OK(t, err)
			_, err = srv.ProbeState(t.Context())
			must.OK(t, err)
			if left := s3test.Objects(t, s.Client(), cfg.State.Bucket); !slices.Equal(left, []string{"state/changes"}) {
				t.Errorf("the probe leaves %q", left)
			}
		})
	}
	srv, err := New(t.Context(), servicetest.NewConfig(t, s3test.Start(t, "sim-aws")), Options{})
	must.OK(t, err)
	if place, err := srv.ProbeState(t.Context()); place != "" || err != nil {
		t.Errorf("ProbeState without state = %q, %v", place, err)
	}
	if _, err := srv.StatePolicy(); err == nil {
		t.Error("StatePolicy without state returns no error")
	}
}

// The policy allows all that a store does and nothing else: the probe succeeds on a real server with it.
func TestStatePolicy(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := stateConfig(t, s)
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	policy, err := srv.StatePolicy()
	must.OK(t, err)
	srv, err = New(t.Context(), cfg, Options{AWS: s.Restricted(t, policy).AWSConfig()})
	must.OK(t, err)
	_, err = srv.ProbeState(t.Context())
	must.OK(t, err)
}
