package driver_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestOppositeRenames renames a file or a directory back while another session has made its copies but has not deleted
// the originals. Each profile supports other conditions.
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
						t.Errorf("after the rename and the rename back: got %q, %v", content, err)
					}
				})
			})
		}
	}
}

// TestSameRenameOfTwoReplicas renames a file to the same name on two replicas that must not replace files. One of them
// succeeds, and the other one finds that the file is gone.
func TestSameRenameOfTwoReplicas(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"aws", "minio", "r2", "versitygw"} {
		for _, before := range []string{"HeadObject", "DeleteObject"} {
			t.Run(profile+"/"+before, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, server := simulated(t, profile)
					spy := drivertest.NewSpy(server.Client(nil))
					opts := driver.Options{Profile: p, NoOverwrite: true}
					first := drivertest.MustNew(t.Context(), spy, "bucket", &opts)
					second := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &opts)
					must.OK(t, afero.WriteFile(first, "job", []byte("content"), 0))
					spy.Reset()
					var once sync.Once
					ended := make(chan error, 1)
					spy.Before(func(_ context.Context, operation string, _ any) error {
						counts := spy.Counts()
						if operation == before && counts["CopyObject"]+counts["PutObject"] > 0 {
							once.Do(func() {
								go func() { ended <- second.Rename("job", "claimed") }()
								time.Sleep(2 * time.Second)
							})
						}
						return nil
					})
					must.OK(t, first.Rename("job", "claimed"))
					if err := <-ended; !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("unexpected error of the second rename: %v", err)
					}
					if content, err := afero.ReadFile(second, "claimed"); err != nil || string(content) != "content" {
						t.Errorf("the file has %q, %v", content, err)
					}
				})
			})
		}
	}
}
