package driver_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// While a request waits in Swift, a later request for the same key is performed. Swift returns 200 for the first one
// without performing it. No session may believe this response.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts driver.Options
		run  func(f *drivertest.Fs) error
		kind error
		want map[string]string
	}{
		"store": {run: storeMine, want: map[string]string{"file": "mine", "old": "old"}},
		"store-new": {
			opts: driver.Options{NoOverwrite: true}, run: storeMine, kind: fs.ErrExist,
			want: map[string]string{"file": "theirs", "old": "old"},
		},
		"rename": {run: renameOld, want: map[string]string{"file": "old"}},
		"rename-new": {
			opts: driver.Options{NoOverwrite: true}, run: renameOld, kind: fs.ErrExist,
			want: map[string]string{"file": "theirs", "old": "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			onOverlapping(t, func(x *journalTest) {
				other, _, _ := x.replica(x.Context(), "")
				if err := afero.WriteFile(other, "old", []byte("old"), 0); err != nil {
					x.Fatal(err)
				}
				time.Sleep(time.Minute)
				slow := true
				client := x.s3.Client(&s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
					if (o.Name != "PutObject" && o.Name != "CopyObject") || !slow {
						return s3sim.Fault{}
					}
					slow = false
					return s3sim.Fault{Before: 2 * time.Second}
				}})
				test.opts.Profile = x.profile
				ended := make(chan error)
				go func() { ended <- test.run(drivertest.MustNew(x.Context(), client, journalBucket, &test.opts)) }()
				time.Sleep(time.Second)
				if err := afero.WriteFile(other, "file", []byte("theirs"), 0); err != nil {
					x.Fatal(err)
				}
				if err := <-ended; !errors.Is(err, test.kind) {
					x.Errorf("got error %v, want %v", err, test.kind)
				}
				got := map[string]string{}
				for _, o := range x.s3.Objects(journalBucket) {
					got[o.Key] = string(o.Content.Bytes())
				}
				for key := range map[string]bool{"file": true, "old": true} {
					if got[key] != test.want[key] {
						x.Errorf("%s has %q, want %q", key, got[key], test.want[key])
					}
				}
			})
		})
	}
}

func storeMine(f *drivertest.Fs) error { return afero.WriteFile(f, "file", []byte("mine"), 0) }

func renameOld(f *drivertest.Fs) error { return f.Rename("old", "file") }
