package acceptance_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestLargeFiles sends files through that together are many times what the server may take of memory, several at once.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	const (
		size     = 100 << 20
		sessions = 4
		// bound allows for twice the parts, because the garbage collector lags behind, and as much for everything else.
		bound = 256 << 20
	)
	s := newSite(t, s3test.Start(t, "minio"), "memory: 64MiB")
	local := newFolder(t)
	all := content(size)
	file := local.write("file", all)
	c := newCurl(t, s, usual)
	var running []*process
	for i := range sessions {
		running = append(running, c.start("--upload-file", file, c.url(fmt.Sprintf("/large %d", i))))
	}
	for _, p := range running {
		p.succeed()
	}
	running = nil
	for i := range sessions {
		s.mustStore(t, fmt.Sprintf("large %d", i), all)
		running = append(running, c.start("--output", local.file(strconv.Itoa(i)), c.url(fmt.Sprintf("/large %d", i))))
	}
	for i, p := range running {
		p.succeed()
		local.mustHave(strconv.Itoa(i), all)
	}
	// What the Go runtime has taken in all; the race detector's notes are not in it.
	if taken := s.metric(t, "go_memstats_sys_bytes"); taken > bound {
		t.Errorf("the server took %.0f MiB of memory, want %d at most", taken/(1<<20), bound>>20)
	}
}

// TestPartsOfFiles fetches parts of a file: who has enough cuts the data connection.
func TestPartsOfFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	all := content(largeSize)
	if err := s.put(t.Context(), "large", string(all)); err != nil {
		t.Fatal(err)
	}
	local := newFolder(t)
	t.Run("curl", func(t *testing.T) {
		c := newCurl(t, s, usual)
		for _, tt := range []struct{ from, to int }{{0, 0}, {100, 199}, {largeSize / 2, largeSize/2 + 1<<20},
			{largeSize - 10, largeSize - 1}} {
			c.run("--range", fmt.Sprintf("%d-%d", tt.from, tt.to), "--output", local.file("part"), c.url("/large"))
			local.mustHave("part", all[tt.from:tt.to+1])
		}
	})
	t.Run("lftp", func(t *testing.T) {
		newLftp(t, s, usual).run("pget -n 4 /large -o " + lftpQuote(local.file("whole")))
		local.mustHave("whole", all)
	})
}

// TestLargeDirectory lists a directory of more entries than S3 has on a page, with each client and command.
func TestLargeDirectory(t *testing.T) {
	t.Parallel()
	const (
		entries = 2100 // three pages
		dir     = "/many"
		atOnce  = 16
	)
	s := newSite(t, s3test.Start(t, "minio"))
	var want []string
	var puts errgroup.Group
	puts.SetLimit(atOnce)
	for i := range entries {
		name := fmt.Sprintf("%04d %s", i, names[i%len(names)])
		want = append(want, name)
		puts.Go(func() error { return s.put(t.Context(), "many/"+name, name) })
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	for name, list := range map[string]func(dir string) map[string][]string{
		"curl": newCurl(t, s, usual).list, "lftp": newLftp(t, s, usual).list, "ftplib": newFtplib(t, s, usual).list,
	} {
		t.Run(name, func(t *testing.T) {
			for command, got := range list(dir) {
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%s has %d names, want %d", command, len(got), len(want))
				}
			}
		})
	}
}

// put makes an object of acme, past the server.
func (s *site) put(ctx context.Context, name, text string) error {
	bucket, key := s.buckets[acme], prefix+name
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(text)})
	return err
}

// TestManySessions lets many clients work at once on one server, in all their ways.
func TestManySessions(t *testing.T) {
	t.Parallel()
	const sessions = 24
	s := newSite(t, s3test.Start(t, "versitygw"))
	ways := []way{usual, {"passive", "explicit"}, {"passive", "implicit"}, {"active", "plain"}}
	local := newFolder(t)
	type session struct {
		*curl
		move    // of a local file to a pathname
		content []byte
	}
	var all []session
	for i := range sessions {
		name := fmt.Sprintf("%d %s", i, names[i%len(names)])
		data := content(smallSize * (1 + i%8))
		c := newCurl(t, s, ways[i%len(ways)])
		all = append(all, session{c, move{local.write(name, data), "/" + name}, data})
	}
	atOnce := func(args func(x session) []string) {
		var running []*process
		for _, x := range all {
			running = append(running, x.start(args(x)...))
		}
		for _, p := range running {
			p.succeed()
		}
	}
	atOnce(func(x session) []string { return []string{"--upload-file", x.from, x.url(x.to)} })
	atOnce(func(x session) []string { return []string{"--output", x.from + " back", x.url(x.to)} })
	for _, x := range all {
		s.mustStore(t, x.to[1:], x.content)
		local.mustHave(x.to[1:]+" back", x.content)
	}
}
