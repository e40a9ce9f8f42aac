package admin

import (
	"testing"
	"testing/synctest"
	"time"
)

// Logins end after twelve hours, and the one that would end first makes room where there are too many. The end of a
// login ends its streams.
func TestBrowsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBrowsers()
		first := b.begin()
		loggedOut, found := b.find(first)
		if !found {
			t.Fatal("the first one is not logged in")
		}
		time.Sleep(time.Second)
		second := b.begin()
		for range maxBrowsers - 1 {
			b.begin()
		}
		<-loggedOut
		if _, found := b.find(second); !found || len(b.all) != maxBrowsers {
			t.Errorf("the second one is logged in: %t; %d browsers", found, len(b.all))
		}
		time.Sleep(cookieLife + time.Second)
		if _, found := b.find(second); found {
			t.Error("a login lasts longer than its cookie")
		}
		if b.begin(); len(b.all) != 1 {
			t.Errorf("%d logins are kept", len(b.all))
		}
	})
}
