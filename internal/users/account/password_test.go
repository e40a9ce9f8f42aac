package account

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/base/schedule"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// password is the password of all credentials.
const password = servicetest.Password

// client is the network of all clients.
var client = netip.MustParsePrefix("192.0.2.1/32")

// Hashes of password that were created by other servers.
const (
	bcrypt = "$2y$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2"
	sha512 = "$6$saltsaltsalt$Cy2drr8kDRji6smvDcT28wkqtq0R0VzVL5CkrjPQCITc5d/31j94knt9rGTcVSyjLXfjsiIsBh5ee8qR/3QDx1"
)

// newCredential returns a credential with a hash of its own.
func newCredential(t *testing.T) credential {
	t.Helper()
	hash, err := passwordhash.New(password)
	must.OK(t, err)
	return credentialOf(hash)
}

func credentialOf(hash string) credential {
	return credential{hash: hash, last: &atomic.Pointer[acceptedPassword]{}}
}

func TestCheckPassword(t *testing.T) {
	v := newVerifier()
	nfd, err := passwordhash.New("cafe\u0301")
	must.OK(t, err)
	for _, tc := range []struct {
		name       string
		credential credential
		password   string
		want       bool
	}{
		{"right", newCredential(t), password, true},
		{"wrong", newCredential(t), "wrong", false},
		{"empty", newCredential(t), "", false},
		{"unknown-user", credential{}, password, false},
		{"other-unicode-form", credentialOf(nfd), "caf\u00e9", true},
		{"bcrypt", credentialOf(bcrypt), password, true},
		{"bcrypt-wrong", credentialOf(bcrypt), "wrong", false},
		{"sha-512", credentialOf(sha512), password, true},
		{"sha-512-wrong", credentialOf(sha512), "wrong", false},
		{"not-utf-8", newCredential(t), "caf\xe9", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 { // the second time from the cache, if it was right
				if got, err := v.check(t.Context(), client, tc.credential, tc.password); err != nil || got != tc.want {
					t.Errorf("check() = %v, %v; want %v", got, err, tc.want)
				}
			}
		})
	}
}

// While all slots are taken, only cached passwords succeed. Unknown users take a slot like known ones, and the number
// of clients does not increase the number of parallel hashes.
func TestCheckPasswordIsLimited(t *testing.T) {
	v := newVerifier()
	now := time.Now()
	v.now = func() time.Time { return now }
	known := newCredential(t)
	if right, err := v.check(t.Context(), client, known, password); err != nil || !right {
		t.Fatalf("check() = %v, %v", right, err)
	}
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		if _, err := v.queue.Acquire(t.Context(), schedule.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if right, err := v.check(ended, client, known, password); err != nil || !right {
		t.Errorf("previous password: got %v, %v", right, err)
	}
	for _, tc := range []struct {
		name       string
		credential credential
		password   string
		later      time.Duration
	}{
		{"unknown-user", credential{}, password, 0},
		{"wrong-password", known, "wrong", 0},
		{"forgotten", known, password, passwordCacheTime},
		{"same-password-of-another", newCredential(t), password, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer func(before time.Time) { now = before }(now)
			now = now.Add(tc.later)
			if _, err := v.check(ended, client, tc.credential, tc.password); !errors.Is(err, context.Canceled) {
				t.Errorf("the check did not wait: %v", err)
			}
		})
	}
}

// An address has to wait after a failed login until a login succeeds. Other addresses never wait.
func TestLoginWaitsAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config.Default()
		cfg.Tenants = map[string]*config.Tenant{"acme": {
			Bucket: "acme-data",
			Users:  map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}},
		}}
		r := registryOf(t, cfg)
		for _, step := range []struct {
			address, user, password string
			want                    error
			waits                   time.Duration
		}{
			{"192.0.2.1", "alice", "wrong", ErrLoginRefused, 0},
			{"192.0.2.1", "nobody", password, ErrLoginRefused, 250 * time.Millisecond},
			{"192.0.2.2", "alice", password, nil, 0},
			{"192.0.2.1", "alice", password, nil, 500 * time.Millisecond},
			{"192.0.2.1", "alice", "wrong", ErrLoginRefused, 0},
		} {
			begin := time.Now()
			_, err := r.Login(t.Context(), &LoginRequest{
				User: step.user, Password: step.password, RemoteAddr: &net.TCPAddr{IP: net.ParseIP(step.address)},
			})
			if waits := time.Since(begin).Round(10 * time.Millisecond); !errors.Is(err, step.want) ||
				waits != step.waits {
				t.Errorf(
					"%s at %s: got %v after %v, want %v after %v", step.user, step.address, err, waits, step.want,
					step.waits)
			}
		}
	})
}
