package admin_test

import (
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestMain ends with s3test.Main, which exits the process.
func TestMain(m *testing.M) { s3test.Main(&suite{m}) }

// A suite is all tests of the process, which have one browser.
type suite struct{ *testing.M }

// Run runs the tests and ends the browser.
func (s *suite) Run() int {
	defer func() {
		if shared.browser != nil {
			shared.browser.close()
		}
	}()
	return s.M.Run()
}

// shared is the browser. It is a variable of the package because go test gives the tests of one process nothing else
// to share. The start of a browser takes longer than most tests.
var shared struct {
	once    sync.Once
	browser *browser
	err     error
}

func chromium(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no program; this test needs Chromium")
	}
	shared.once.Do(func() { shared.browser, shared.err = startBrowser() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.browser
}
