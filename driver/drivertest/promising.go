package drivertest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// promised opens a file whose content must have the hash of want, and writes content to it.
func (x *fixture) promised(session *Fs, name string, want, content []byte) *driver.Writer {
	x.Helper()
	sum := sha256.Sum256(want)
	w, err := session.Driver.OpenWriter(session.ctx, name, create, 0, &sum)
	x.must(err)
	if _, err := io.Copy(w, readerOnly{bytes.NewReader(content)}); err != nil {
		x.Fatalf("write %q: %v", name, err)
	}
	return w
}

// wantVerified checks how the promise of a stored file was confirmed.
func (x *fixture) wantVerified(w *driver.Writer, want string) {
	x.Helper()
	info, err := w.Stat()
	x.must(err)
	if got := info.(contract.Receipt).Verified(); got != want {
		x.Errorf("verified by %q, want %q", got, want)
	}
}

// verified returns how a promise is confirmed for a file that takes a single request.
func (x *fixture) verified() string {
	if x.profile.Checksums {
		return "s3"
	}
	return "parts"
}

// corrupted returns the content with another last byte.
func corrupted(content []byte) []byte {
	other := append([]byte{}, content...)
	if len(other) == 0 {
		return []byte("x")
	}
	other[len(other)-1] ^= 1
	return other
}

func testPromise(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for _, owner := range []string{"", "alice"} {
		session := x.process().as(owner)
		for label, size := range map[string]int{
			"empty": 0, "small": 1000, "part": h.PartSize, "parts": 2*h.PartSize + 1000,
		} {
			x.run(label+owner, func(x *fixture) { x.testPromiseOf(session, label, size) })
		}
	}
	for label, test := range map[string]func(x *fixture){
		"offset":        (*fixture).testPromiseAtOffset,
		"interrupted":   (*fixture).testPromiseInterrupted,
		"pending":       (*fixture).testPromisePending,
		"lost-response": (*fixture).testPromiseLostResponse,
		"unconfirmed":   (*fixture).testPromiseUnconfirmed,
		"no-overwrite":  (*fixture).testPromiseNoOverwrite,
		"configured":    (*fixture).testPromiseConfigured,
	} {
		x.run(label, test)
	}
	t.Run("inspect", func(t *testing.T) { testPromiseInspected(h.open(t, nil), &inspector{bad: []byte("a bad file")}) })
}

// testPromiseOf breaks a promise, which changes nothing, and keeps it, which takes the same requests as an upload
// without one.
func (x *fixture) testPromiseOf(session *Fs, name string, size int) {
	content := random(size)
	x.put(name, []byte("old"))
	x.wantNeverMade(name)
	w := x.promised(session, name, content, corrupted(content))
	wantError(x, w.Close(), s3error.ErrHashMismatch)
	x.wantVerified(w, "")
	x.spy.Before(nil)
	x.wantNothingPending(name, name)
	x.wantContent(name, []byte("old"))

	x.spy.Reset()
	x.close(x.begin(session, name, create, 0, content))
	usual := fmt.Sprint(x.spy.Counts())
	x.spy.Reset()
	w = x.promised(session, name, content, content)
	x.wantVerified(w, "")
	x.close(w)
	if got := fmt.Sprint(x.spy.Counts()); got != usual && size <= x.partSize {
		x.Errorf("got requests %s, want %s", got, usual)
	}
	x.wantContent(name, content)
	x.wantNothingPending(name, name)
	if size <= x.partSize {
		x.wantVerified(w, x.verified())
	} else {
		x.wantVerified(w, "parts")
	}
	x.wantHash(name, "SHA-256", 0, -1, content, int64(size))
	x.delete(name)
}

// testPromiseAtOffset refuses promises for uploads whose first bytes do not come from the client.
func (x *fixture) testPromiseAtOffset() {
	x.put("offset", random(10))
	sum := sha256.Sum256(random(10))
	for _, at := range []struct {
		flag   int
		offset int64
	}{{os.O_CREATE, 5}, {os.O_CREATE | os.O_APPEND, 0}, {os.O_APPEND, 0}} {
		_, err := x.Driver.OpenWriter(x.ctx, "offset", at.flag, at.offset, &sum)
		wantError(x, err, errors.ErrUnsupported)
	}
	x.wantContent("offset", random(10))
	x.delete("offset")
}

// testPromiseInterrupted interrupts uploads with a promise, of which nothing is kept.
func (x *fixture) testPromiseInterrupted() {
	session := x.process().as("alice")
	for label, size := range map[string]int{"small": 1000, "parts": x.partSize + 1000} {
		w := x.promised(session, label, random(size), random(size))
		w.Abort(errInterrupted)
		wantError(x, w.Close(), errInterrupted)
		if w.Kept() {
			x.Errorf("%s: the upload was kept", label)
		}
		_, err := session.PendingUpload(label)
		wantError(x, err, fs.ErrNotExist)
		x.wantNoUploads(label)
		if x.exists(label) {
			x.Errorf("%s: the file was stored", label)
		}
	}
}

// testPromisePending breaks a promise while an earlier upload of the file is pending. It stays, and a file that is
// stored later ends it.
func (x *fixture) testPromisePending() {
	if !x.profile.Resumes() {
		return
	}
	session := x.process().as("alice")
	f := x.begin(session, "pending", create, 0, random(1000))
	f.(aborter).Abort(errInterrupted)
	wantError(x, f.Close(), errInterrupted)
	wantError(x, x.promised(session, "pending", random(10), random(9)).Close(), s3error.ErrHashMismatch)
	if _, err := session.PendingUpload("pending"); err != nil {
		x.Errorf("the pending upload is gone: %v", err)
	}
	x.close(x.promised(session, "pending", random(10), random(10)))
	x.wantContent("pending", random(10))
	x.delete("pending")
	if info, err := session.PendingUpload("pending"); err == nil {
		x.Errorf("an upload of %d bytes is still pending", info.Size())
	}
}

// testPromiseLostResponse loses the response to PutObject. HeadObject then proves which request stored the
// object, and returns its hash.
func (x *fixture) testPromiseLostResponse() {
	lost := false
	x.spy.After(func(operation string, _ any) error {
		if operation != "PutObject" || lost {
			return nil
		}
		lost = true
		return responseError(500, "InternalError")
	})
	defer x.spy.After(nil)
	w := x.promised(x.Fs, "lost", random(1000), random(1000))
	x.close(w)
	x.wantVerified(w, x.verified())
	x.wantContent("lost", random(1000))
	x.delete("lost")
}

// testPromiseUnconfirmed removes the hash from responses to PutObject, as a proxy may do, and then also from responses
// to HeadObject. Without any response that has the hash, the upload does not succeed.
func (x *fixture) testPromiseUnconfirmed() {
	if !x.profile.Checksums {
		return
	}
	heads := false
	x.spy.After(func(_ string, out any) error {
		switch out := out.(type) {
		case *s3.PutObjectOutput:
			out.ChecksumSHA256 = nil
		case *s3.HeadObjectOutput:
			if heads {
				out.ChecksumSHA256 = nil
			}
		}
		return nil
	})
	defer x.spy.After(nil)
	w := x.promised(x.Fs, "unconfirmed", random(1000), random(1000))
	x.close(w)
	x.wantVerified(w, "s3")
	heads = true
	w = x.promised(x.Fs, "unconfirmed", random(1000), random(1000))
	wantError(x, w.Close(), syscall.EAGAIN)
	x.wantVerified(w, "")
	x.delete("unconfirmed")
}

// testPromiseNoOverwrite keeps promises about files that must not exist.
func (x *fixture) testPromiseNoOverwrite() {
	session := x.session(x.Context(), &driver.Options{NoOverwrite: true})
	wantError(x, x.promised(session, "new", random(10), random(9)).Close(), s3error.ErrHashMismatch)
	w := x.promised(session, "new", random(10), random(10))
	x.close(w)
	x.wantVerified(w, x.verified())
	x.wantContent("new", random(10))
	x.delete("new")
}

// testPromiseConfigured keeps promises about files for which another checksum is configured. S3 accepts only one, so it
// does not confirm the promised hash itself.
func (x *fixture) testPromiseConfigured() {
	for algorithm, want := range map[types.ChecksumAlgorithm]string{
		types.ChecksumAlgorithmSha256: x.verified(), types.ChecksumAlgorithmCrc32: "parts",
		types.ChecksumAlgorithmCrc32c: "parts",
	} {
		session := x.session(x.Context(), &driver.Options{Objects: driver.Objects{Checksum: algorithm}})
		w := x.promised(session, "configured", random(10), random(10))
		x.close(w)
		x.wantVerified(w, want)
		x.wantContent("configured", random(10))
	}
	x.delete("configured")
}

// testPromiseInspected uploads files with a promise that an inspector judges. A file that breaks the promise is neither
// stored nor put into the quarantine, not even as a staged object.
func testPromiseInspected(x *fixture, i *inspector) {
	for _, opts := range []driver.Options{{}, {Quarantine: "bad/"}} {
		session := x.process().as("alice", *i.options(opts))
		for label, size := range x.inspectedSizes() {
			x.run(label+opts.Quarantine, func(x *fixture) {
				wantError(x, x.promised(session, label, random(size), corrupted(random(size))).Close(),
					s3error.ErrHashMismatch)
				x.wantNothingPending(label)
				if opts.Quarantine == "" {
					wantError(x, x.promised(session, label, i.withBad(size), i.withBad(size)).Close(), errRefused)
					x.wantNothingPending(label)
				}
				w := x.promised(session, label, random(size), random(size))
				x.close(w)
				x.wantContent(label, random(size))
				x.wantNothingPending(label, label)
				if size <= x.partSize {
					x.wantVerified(w, x.verified())
				} else {
					x.wantVerified(w, "parts")
				}
				x.delete(label)
			})
		}
	}
}
