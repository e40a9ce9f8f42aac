package driver_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
)

// An acceptance calls before, and then accepts the file.
type acceptance struct {
	io.Writer
	before func()
}

func (a acceptance) Verdict() error {
	a.before()
	return nil
}

func (acceptance) Close() {}

// TestDeathBeforeVerdict lets S3 complete a resumed upload so that it can be inspected. Then the server dies. The file
// must not exist, and the next session, or a sweep, must remove the staged object.
func TestDeathBeforeVerdict(t *testing.T) {
	t.Parallel()
	for name, clean := range map[string]func(x *journalTest, f *drivertest.Fs, j *driver.Journal){
		"session": func(x *journalTest, f *drivertest.Fs, _ *driver.Journal) { x.wantPending(f, 0) },
		"sweep": func(x *journalTest, _ *drivertest.Fs, j *driver.Journal) {
			if n, err := j.Sweep(x.Context(), time.Hour); n != 1 || err != nil {
				x.Errorf("the sweep removed %d uploads: %v", n, err)
			}
		},
		"stored": func(x *journalTest, f *drivertest.Fs, j *driver.Journal) {
			x.write(f, anew, 0, []byte("new"))
			if err := j.RemoveChanged(x.Context()); err != nil {
				x.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				died := errors.New("the server has died")
				inspected := func(before func(*drivertest.Spy)) *drivertest.Fs {
					spy := drivertest.NewSpy(x.s3.Client(nil))
					return x.files(x.Context(), spy, driver.Options{
						Owner: "alice",
						Journal: driver.NewEndpoint().NewJournal(
							spy, journalBucket, "", x.profile, driver.Objects{}, nil),
						Inspect: func(context.Context, string) driver.Inspection {
							return acceptance{io.Discard, func() { before(spy) }}
						},
					})
				}
				content := bytes.Repeat([]byte("abcd"), journalPart/2)
				first := inspected(func(*drivertest.Spy) { t.Error("only a part of the file was inspected") })
				file, client, done := x.open(first, anew, 0)
				x.send(client, content[:journalPart+1000])
				x.interrupt(file, done)
				dying := inspected(func(spy *drivertest.Spy) {
					spy.Before(func(context.Context, string, any) error { return died })
				})
				size := x.pending(dying)
				file = x.begin(dying, resume, size)
				if _, err := file.Write(content[size:]); err != nil {
					t.Fatal(err)
				}
				if err := file.Close(); err == nil {
					t.Error("the file was stored")
				}
				if n := len(x.s3.Objects(journalBucket)); n != 2 { // the staged object and the record
					t.Errorf("the bucket has %d objects", n)
				}
				time.Sleep(2 * time.Hour)
				f, j, _ := x.replica(x.Context(), "alice")
				clean(x, f, j)
				x.wantFile([]byte("new"))
			})
		})
	}
}
