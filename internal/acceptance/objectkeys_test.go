package acceptance_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// dropBox has users with a drop box whose files get keys by a rule.
const dropBox = `      scanner: {password_hash: HASH, root: /drop, permissions: [write, rename, delete, mkdir]}
      careless: {password_hash: HASH, root: /drop}
    objects:
      rules:
        - path: /drop
          set: {key: "dt={date}/{user}/{stem}-{time}{ext}", tags: {name: "{name}"}}`

// partition matches the key of a file that scanner has stored.
func partition(stem, ext string) string {
	return `dt=\d{4}-\d{2}-\d{2}/scanner/` + stem + `-\d{6}-[a-z2-7]{16}` + regexp.QuoteMeta(ext)
}

// wantKeys compares the objects below /drop with patterns, in any order.
func (s *site) wantKeys(t *testing.T, patterns ...string) (keys []string) {
	t.Helper()
	keys = s.objects(t, "drop/")
	left := slices.Clone(patterns)
	for _, key := range keys {
		i := slices.IndexFunc(left, func(p string) bool { return regexp.MustCompile("^" + p + "$").MatchString(key) })
		if i < 0 {
			t.Errorf("unexpected object %q", key)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		t.Errorf("no objects like %q among %q", left, keys)
	}
	return keys
}

// Files in a drop box get keys by a rule, which the reply to STOU, the event and the audit line have.
func TestObjectKeys(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, storage *s3test.Server) {
		t.Parallel()
		r := &eventReceiver{t: t, got: map[change][]events.Event{}}
		receiver := httptest.NewServer(r)
		t.Cleanup(receiver.Close)
		audit := filepath.Join(t.TempDir(), "audit.log")
		s := newSite(t, storage, dropBox, fmt.Sprintf("    webhook: {url: %q, secret: %q}", receiver.URL, webhookSecret),
			"    resume: keep", "audit: {file: "+audit+"}")
		c := ftptest.Dial(t, s.address)
		c.Login("scanner@acme", password)

		c.Store("a b.pdf", "content")
		c.Command(213, "SIZE a b.pdf")
		for _, refused := range []string{"LIST", "NLST", "MLSD", "RETR a b.pdf"} {
			if _, reply, _ := c.Download(refused); !strings.HasPrefix(reply, "550") {
				t.Errorf("%s: %s", refused, reply)
			}
		}
		if reply, _ := c.Upload("APPE a b.pdf", "more"); !strings.HasPrefix(reply, "550") {
			t.Errorf("APPE: %s", reply)
		}
		c.Command(350, "REST 3")
		if reply, _ := c.Upload("STOR a b.pdf", "more"); !strings.HasPrefix(reply, "550") {
			t.Errorf("STOR after REST: %s", reply)
		}
		c.Command(550, "SIZE other.pdf")
		c.Command(550, "RNFR other.pdf")
		c.Command(257, "MKD day")
		c.Store("day/large", string(content(6<<20)))
		c.Store("x.part", "renamed")
		c.Command(350, "RNFR x.part")
		c.Command(250, "RNTO x.csv")
		c.Store("gone.csv", "")
		c.Command(250, "DELE gone.csv")
		broken, _, err := c.Begin("STOR broken")
		must.OK(t, err)
		must.Write(t, broken, string(content(6<<20)))
		c.Command(426, "ABOR")
		c.Reply(226)
		if left := s.uploads(t, ""); len(left) > 0 {
			t.Errorf("an interrupted upload leaves %q", left)
		}
		data, reply, err := c.Begin("STOU u.csv")
		must.OK(t, err)
		data.Close()
		c.Reply(226)
		keys := s.wantKeys(t, partition("a b", ".pdf"), partition("large", ""), partition("x", ".csv"),
			partition(`u-\d{8}T\d{6}\.\d{9}`, ".csv"))
		key := keys[slices.IndexFunc(keys, func(k string) bool { return strings.Contains(k, "/u-") })]
		if reply != "150 FILE: /"+key {
			t.Errorf("STOU of %s has the reply %q", key, reply)
		}

		c.Command(350, "RNFR "+strings.TrimPrefix(reply, "150 FILE: "))
		c.Command(250, "RNTO u.json")

		first := keys[0]
		bucket, object := s.buckets[acme], prefix+"drop/"+first
		out, err := s.client.GetObjectTagging(t.Context(), &s3.GetObjectTaggingInput{Bucket: &bucket, Key: &object})
		must.OK(t, err)
		if len(out.TagSet) != 1 || *out.TagSet[0].Value != "a b.pdf" {
			t.Errorf("%s has the tags %v", object, out.TagSet)
		}
		uri := strings.ReplaceAll(s.uri("/drop/"+first), "=", "%3D")
		waitUntil(t, func() bool { return len(r.events(change{view.Upload, "/a b.pdf", ""})) > 0 },
			func() { t.Error("there is no event") })
		if got := r.events(change{view.Upload, "/a b.pdf", ""}); got[0].URI != uri {
			t.Errorf("the event is %+v, want the object %s", got[0], uri)
		}
		c.Command(221, "QUIT")
		if !strings.Contains(must.ReadFile(t, audit), `"path":"/a b.pdf","s3_uri":"`+uri+`"`) {
			t.Errorf("the audit log lacks %s", uri)
		}

		// permissions cannot open a drop box, and check refuses them
		careless := ftptest.Dial(t, s.address)
		careless.Login("careless@acme", password)
		if _, reply, _ := careless.Download("LIST"); !strings.HasPrefix(reply, "550") {
			t.Errorf("LIST by another user: %s", reply)
		}
		check := launch(t, binary(t), "check", "--config", s.configure(t, dropBox))
		want := "tenants.acme.users.careless: may list or read files in /,"
		if code := check.wait(); code != 1 || !strings.Contains(check.stderr.String(), want) {
			t.Errorf("check ended with %d: %s", code, check.stderr.String())
		}
	})
}

// Two replicas store files with the same name at the same time under different keys.
func TestObjectKeysOfReplicas(t *testing.T) {
	t.Parallel()
	const each = 20
	s := newSite(t, s3test.Start(t, "minio"), dropBox, "    overwrite: deny")
	other := &site{storage: s.storage, client: s.client, buckets: s.buckets}
	file := other.configure(t, dropBox, "    overwrite: deny")
	other.start(t, file)
	done := make(chan error)
	for _, replica := range []*site{s, other} {
		c := ftptest.Dial(t, replica.address)
		c.Login("scanner@acme", password)
		go func() {
			for range each {
				if reply, err := c.Upload("STOR same.csv", "content"); err != nil || !strings.HasPrefix(reply, "226") {
					done <- fmt.Errorf("%s, %w", reply, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range 2 {
		must.OK(t, <-done)
	}
	s.wantKeys(t, slices.Repeat([]string{partition("same", ".csv")}, 2*each)...)
}

// lftp and curl upload into a drop box as they do by default.
func TestObjectKeysOfClients(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "versitygw"), dropBox)
	from := filepath.Join(t.TempDir(), "r é.csv")
	must.WriteFile(t, from, "content")
	put := "put " + lftpQuote(from)
	launchWith(t, script("set cmd:fail-exit yes", "set ftp:ssl-allow no", "set net:max-retries 1",
		"open --user scanner@acme --password "+lftpQuote(password)+" ftp://"+s.address, put, put,
	), command(t, "lftp"), "--norc").succeed()
	launch(t, command(t, "curl"), "-q", "--silent", "--show-error", "--user", "scanner@acme:"+password,
		"--upload-file", from, "--ftp-create-dirs", "ftp://"+s.address+"/new/dir/").succeed()
	s.wantKeys(t, partition("r é", ".csv"), partition("r é", ".csv"), partition("r é", ".csv"))
}
