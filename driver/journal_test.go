package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

const (
	journalBucket = "bucket"
	journalPart   = 256 << 10 // for servers that accept smaller parts than S3
	resume        = os.O_WRONLY | os.O_CREATE
	anew          = resume | os.O_TRUNC
)

// A journalTest is a bucket in virtual time, on a server with or without conditional writes.
type journalTest struct {
	*testing.T
	s3      *s3sim.Server
	profile driver.Profile
}

// inVirtualTime runs a test on a server with conditional writes, and on a server without them.
func inVirtualTime(t *testing.T, run func(x *journalTest)) {
	for _, name := range []string{"aws", "strict"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				profile, server := simulated(t, name)
				run(&journalTest{t, server, profile})
			})
		})
	}
}

// replica opens the file system of alice on a server of its own. Its requests go through the spy.
func (x *journalTest) replica(ctx context.Context, owner string) (*drivertest.Fs, *driver.Journal, *drivertest.Spy) {
	spy := drivertest.NewSpy(x.s3.Client(nil))
	journal := driver.NewEndpoint().NewJournal(spy, journalBucket, "", x.profile, driver.Objects{}, nil)
	go upkeep(ctx, journal)
	return x.files(ctx, spy, driver.Options{Journal: journal, Owner: owner}), journal, spy
}

// upkeep removes the interrupted uploads to changed names until ctx ends, as a server does.
func upkeep(ctx context.Context, j *driver.Journal) {
	for {
		select {
		case <-time.After(10 * time.Second):
			_ = j.RemoveChanged(ctx) // S3 may be unreachable
		case <-ctx.Done():
			return
		}
	}
}

// files opens a file system with a small part size.
func (x *journalTest) files(ctx context.Context, client driver.Client, opts driver.Options) *drivertest.Fs {
	opts.Profile, opts.PartSize = x.profile, journalPart
	return drivertest.MustNew(ctx, client, journalBucket, opts.WithSmallestPart(journalPart))
}

// pending returns the size of the pending upload that a file system reports, or 0 for none.
func (x *journalTest) pending(f *drivertest.Fs) int64 {
	x.Helper()
	info, err := f.PendingUpload("file")
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	must.OK(x, err)
	return info.Size()
}

// wantPending checks that a file system reports a pending upload with this size, or none if the size is 0.
func (x *journalTest) wantPending(f *drivertest.Fs, size int64) {
	x.Helper()
	if n := x.pending(f); n != size {
		x.Fatalf("got %d pending bytes, want %d", n, size)
	}
}

// resume checks that a pending upload has this size, and sends the rest of the file.
func (x *journalTest) resume(f *drivertest.Fs, size int64, content []byte) {
	x.Helper()
	x.wantPending(f, size)
	x.write(f, resume, size, content[size:])
	x.wantFile(content)
}

func (x *journalTest) begin(f *drivertest.Fs, flag int, offset int64) afero.File {
	x.Helper()
	file, err := f.OpenAt("file", flag, offset)
	must.OK(x, err)
	return file
}

// open opens the file. The client sends its data to the writer, and done receives the result.
func (x *journalTest) open(
	f *drivertest.Fs, flag int, offset int64,
) (file afero.File, client net.Conn, done chan error) {
	x.Helper()
	file = x.begin(f, flag, offset)
	server, client := net.Pipe()
	done = make(chan error, 1)
	go func() {
		_, err := io.Copy(file, server)
		_ = server.Close()
		done <- err
	}()
	return file, client, done
}

// end closes the client's connection, and checks that the file is stored.
func (x *journalTest) end(file afero.File, client io.Closer, done <-chan error) {
	x.Helper()
	_ = client.Close()
	must.OK(x, errors.Join(<-done, file.Close()))
}

// interrupt ends the upload as if its client had disconnected.
func (x *journalTest) interrupt(file afero.File, done <-chan error) {
	x.Helper()
	file.(interface{ Abort(cause error) }).Abort(io.ErrUnexpectedEOF)
	if err := errors.Join(<-done, file.Close()); !errors.Is(err, io.ErrUnexpectedEOF) {
		x.Error(err)
	}
}

func (x *journalTest) send(client io.Writer, content []byte) {
	x.Helper()
	if _, err := client.Write(content); err != nil {
		x.Fatal(err)
	}
}

// wantFile checks that the object has this content, and that nothing else is left.
func (x *journalTest) wantFile(content []byte) {
	x.Helper()
	x.wantNothingLeft(content)
	if open := x.s3.Uploads(journalBucket); len(open) > 0 {
		x.Errorf("open uploads: %v", open)
	}
}

// wantNothingLeft checks that the object has this content if it exists, and that nothing else is left except uploads
// without parts.
func (x *journalTest) wantNothingLeft(content []byte) {
	x.Helper()
	synctest.Wait()
	for _, object := range x.s3.Objects(journalBucket) {
		switch {
		case object.Key != "file":
			x.Errorf("unexpected object %q", object.Key)
		case !bytes.Equal(object.Content.Bytes(), content):
			x.Errorf("the file has %d bytes, want %d, or the content differs", object.Content.Size(), len(content))
		}
	}
	for id, key := range x.s3.Uploads(journalBucket) {
		if n := x.parts(key, id); n > 0 {
			x.Errorf("unexpected upload to %q with %d parts", key, n)
		}
	}
}

// parts returns the number of parts of an open upload.
func (x *journalTest) parts(key, id string) int {
	x.Helper()
	out, err := x.s3.Client(nil).ListParts(
		x.Context(), &s3.ListPartsInput{Bucket: aws.String(journalBucket), Key: &key, UploadId: &id})
	must.OK(x, err)
	return len(out.Parts)
}

// records returns the keys of the journal.
func (x *journalTest) records() []string {
	var keys []string
	for _, object := range x.s3.Objects(journalBucket) {
		if strings.HasPrefix(object.Key, journal) {
			keys = append(keys, object.Key)
		}
	}
	return keys
}

// refuse lets S3 refuse the requests of an operation, as if there were too many.
func refuse(spy *drivertest.Spy, operation string) {
	spy.Before(func(_ context.Context, o string, _ any) error {
		if o == operation {
			return refusal(http.StatusServiceUnavailable, "SlowDown")
		}
		return nil
	})
}

// refusal returns an error of S3.
func refusal(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code},
	}
}

func patterned(size int) []byte {
	content := make([]byte, size)
	for i := range content {
		content[i] = byte(i>>16 + i*7)
	}
	return content
}

// An upload on which a session works belongs to this session for hours.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(journalPart + 5000)
		alice, _, _ := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content[:journalPart+2000])
		other, journal, _ := x.replica(x.Context(), "alice")
		for i := range 3000 {
			time.Sleep(5 * time.Second)
			x.send(client, content[journalPart+2000+i:][:1])
			if i%500 != 0 {
				continue
			}
			x.wantPending(other, 0)
			if n, err := journal.Sweep(x.Context(), time.Hour); n != 0 || err != nil {
				x.Fatalf("got %d swept uploads, %v", n, err)
			}
		}
		x.end(file, client, done)
		x.wantFile(content)
	})
}

// An upload without an owner writes its record only a few times a day, because a bucket with versioning keeps each
// version. No sweep ends it while its server lives, even a sweep by a server that removes uploads sooner. When its
// server dies, the upload is removed at its configured age, not later.
func TestHeartbeatWithoutOwner(t *testing.T) {
	t.Parallel()
	const age = 24 * time.Hour
	inVirtualTime(t, func(x *journalTest) {
		ctx, kill := context.WithCancel(x.Context())
		defer kill()
		f, journal, spy := x.replica(ctx, "")
		journal.SetAbandonedAfter(age)
		content := patterned(journalPart + 5000)
		file, client, done := x.open(f, anew, 0)
		sent := journalPart + 2000
		x.send(client, content[:sent])
		synctest.Wait()
		spy.Reset()
		_, other, _ := x.replica(x.Context(), "")
		other.SetAbandonedAfter(time.Hour)
		for range 24 {
			time.Sleep(time.Hour)
			x.send(client, content[sent:sent+1])
			sent++
			if n, err := other.Sweep(x.Context(), time.Hour); n != 0 || err != nil {
				x.Fatalf("got %d swept uploads, %v", n, err)
			}
			pending, _, err := other.Pending(x.Context(), 1)
			if err != nil || len(pending) != 1 {
				x.Fatalf("got %v, %v", pending, err)
			}
			if err := other.Abort(x.Context(), pending[0].ID); !errors.Is(err, syscall.EBUSY) {
				x.Fatalf("the upload was aborted: %v", err)
			}
		}
		if n := spy.Counts()["PutObject"]; n < 3 || n > 4 {
			x.Errorf("got %d heartbeats in a day", n)
		}
		for range 40 { // a heartbeat that fails is soon repeated
			if n := len(x.records()); n != 1 {
				x.Fatalf("got %d records", n)
			}
			time.Sleep(time.Minute)
		}
		spy.Before(func(context.Context, string, any) error { return io.ErrUnexpectedEOF })
		kill()
		<-done //nolint:errcheck // the server is dead
		_ = file.Close()
		_, journal, _ = x.replica(x.Context(), "")
		time.Sleep(age - 6*time.Hour - time.Minute) // since its last heartbeat, which is at most six hours old
		if n, err := journal.Sweep(x.Context(), age); n != 0 || err != nil {
			x.Errorf("got %d swept uploads before the age, %v", n, err)
		}
		time.Sleep(6*time.Hour + 2*time.Minute)
		if n, err := journal.Sweep(x.Context(), age); n != 1 || err != nil {
			x.Errorf("got %d swept uploads, %v", n, err)
		}
		x.wantFile(nil)
	})
}

// The first write of a record fails. The write of the next heartbeat follows soon.
func TestRecordWrittenLater(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		for _, owner := range []string{"alice", ""} {
			f, journal, spy := x.replica(x.Context(), owner)
			journal.SetAbandonedAfter(24 * time.Hour)
			refuse(spy, "PutObject")
			content := patterned(journalPart + 5000)
			file, client, done := x.open(f, anew, 0)
			x.send(client, content[:journalPart+2000])
			synctest.Wait()
			spy.Before(nil)
			if n := len(x.records()); n != 0 {
				x.Errorf("got %d records although S3 refuses them", n)
			}
			time.Sleep(time.Minute)
			if n := len(x.records()); n != 1 {
				x.Errorf("got %d records after a minute", n)
			}
			x.send(client, content[journalPart+2000:])
			x.end(file, client, done)
			x.wantFile(content)
		}
	})
}

// Another session takes over an upload whose client has stalled, and the first session ends.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	content := patterned(2*journalPart + 5000)
	for name, sends := range map[string]bool{"stalls-on": false, "sends-again": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				alice, _, _ := x.replica(x.Context(), "alice")
				file, client, done := x.open(alice, anew, 0)
				x.send(client, content[:journalPart+2000])
				other, _, _ := x.replica(x.Context(), "alice")
				time.Sleep(9 * time.Second)
				x.wantPending(other, 0)
				time.Sleep(7 * time.Second)
				x.wantPending(other, journalPart)
				second, rest, secondDone := x.open(other, resume, journalPart)
				x.send(rest, content[journalPart:journalPart+10])
				if sends {
					_, _ = client.Write([]byte("late"))
				}
				if err := <-done; err == nil && !sends {
					x.Error("the first session was not canceled")
				}
				_ = client.Close()
				if err := file.Close(); !errors.Is(err, syscall.EAGAIN) {
					x.Errorf("unexpected error of the first session: %v", err)
				}
				x.send(rest, content[journalPart+10:])
				x.end(second, rest, secondDone)
				x.wantFile(content)
			})
		})
	}
}

// Another session takes over an upload whose client has stalled, and then that client ends. Its session must not
// complete the upload, which belongs to the other session.
func TestStalledClientEnds(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(2*journalPart + 5000)
		alice, _, _ := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content)
		time.Sleep(16 * time.Second)
		again, _, _ := x.replica(x.Context(), "alice")
		n := x.pending(again)
		second, sender, secondDone := x.open(again, resume, n)
		x.send(sender, content[n:])
		synctest.Wait()
		_ = client.Close()
		if err := errors.Join(<-done, file.Close()); !errors.Is(err, syscall.EAGAIN) {
			x.Errorf("unexpected error of the stalled session: %v", err)
		}
		if _, err := again.StatFile("file"); !errors.Is(err, fs.ErrNotExist) {
			x.Errorf("the stalled session stored the file: %v", err)
		}
		x.end(second, sender, secondDone)
		x.wantFile(content)
	})
}

// The last complete part of a file counts only when a client has sent a byte after it, no matter how many sessions
// resume the upload. A client that finds its whole file would send no more.
func TestResumedUploadIsNeverWhole(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]time.Duration{"stalls": 16 * time.Second, "dies": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				const size = 3 * journalPart
				content := patterned(size)
				alice, _, spy := x.replica(x.Context(), "alice")
				refuse(spy, "CompleteMultipartUpload")
				file := x.begin(alice, anew, 0)
				if _, err := file.Write(content); err != nil {
					x.Fatal(err)
				}
				if err := file.Close(); err == nil {
					x.Fatal("Close succeeded although S3 did not complete the upload")
				}
				for session := range 3 {
					ctx, kill := context.WithCancel(x.Context())
					defer kill()
					next, _, spy := x.replica(ctx, "alice")
					n := x.pending(next)
					if n >= size || n < 2*journalPart {
						x.Fatalf("session %d: got a pending size of %d of %d bytes", session, n, size)
					}
					_, client, _ := x.open(next, resume, n)
					x.send(client, content[n:])
					synctest.Wait()
					if name == "dies" {
						spy.Before(func(context.Context, string, any) error { return io.ErrUnexpectedEOF })
						kill()
					}
					time.Sleep(end)
				}
				last, _, _ := x.replica(x.Context(), "alice")
				n := x.pending(last)
				if n >= size || n < 2*journalPart {
					x.Fatalf("last session: got a pending size of %d of %d bytes", n, size)
				}
				x.write(last, resume, n, content[n:])
				x.wantFile(content)
			})
		})
	}
}

// If the server of a resuming session dies, the data that the session had stored at its last heartbeat counts.
func TestResumedUploadContinues(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(4*journalPart + 5000)
		alice, _, _ := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content[:journalPart+2000])
		x.interrupt(file, done)
		ctx, kill := context.WithCancel(x.Context())
		next, _, spy := x.replica(ctx, "alice")
		n := x.pending(next)
		_, client, _ = x.open(next, resume, n)
		sent := 3*journalPart + 1000
		x.send(client, content[n:sent])
		for range 7 { // until a heartbeat
			time.Sleep(5 * time.Second)
			x.send(client, content[sent:sent+1])
			sent++
		}
		spy.Before(func(context.Context, string, any) error { return io.ErrUnexpectedEOF })
		kill()
		time.Sleep(3 * time.Minute)
		last, _, _ := x.replica(x.Context(), "alice")
		x.resume(last, 3*journalPart, content)
	})
}

// A stalled client that sends again can continue, if no other session has taken its upload over.
func TestStalledClientContinues(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(2*journalPart + 5000)
		alice, _, _ := x.replica(x.Context(), "alice")
		other, _, _ := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content[:journalPart+1])
		time.Sleep(20 * time.Second)
		x.wantPending(other, journalPart)
		x.send(client, content[journalPart+1:journalPart+1000])
		synctest.Wait()
		x.wantPending(other, 0)
		time.Sleep(20 * time.Second)
		x.send(client, content[journalPart+1000:])
		x.end(file, client, done)
		x.wantFile(content)
	})
}

// A server dies at each request of an upload, including an upload whose last part is complete. Its owner resumes what
// exists two minutes later, and a sweep leaves nothing.
func TestServerDies(t *testing.T) {
	t.Parallel()
	for _, size := range []int{2 * journalPart, 2*journalPart + 5000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { testServerDies(t, patterned(size)) })
	}
}

func testServerDies(t *testing.T, content []byte) {
	t.Helper()
	for _, owner := range []string{"alice", ""} {
		for _, operation := range []string{"PutObject", "CreateMultipartUpload", "UploadPart",
			"CompleteMultipartUpload"} {
			for when, dies := range map[string]func(s *drivertest.Spy, die func() error){
				"before": func(s *drivertest.Spy, die func() error) {
					s.Before(func(_ context.Context, o string, _ any) error {
						if o == operation {
							return die()
						}
						return nil
					})
				},
				"after": func(s *drivertest.Spy, die func() error) {
					s.After(func(o string, _ any) error {
						if o == operation {
							return die()
						}
						return nil
					})
				},
			} {
				t.Run(owner+"-"+operation+"-"+when, func(t *testing.T) {
					inVirtualTime(t, func(x *journalTest) {
						ctx, end := context.WithCancel(x.Context())
						died, _, spy := x.replica(ctx, owner)
						dies(spy, func() error {
							dead := errors.New("the server is dead")
							spy.Before(func(context.Context, string, any) error { return dead })
							end()
							return dead
						})
						file, err := died.OpenAt("file", anew, 0)
						if err == nil {
							_, _ = io.Copy(file, struct{ io.Reader }{bytes.NewReader(content)})
							_ = file.Close() // cannot reach S3 any more
						}
						end()
						time.Sleep(3 * time.Minute)
						other, journal, _ := x.replica(x.Context(), owner)
						if _, err := other.StatFile("file"); err == nil {
							x.wantObject(content) // it was completed before
						} else if n := x.pending(other); n > 0 {
							x.write(other, resume, n, content[n:])
							x.wantObject(content)
						}
						time.Sleep(24 * time.Hour)
						if _, err := journal.Sweep(x.Context(), 24*time.Hour); err != nil {
							x.Error(err)
						}
						x.wantNothingLeft(content)
					})
				})
			}
		}
	}
}

// A server dies when Swift has completed an upload that Swift still lists. A sweep must not abort it: if Swift died
// before its last step too, the file would lose its parts.
func TestServerDiesOnSwift(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		profile, server := simulated(t, "swift")
		x := &journalTest{t, server, profile}
		ctx, end := context.WithCancel(t.Context())
		died, _, spy := x.replica(ctx, "alice")
		dead := errors.New("the server is dead")
		spy.After(func(operation string, _ any) error {
			if operation != "CompleteMultipartUpload" {
				return nil
			}
			spy.Before(func(context.Context, string, any) error { return dead })
			end()
			return dead
		})
		content := patterned(2*journalPart + 5000)
		file, err := died.OpenAt("file", anew, 0)
		must.OK(t, err)
		_, _ = io.Copy(file, struct{ io.Reader }{bytes.NewReader(content)})
		_ = file.Close() // cannot reach S3 any more
		time.Sleep(24 * time.Hour)
		_, journal, sweeper := x.replica(t.Context(), "alice")
		if _, err := journal.Sweep(t.Context(), 24*time.Hour); err != nil {
			t.Error(err)
		}
		if n := sweeper.Counts()["AbortMultipartUpload"]; n > 0 {
			t.Errorf("the sweep aborted %d uploads", n)
		}
		objects := x.s3.Objects(journalBucket)
		if len(objects) != 1 || !bytes.Equal(objects[0].Content.Bytes(), content) {
			t.Errorf("%d objects are left", len(objects))
		}
	})
}

// A server dies, and its client sends the whole file again before the upload counts as dead. A partner may fetch and
// delete the file soon after. What the dead server has left must never become the beginning of another file.
func TestSentAgainAfterServerDied(t *testing.T) {
	t.Parallel()
	content := patterned(2*journalPart + 5000)
	for _, size := range []int{1000, len(content)} {
		inVirtualTime(t, func(x *journalTest) {
			ctx, kill := context.WithCancel(x.Context())
			defer kill()
			dead, _, spy := x.replica(ctx, "alice")
			file, client, done := x.open(dead, anew, 0)
			x.send(client, content[:journalPart+2000])
			synctest.Wait()
			spy.Before(func(context.Context, string, any) error { return io.ErrUnexpectedEOF })
			kill()
			<-done //nolint:errcheck // the server is dead
			_ = file.Close()
			alice, journal, requests := x.replica(x.Context(), "alice")
			x.write(alice, anew, 0, content[:size])
			time.Sleep(time.Minute)
			if n := len(x.records()); n != 1 {
				x.Fatalf("%d records, so that the test proves nothing", n)
			}
			if _, err := x.s3.Client(nil).DeleteObject(x.Context(), &s3.DeleteObjectInput{
				Bucket: aws.String(journalBucket), Key: aws.String("file"),
			}); err != nil {
				x.Fatal(err)
			}
			for range 6 {
				time.Sleep(time.Minute)
				x.wantPending(alice, 0)
			}
			other, _, _ := x.replica(x.Context(), "alice")
			x.wantPending(other, 0)
			time.Sleep(10 * time.Minute)
			requests.Reset()
			time.Sleep(time.Hour)
			if err := journal.RemoveChanged(x.Context()); err != nil || requests.Total() > 0 {
				x.Errorf("unexpected requests %v of an idle sweep: %v", requests.Counts(), err)
			}
			// the sweep may abort uploads that S3 no longer completes
			if _, err := journal.Sweep(x.Context(), time.Hour); err != nil {
				x.Error(err)
			}
			x.wantFile(nil)
		})
	}
}

// A client reconnects and sends its file again. The old session notices only then that its client has gone, and S3 is
// slow to respond to it. The bytes of the old session must not be kept.
func TestSentAgainBeforeSlowResponse(t *testing.T) {
	inVirtualTime(t, func(x *journalTest) {
		alice, _, spy := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, patterned(1000))
		time.Sleep(5 * time.Second)
		again := patterned(2000)
		x.write(alice, anew, 0, again)
		spy.Before(func(_ context.Context, operation string, _ any) error {
			if operation == "HeadObject" {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		x.interrupt(file, done)
		x.wantFile(again)
	})
}

// S3 has refused to create an upload, and the client sends the file again. What is left of the first attempt must not
// harm the second one.
func TestCreationRefused(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(journalPart + 5000)
		alice, _, spy := x.replica(x.Context(), "alice")
		refuse(spy, "CreateMultipartUpload")
		file := x.begin(alice, anew, 0)
		if _, err := file.Write(content); err == nil {
			x.Error("Write succeeded although S3 refused the upload")
		}
		if err := file.Close(); err == nil {
			x.Error("Close succeeded although S3 refused the upload")
		}
		spy.Before(nil)
		file, client, done := x.open(alice, anew, 0)
		sent := journalPart + 2000
		for x.send(client, content[:sent]); sent < journalPart+2050; sent++ {
			time.Sleep(5 * time.Second)
			x.send(client, content[sent:sent+1])
		}
		x.interrupt(file, done)
		if kept := file.(interface{ Kept() bool }).Kept(); !kept {
			x.Error("the upload was not kept")
		}
		time.Sleep(15 * time.Second) // until only the newer of both is left
		other, _, _ := x.replica(x.Context(), "alice")
		x.resume(other, int64(sent-1), content)
	})
}

// S3 permanently refuses a part, the object or its completion. Nothing is kept, and the server does not claim
// otherwise.
func TestPermanentRefusal(t *testing.T) {
	t.Parallel()
	for _, refused := range []struct {
		status int
		code   string
	}{
		{http.StatusForbidden, "AccessDenied"}, {http.StatusForbidden, "AllAccessDisabled"},
		{http.StatusForbidden, "QuotaExceeded"}, {http.StatusBadRequest, "EntityTooLarge"},
		{http.StatusRequestEntityTooLarge, "RequestEntityTooLarge"},
		{http.StatusInsufficientStorage, "XMinioStorageFull"}, {http.StatusNotFound, "NoSuchBucket"},
		{http.StatusNotFound, "NoSuchUpload"}, {http.StatusNotImplemented, "NotImplemented"},
		{http.StatusBadRequest, "InvalidRequest"},
	} {
		for operation, size := range map[string]int{"PutObject": 1000, "UploadPart": 3*journalPart + 5000,
			"CompleteMultipartUpload": 3*journalPart + 5000} {
			t.Run(refused.code+"-"+operation, func(t *testing.T) {
				inVirtualTime(t, func(x *journalTest) {
					alice, _, spy := x.replica(x.Context(), "alice")
					spy.Before(func(_ context.Context, o string, in any) error {
						put, ok := in.(*s3.PutObjectInput)
						if o != operation || ok && strings.HasPrefix(*put.Key, journal) {
							return nil
						}
						return refusal(refused.status, refused.code)
					})
					file := x.begin(alice, anew, 0)
					_, err := io.Copy(file, struct{ io.Reader }{bytes.NewReader(patterned(size))})
					if err := errors.Join(err, file.Close()); err == nil {
						x.Fatal("Close returned no error")
					}
					kept := file.(interface{ Kept() bool }).Kept()
					spy.Before(nil)
					other, _, _ := x.replica(x.Context(), "alice")
					if n := x.pending(other); kept || n > 0 {
						x.Errorf("kept = %t, %d pending bytes", kept, n)
					}
					x.wantFile(nil)
				})
			})
		}
	}
}

// S3 refuses all attempts to store a part. If the server says that the upload is kept, its client can resume it at
// once, after the previous parts. The server must not say so if the record could not be written.
func TestPartRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		size, part     int
		refusesRecords bool
		pending        int64
	}{
		"middle":    {4*journalPart + 5000, 3, false, 2 * journalPart},
		"last":      {2*journalPart + 5000, 3, false, 2*journalPart + 4999},
		"last-full": {3 * journalPart, 3, false, 3*journalPart - 1},
		"first":     {2*journalPart + 5000, 1, false, 0},
		"no-record": {4*journalPart + 5000, 3, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				content := patterned(test.size)
				alice, _, spy := x.replica(x.Context(), "alice")
				refused := false
				spy.Before(func(_ context.Context, _ string, in any) error {
					switch in := in.(type) {
					case *s3.UploadPartInput:
						if int(*in.PartNumber) == test.part {
							time.Sleep(time.Second) // until the previous parts are stored
							refused = true
							return refusal(http.StatusServiceUnavailable, "SlowDown")
						}
					case *s3.PutObjectInput:
						if refused && test.refusesRecords {
							return refusal(http.StatusForbidden, "AccessDenied")
						}
					}
					return nil
				})
				file := x.begin(alice, anew, 0)
				_, err := io.Copy(file, struct{ io.Reader }{bytes.NewReader(content)})
				if err := errors.Join(err, file.Close()); !errors.Is(err, syscall.EAGAIN) {
					x.Fatalf("Close: %v", err)
				}
				if kept := file.(interface{ Kept() bool }).Kept(); kept != (test.pending > 0) {
					x.Errorf("kept = %t", kept)
				}
				other, _, _ := x.replica(x.Context(), "alice")
				x.wantPending(other, test.pending)
				switch {
				case test.refusesRecords: // it counts as live for two minutes
					time.Sleep(3 * time.Minute)
					x.resume(other, 2*journalPart, content)
				case test.pending > 0:
					x.resume(other, test.pending, content)
				default:
					x.write(other, anew, 0, content)
					x.wantFile(content)
				}
			})
		})
	}
}

// TestRecordRefused lets S3 refuse the record that releases an interrupted upload. The client must get the reply that
// the upload has failed. If S3 has an older record, the owner can resume the upload when its session counts as dead,
// and a sweep removes it; if S3 has none, nothing is left.
func TestRecordRefused(t *testing.T) {
	t.Parallel()
	content := patterned(2*journalPart + 5000)
	denied := refusal(http.StatusForbidden, "AccessDenied")
	for _, test := range []struct {
		label   string
		sent    int
		always  bool // S3 has never accepted a record
		lost    bool // S3 accepts the record, but its response is lost
		pending int64
	}{
		{"one-request", 1000, false, false, 0},
		{"one-request-lost", 1000, false, true, 999},
		{"parts", journalPart + 2000, false, false, journalPart},
		{"parts-lost", journalPart + 2000, false, true, journalPart + 1999},
		{"parts-without-record", journalPart + 2000, true, false, 0},
		{"full-part", 2 * journalPart, false, false, journalPart},
	} {
		for _, end := range []string{"resume", "sweep"} {
			t.Run(test.label+"-"+end, func(t *testing.T) {
				inVirtualTime(t, func(x *journalTest) {
					alice, _, spy := x.replica(x.Context(), "alice")
					var refuses atomic.Bool
					refuses.Store(test.always)
					refuse := func(put bool, err error) error {
						if put && refuses.Load() {
							return err
						}
						return nil
					}
					spy.Before(func(_ context.Context, o string, _ any) error {
						return refuse(o == "PutObject" && !test.lost, denied)
					})
					spy.After(func(o string, _ any) error {
						return refuse(test.lost && (o == "PutObject" || o == "HeadObject"), io.ErrUnexpectedEOF)
					})
					file, client, done := x.open(alice, anew, 0)
					x.send(client, content[:test.sent])
					synctest.Wait()
					if test.lost { // the driver first sends HeadObject for the key
						spy.Before(func(_ context.Context, o string, _ any) error {
							refuses.Store(refuses.Load() || o == "PutObject")
							return nil
						})
					} else {
						refuses.Store(true)
					}
					x.interrupt(file, done)
					if file.(interface{ Kept() bool }).Kept() {
						x.Error("the upload was kept although S3 did not confirm the record")
					}
					spy.Before(nil)
					spy.After(nil)
					if _, err := alice.StatFile("file"); !errors.Is(err, fs.ErrNotExist) {
						x.Errorf("unexpected error of the file: %v", err)
					}
					if test.pending == 0 {
						x.wantFile(nil)
					}
					time.Sleep(3 * time.Minute)
					other, journal, _ := x.replica(x.Context(), "alice")
					x.wantPending(other, test.pending)
					switch {
					case end == "sweep":
						if _, err := journal.Sweep(x.Context(), time.Minute); err != nil {
							x.Error(err)
						}
						x.wantFile(nil)
					case test.pending > 0:
						x.resume(other, test.pending, content)
					default:
						x.write(other, anew, 0, content)
						x.wantFile(content)
					}
				})
			})
		}
	}
}

// A session takes over an upload that it resumes, and the response to the request that writes its record is lost. The
// server says that the upload is kept, and its client can resume it at once.
func TestResumeWithoutResponse(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]int{"parts": 2*journalPart + 1, "tail": 2*journalPart + 4000} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				content := patterned(2*journalPart + 5000)
				alice, _, spy := x.replica(x.Context(), "alice")
				file, client, done := x.open(alice, anew, 0)
				x.send(client, content[:sent])
				synctest.Wait()
				x.interrupt(file, done)
				n := int64(sent - 1)
				x.wantPending(alice, n)
				file = x.begin(alice, resume, n)
				var resumed atomic.Bool
				spy.After(func(operation string, _ any) error {
					if operation == "PutObject" {
						resumed.Store(true)
					}
					if resumed.Load() {
						return io.ErrUnexpectedEOF
					}
					return nil
				})
				if _, err := file.Write(content[n:]); err == nil {
					x.Error("resumed although the state of the upload is unknown")
				}
				spy.After(nil)
				if err := file.Close(); err == nil {
					x.Error("Close returned no error")
				}
				if kept := file.(interface{ Kept() bool }).Kept(); !kept {
					x.Error("the upload was not kept")
				}
				other, _, _ := x.replica(x.Context(), "alice")
				x.resume(other, n, content)
			})
		})
	}
}

// withSmallQuota returns the file system of alice with a quota of six parts.
func (x *journalTest) withSmallQuota() *drivertest.Fs {
	client := x.s3.Client(nil)
	usages := driver.NewUsages()
	usage, _ := usages.Of(client, journalBucket, "")
	must.OK(x, usage.Count(x.Context()))
	limits := []driver.Limit{{Usage: usage, Bytes: 6 * journalPart}}
	return x.files(x.Context(), client, driver.Options{
		Journal: driver.NewEndpoint().NewJournal(client, journalBucket, "", x.profile, driver.Objects{}, nil),
		Owner:   "alice", Quotas: driver.Quotas{Usages: usages, Limits: func() []driver.Limit { return limits }},
	})
}

// An upload that exceeds the total for interrupted uploads of a user is not kept, and the server does not tell the
// client that it is.
func TestTooLargeToKeep(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		alice := x.withSmallQuota()
		for size, want := range map[int]bool{2 * journalPart: true, 4 * journalPart: false} {
			file := x.begin(alice, anew, 0)
			if _, err := file.Write(patterned(size)); err != nil {
				x.Fatal(err)
			}
			file.(interface{ Abort(cause error) }).Abort(io.ErrUnexpectedEOF)
			if err := file.Close(); !errors.Is(err, io.ErrUnexpectedEOF) {
				x.Error(err)
			}
			if kept := file.(interface{ Kept() bool }).Kept(); kept != want || kept != (x.pending(alice) > 0) {
				x.Errorf("upload of %d bytes: kept = %t, %d pending bytes", size, kept, x.pending(alice))
			}
			if err := alice.RemoveFile("file"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				x.Error(err)
			}
		}
		x.wantFile(nil)
	})
}

// If another session of the user has taken an upload over, a session that cannot keep the upload must not touch it.
func TestTakenOverTooLargeToKeep(t *testing.T) {
	t.Parallel()
	content := patterned(5*journalPart + 5000)
	inVirtualTime(t, func(x *journalTest) {
		alice := x.withSmallQuota()
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content[:4*journalPart+2000])
		time.Sleep(16 * time.Second)
		other, _, _ := x.replica(x.Context(), "alice")
		x.wantPending(other, 4*journalPart)
		second, rest, secondDone := x.open(other, resume, 4*journalPart)
		x.send(rest, content[4*journalPart:4*journalPart+10])
		if err := <-done; err == nil {
			x.Error("the first session was not canceled")
		}
		_ = client.Close()
		if err := file.Close(); !errors.Is(err, syscall.EAGAIN) {
			x.Errorf("unexpected error of the first session: %v", err)
		}
		x.send(rest, content[4*journalPart+10:])
		x.end(second, rest, secondDone)
		x.wantFile(content)
	})
}

// S3 accepts a request and does not respond. Then it permanently refuses the next attempt. The error must report that
// the outcome is unknown, because S3 may still perform the first attempt.
func TestRefusedAfterLostResponse(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		f, _, spy := x.replica(x.Context(), "")
		for name, run := range map[string]func() error{
			"PutObject":    func() error { return afero.WriteFile(f, "file", []byte("new"), 0) },
			"DeleteObject": func() error { return f.RemoveFile("file") },
		} {
			must.OK(x, afero.WriteFile(f, "file", []byte("old"), 0))
			time.Sleep(time.Minute)
			responses := []error{refusal(http.StatusInternalServerError, "InternalError"),
				refusal(http.StatusForbidden, "AccessDenied")}
			spy.Before(func(_ context.Context, o string, _ any) (err error) {
				if o == name && len(responses) > 0 {
					err, responses = responses[0], responses[1:]
				}
				return err
			})
			if err := run(); !errors.Is(err, syscall.EAGAIN) || errors.Is(err, fs.ErrPermission) {
				x.Errorf("%s: got %v, want EAGAIN", name, err)
			}
			spy.Before(nil)
		}
	})
}

func (x *journalTest) write(f *drivertest.Fs, flag int, offset int64, content []byte) {
	x.Helper()
	must.OK(x, drivertest.WriteAt(f, "file", flag, offset, content))
}

func (x *journalTest) wantObject(content []byte) {
	x.Helper()
	for _, object := range x.s3.Objects(journalBucket) {
		if object.Key == "file" && !bytes.Equal(object.Content.Bytes(), content) {
			x.Errorf("the file has %d bytes, want %d, or the content differs", object.Content.Size(), len(content))
		}
	}
}

// acceptsAll is an inspector that accepts every file.
type acceptsAll struct{}

func (acceptsAll) Write(p []byte) (int, error) { return len(p), nil }
func (acceptsAll) Verdict() error              { return nil }
func (acceptsAll) Close()                      {}

// If several clients append to a missing file, one of them creates it. The others get the error that the file has
// changed, even if S3 copies the file from a staged object.
func TestConcurrentAppends(t *testing.T) {
	t.Parallel()
	staged := driver.Options{Quarantine: "quarantine/", Inspect: func(context.Context, string) driver.Inspection {
		return acceptsAll{}
	}}
	for _, test := range []struct {
		label   string
		opts    driver.Options
		content []byte
	}{
		{"one-request", driver.Options{}, []byte("line\n")},
		{"parts", driver.Options{}, patterned(journalPart + 1)},
		{"staged-parts", staged, patterned(journalPart + 1)},
	} {
		t.Run(test.label, func(t *testing.T) {
			inVirtualTime(t, func(x *journalTest) {
				var files []afero.File
				for range 8 {
					client := x.s3.Client(nil)
					opts := test.opts
					opts.Journal = driver.NewEndpoint().NewJournal(
						client, journalBucket, "", x.profile, driver.Objects{}, nil)
					file, err := x.files(x.Context(), client, opts).OpenAt("file", resume|os.O_APPEND, 0)
					must.OK(x, err)
					if _, err := file.Write(test.content); err != nil {
						x.Fatal(err)
					}
					files = append(files, file)
				}
				acknowledged := 0
				for _, file := range files {
					switch err := file.Close(); {
					case err == nil:
						acknowledged++
					case !errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrExist):
						x.Error(err)
					}
				}
				if acknowledged != 1 {
					x.Errorf("got %d acknowledged writes", acknowledged)
				}
				x.wantFile(test.content)
			})
		})
	}
}

// A heartbeat whose response is lost, and that takes effect late, must not be mistaken for a write of another session.
func TestLateHeartbeat(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(x *journalTest) {
		content := patterned(journalPart + 5000)
		alice, _, spy := x.replica(x.Context(), "alice")
		file, client, done := x.open(alice, anew, 0)
		x.send(client, content[:journalPart+2000])
		synctest.Wait()
		spy.After(func(operation string, _ any) error {
			if operation == "PutObject" || operation == "HeadObject" {
				return io.ErrUnexpectedEOF
			}
			return nil
		})
		for i := range 5 {
			time.Sleep(9 * time.Second)
			x.send(client, content[journalPart+2000+i:][:1])
		}
		spy.After(nil)
		for i := range 20 {
			time.Sleep(9 * time.Second)
			x.send(client, content[journalPart+2005+i:][:1])
		}
		x.send(client, content[journalPart+2025:])
		x.end(file, client, done)
		x.wantFile(content)
	})
}
