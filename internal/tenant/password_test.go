package tenant

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/configtest"
)

// password is that of each credential.
const password = configtest.Password

// newCredential is a credential with a hash of its own.
func newCredential(t *testing.T) *credential {
	t.Helper()
	hash, err := HashPassword(password)
	if err != nil {
		t.Fatal(err)
	}
	return &credential{hash: hash}
}

func TestCheckPassword(t *testing.T) {
	v, err := newVerifier()
	if err != nil {
		t.Fatal(err)
	}
	nfd, err := HashPassword("cafe\u0301")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name       string
		credential *credential
		password   string
		want       bool
	}{
		{"right", newCredential(t), password, true},
		{"wrong", newCredential(t), "wrong", false},
		{"empty", newCredential(t), "", false},
		{"unknown-user", nil, password, false},
		{"other-unicode-form", &credential{hash: nfd}, "caf\u00e9", true},
		{"not-utf-8", newCredential(t), "caf\xe9", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for range 2 { // the second time from memory, where it was right
				if got, err := v.check(t.Context(), tc.credential, tc.password); err != nil || got != tc.want {
					t.Errorf("right is %v, %v; want %v", got, err, tc.want)
				}
			}
		})
	}
}

// With every slot taken only who was right a while ago gets in: an unknown user costs what a known one does, and no number of
// clients makes more hashes at once.
func TestCheckPasswordIsLimited(t *testing.T) {
	v, err := newVerifier()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	v.now = func() time.Time { return now }
	known := newCredential(t)
	if right, err := v.check(t.Context(), known, password); err != nil || !right {
		t.Fatalf("right is %v, %v", right, err)
	}
	for range cap(v.slots) {
		v.slots <- struct{}{}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	if right, err := v.check(ended, known, password); err != nil || !right {
		t.Errorf("the password that was right: %v, %v", right, err)
	}
	for _, tc := range []struct {
		name       string
		credential *credential
		password   string
		later      time.Duration
	}{
		{"unknown-user", nil, password, 0},
		{"wrong-password", known, "wrong", 0},
		{"forgotten", known, password, passwordCacheTime},
		{"same-password-of-another", newCredential(t), password, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			defer func(before time.Time) { now = before }(now)
			now = now.Add(tc.later)
			if _, err := v.check(ended, tc.credential, tc.password); !errors.Is(err, context.Canceled) {
				t.Errorf("the check did not wait: %v", err)
			}
		})
	}
}
