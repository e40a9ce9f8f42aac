package server

import (
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A changedName is a change of the file d/f, or of the directory d above it. After it, no user may resume an earlier
// upload to d/f.
type changedName struct {
	label string
	run   func(x *uploadsTest, alice, bob *ftptest.Client)

	// marked means that only a delete marker shows the change, which requires a versioned bucket, an S3 server that
	// returns the marker, and an upload that was interrupted before the change.
	marked bool
}

func changedNames() []changedName {
	stored := func(c *ftptest.Client) { c.Store("d/f", "complete") }
	rename := func(c *ftptest.Client, from, to string) {
		c.Command(350, "RNFR "+from)
		c.Command(250, "RNTO "+to)
	}
	return []changedName{
		{"sent-again-then-moved", func(_ *uploadsTest, alice, bob *ftptest.Client) {
			stored(alice)
			rename(bob, "d/f", "taken")
		}, false},
		{"sent-again-then-deleted-by-another", func(_ *uploadsTest, alice, bob *ftptest.Client) {
			stored(alice)
			bob.Command(250, "DELE d/f")
		}, false},
		{"sent-again-then-deleted", func(_ *uploadsTest, alice, _ *ftptest.Client) {
			stored(alice)
			alice.Command(250, "DELE d/f")
		}, false},
		{"stored-by-another-then-moved", func(_ *uploadsTest, _, bob *ftptest.Client) {
			stored(bob)
			rename(bob, "d/f", "taken")
		}, false},
		{"renamed-to-then-deleted", func(_ *uploadsTest, alice, bob *ftptest.Client) {
			alice.Store("d/f.part", "complete")
			rename(alice, "d/f.part", "d/f")
			bob.Command(250, "DELE d/f")
		}, false},
		{"copied-to-then-moved", func(_ *uploadsTest, alice, bob *ftptest.Client) {
			alice.Store("other", "complete")
			alice.Command(350, "SITE CPFR other")
			alice.Command(250, "SITE CPTO d/f")
			rename(bob, "d/f", "taken")
		}, false},
		{"stored-by-s3-then-deleted", func(x *uploadsTest, _, bob *ftptest.Client) {
			x.putObject()
			bob.Command(250, "DELE d/f")
		}, false},
		{"stored-and-deleted-by-s3", func(x *uploadsTest, _, _ *ftptest.Client) {
			x.putObject()
			_, err := x.s3.DeleteObject(
				x.Context(), &s3.DeleteObjectInput{Bucket: &x.bucket, Key: aws.String(changedKey)})
			must.OK(x, err)
		}, true},
		{"directory-removed", func(_ *uploadsTest, _, bob *ftptest.Client) {
			bob.Command(250, "RMD d")
			bob.Command(257, "MKD d")
		}, false},
		{"directory-removed-with-files", func(_ *uploadsTest, _, bob *ftptest.Client) {
			bob.Command(250, "SITE RMDIR d")
			bob.Command(257, "MKD d")
		}, false},
		{"directory-renamed", func(_ *uploadsTest, _, bob *ftptest.Client) {
			rename(bob, "d", "e")
			bob.Command(257, "MKD d")
		}, false},
		{"directory-above-renamed", func(_ *uploadsTest, _, bob *ftptest.Client) {
			bob.Command(257, "MKD up")
			rename(bob, "d", "up/d")
			rename(bob, "up", "down")
			rename(bob, "down/d", "d")
		}, false},
	}
}

const changedKey = "inbox/alice/d/f"

// putObject stores d/f as another S3 client does.
func (x *uploadsTest) putObject() {
	x.Helper()
	_, err := x.s3.PutObject(x.Context(), &s3.PutObjectInput{
		Bucket: &x.bucket, Key: aws.String(changedKey), Body: strings.NewReader("complete"),
	})
	must.OK(x, err)
}

// TestChangedNames interrupts an upload before a change of its name, or while the upload hangs. Then it tries to
// resume the upload on the same replica, or on another one after ten simulated seconds.
func TestChangedNames(t *testing.T) {
	t.Parallel()
	for _, storage := range []struct {
		name     string
		versions bool
	}{{"minio", false}, {"versitygw", false}, {"minio", true}, {"versitygw-versions", true}} {
		t.Run(strings.TrimSuffix(storage.name, "-versions")+map[bool]string{true: "-versions"}[storage.versions], func(t *testing.T) {
			for _, change := range changedNames() {
				if change.marked && (storage.name != "minio" || !storage.versions) {
					continue
				}
				for _, hangs := range []bool{false, true} {
					if hangs && change.marked {
						continue
					}
					for _, replica := range []int{0, 1} {
						label := change.label + map[bool]string{true: "-while-it-hangs"}[hangs] +
							map[int]string{1: "-on-another-replica"}[replica]
						t.Run(label, func(t *testing.T) {
							x := newUploadsTest(t, s3test.Start(t, storage.name))
							if storage.versions {
								s3test.Start(t, storage.name).SetVersioning(t, x.bucket, "Enabled")
							}
							x.changedName(change, hangs, replica)
						})
					}
				}
			}
		})
	}
}

func (x *uploadsTest) changedName(change changedName, hangs bool, replica int) {
	old, next := strings.Repeat("A", 6_000_000), strings.Repeat("C", 7_000_000)
	hung, alice, bob := x.as("alice", 0), x.as("alice", replica), x.as("bob", replica)
	bob.Command(257, "MKD d")
	data := begin(x.T, hung, "STOR d/f", old)
	received(x.T, x.servers[0], hung, len(old))
	end := func() {
		text := hung.Command(426, "ABOR")
		hung.Reply(226)
		_ = data.Close()
		if hangs && replica == 0 && strings.Contains(text, "can be resumed") {
			x.Errorf("after changing the name: got 426 %s", text)
		}
	}
	if !hangs {
		end()
		hung.WantReply(213, strconv.Itoa(len(old)-1), "SIZE d/f")
	}
	change.run(x, alice, bob)
	if hangs {
		end()
	}
	for _, at := range []int{replica, 1 - replica} {
		c := x.as("alice", at)
		if reply, err := c.Send("SIZE d/f"); err != nil || !strings.HasPrefix(reply, "550 ") {
			x.Errorf("replica %d: SIZE: %q, %v", at, reply, err)
		}
		c.Command(350, "REST "+strconv.Itoa(len(old)-1))
		conn := c.Data()
		c.Command(550, "STOR d/f")
		_ = conn.Close()
		x.servers[at].removeChangedUploads(x.Context()) // as after ten seconds
	}
	alice.Store("d/f", next)
	x.servers[replica].removeChangedUploads(x.Context())
	bob.Want(next, "RETR d/f")
	if open := s3test.OpenUploads(x.T, x.s3, x.bucket); len(open) > 0 {
		x.Errorf("unexpected open uploads to %q", open)
	}
}
