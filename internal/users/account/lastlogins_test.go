package account

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/config"
	shared "github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// sharingLogins returns the last logins of a replica with its state in a bucket.
func sharingLogins(t *testing.T, s *s3test.Server, bucket string) *lastLogins {
	t.Helper()
	keys, err := keyring.Parse(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", keyring.KeySize))))
	must.OK(t, err)
	l := newLastLogins(slog.New(slog.DiscardHandler))
	l.store, l.unsaved = shared.New(shared.Options{
		Client: s.Client(), Bucket: bucket, Prefix: "state/", Keys: keys, Log: slog.New(slog.DiscardHandler),
	}), map[string]map[string]time.Time{}
	l.store.Watch(loginsPrefix, l.changed)
	t.Cleanup(func() { l.store.Flush(t.Context()) })
	return l
}

// Replicas add their logins to the same item. The latest one counts, also after a failure.
func TestSharedLastLogins(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	proxy := s3test.StartProxy(t, s)
	bucket := s.Bucket(t)
	a, b := sharingLogins(t, proxy.Server(), bucket), sharingLogins(t, s, bucket)
	alice, bob, other := stateKey{"acme", "alice"}, stateKey{"acme", "bob"}, stateKey{"umbrella/x", "alice"}
	early, late := time.Unix(1000, 5).UTC(), time.Unix(2000, 0).UTC()
	want := func(l *lastLogins, key stateKey, at time.Time) {
		t.Helper()
		item := loginsPrefix + base64.RawURLEncoding.EncodeToString([]byte(key.tenant))
		if _, err := l.store.Read(t.Context(), item); err != nil {
			t.Error(err)
		}
		if got := l.of(key); !got.Equal(at) {
			t.Errorf("the last login of %v was at %v, want %v", key, got, at)
		}
	}
	a.record(alice, early)
	a.record(other, late)
	down := proxy.Inject(s3test.Fault{Effect: s3test.Refuse(403, "AccessDenied")})
	if err := a.write(t.Context()); err == nil {
		t.Error("logins are written although S3 refuses them")
	}
	a.record(alice, late) // is not overwritten by the earlier one, which is still unsaved
	down.End()
	must.OK(t, a.write(t.Context()))
	b.record(bob, early)
	must.OK(t, b.write(t.Context()))
	want(b, alice, late)
	want(b, other, late)
	want(a, bob, early.Truncate(time.Second))
	b.record(alice, early) // a clock that is late
	must.OK(t, b.write(t.Context()))
	want(a, alice, late)
	if before := a.record(bob, late); !before.Equal(early.Truncate(time.Second)) {
		t.Errorf("the login before was at %v", before)
	}
}

func TestLastLoginsAreBounded(t *testing.T) {
	logins := map[string]time.Time{}
	for n := range maxSharedLogins + 5 {
		logins[fmt.Sprint("user-", n)] = time.Unix(int64(n), 0)
	}
	value, err := addLogins([]byte("damaged"), logins)
	must.OK(t, err)
	if len(value) > maxLoginsSize || strings.Contains(string(value), `"user-4":`) || !strings.Contains(string(value), `"user-5":`) {
		t.Errorf("%d bytes", len(value))
	}
	for n := range maxSharedLogins {
		logins[strings.Repeat("x", 200)+fmt.Sprint(n)] = time.Unix(int64(n), 0)
	}
	if value, err = addLogins(nil, logins); len(value) > maxLoginsSize || len(value) < maxLoginsSize/3 || err != nil {
		t.Errorf("with long names: %d bytes, %v", len(value), err)
	}
}

// The previous login of a user is known after a restart of the registry.
func TestLastLoginAfterAChange(t *testing.T) {
	l := newLastLogins(slog.New(slog.DiscardHandler))
	key := stateKey{"acme", config.FoldUser("Alice")}
	if before := l.record(key, time.Unix(1, 0)); !before.IsZero() {
		t.Errorf("the first login follows one at %v", before)
	}
	if before := l.record(key, time.Unix(2, 0)); before.Unix() != 1 {
		t.Errorf("the login before was at %v", before)
	}
}
