package admin_test

import (
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/chromium"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// s3test.Main exits the process.
func TestMain(m *testing.M) { s3test.Main(&suite{m}) }

// A suite runs all tests of the package, which share a browser.
type suite struct{ *testing.M }

// Run runs the tests and then stops the browser.
func (s *suite) Run() int {
	defer func() {
		if shared.browser != nil {
			shared.browser.Close()
		}
	}()
	return s.M.Run()
}

// shared is the browser. It is a package variable because starting a browser takes longer than most tests,
// and go test has no other way to share it.
var shared struct {
	once    sync.Once
	browser *chromium.Browser
	err     error
}

func browser(t *testing.T) *chromium.Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no program; this test needs Chromium")
	}
	shared.once.Do(func() { shared.browser, shared.err = chromium.Start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.browser
}
