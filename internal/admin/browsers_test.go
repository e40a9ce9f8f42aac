package admin

import (
	"testing"
	"testing/synctest"
	"time"
)

// Logins expire after twelve hours. If there are too many, the one that expires first is removed, which ends
// its streams.
func TestBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrowsers()
		first := b.logIn(Identity{Name: "ann"})
		one := b.find(first)
		if one == nil || one.identity.Name != "ann" {
			t.Fatal("the first browser is not logged in")
		}
		time.Sleep(time.Second)
		second := b.logIn(Identity{Name: "ann"})
		for range maxBrowsers - 1 {
			b.logIn(Identity{Name: "ann"})
		}
		<-one.loggedOut
		if found := b.find(second) != nil; !found || len(b.all) != maxBrowsers {
			t.Errorf("second browser: logged in = %t; %d browsers", found, len(b.all))
		}
		time.Sleep(cookieLife + time.Second)
		if b.find(second) != nil {
			t.Error("a login lasts longer than its cookie")
		}
		if b.logIn(Identity{Name: "ann"}); len(b.all) != 1 {
			t.Errorf("got %d logins", len(b.all))
		}
	})
}
