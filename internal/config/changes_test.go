package config

import (
	"reflect"
	"testing"

	"github.com/babelftp/babelftp/internal/config/value"
)

// A new password changes a user, and adding or removing a tenant adds or removes its users. Settings of the tenant do
// not change its users.
func TestUserChanges(t *testing.T) {
	user := func(hash string) *User { return &User{PasswordHash: value.NewSecret(hash)} }
	same := &Tenant{Users: map[string]*User{"zoe": user("a")}}
	before := &Config{Tenants: map[string]*Tenant{
		"acme": {Users: map[string]*User{"alice": user("a"), "bob": user("b"), "carol": user("c")}},
		"gone": {Users: map[string]*User{"dave": user("d")}},
		"same": same,
	}}
	after := &Config{Tenants: map[string]*Tenant{
		"acme": {Bucket: "another", Users: map[string]*User{"alice": user("new"), "bob": user("b"), "erin": user("e")}},
		"new":  {Users: map[string]*User{"frank": user("f"), "alice": user("a")}},
		"same": same,
	}}
	want := UserChanges{
		Added: []string{"alice@new", "erin@acme", "frank@new"}, Changed: []string{"alice@acme"},
		Removed: []string{"carol@acme", "dave@gone"},
	}
	if got := after.UserChanges(before); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := after.UserChanges(after); !reflect.DeepEqual(got, UserChanges{}) {
		t.Errorf("a configuration differs from itself: %v", got)
	}
}
