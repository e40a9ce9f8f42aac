package driver_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestOppositeRenames renames a file or a directory back while another session has made its copies and has not
// deleted the originals. Each profile has other conditions.
func TestOppositeRenames(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"aws", "minio", "r2", "strict"} {
		for what, name := range map[string]string{"file": "a", "directory": "a/1"} {
			t.Run(profile+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, server := simulated(t, profile)
					spy := drivertest.NewSpy(server.Client(nil))
					endpoint := driver.NewEndpoint()
					first := drivertest.MustNew(
						t.Context(), spy, "bucket", &driver.Options{Profile: p, Endpoint: endpoint})
					second := drivertest.MustNew(
						t.Context(), server.Client(nil), "bucket", &driver.Options{Profile: p, Endpoint: endpoint})
					must.OK(t, afero.WriteFile(first, name, []byte("content"), 0))
					var once sync.Once
					back := make(chan error, 1)
					spy.Before(func(_ context.Context, operation string, _ any) error {
						if operation == "DeleteObject" || operation == "DeleteObjects" {
							once.Do(func() {
								go func() { back <- second.Rename("b", "a") }()
								synctest.Wait()
							})
						}
						return nil
					})
					if err := first.Rename("a", "b"); err != nil {
						t.Error(err)
					}
					if err := <-back; err != nil {
						t.Error(err)
					}
					if content, err := afero.ReadFile(second, name); err != nil || string(content) != "content" {
						t.Errorf("after the rename and the one back: %q, %v", content, err)
					}
				})
			})
		}
	}
}
