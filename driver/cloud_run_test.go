//go:build cloud

package driver_test

import (
	"os"
	"testing"
)

// TestCloud runs the suite on the server that environment variables describe. See make cloud.
func TestCloud(t *testing.T) {
	c, err := cloudFrom(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	c.conform(t)
}
