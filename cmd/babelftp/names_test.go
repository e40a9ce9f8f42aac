package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A namesWorld is a tenant with names in its bucket that were misread in GBK.
type namesWorld struct {
	server  *s3test.Server
	bucket  string
	archive string
	config  string
}

func newNamesWorld(t *testing.T, s *s3test.Server, keys ...string) *namesWorld {
	t.Helper()
	w := &namesWorld{server: s, bucket: s.Bucket(t), archive: s.Bucket(t)}
	w.config = filepath.Join(t.TempDir(), "babelftp.yaml")
	must.WriteFile(t, w.config, fmt.Sprintf(`
s3: {endpoint: %q, region: %q, path_style: true, access_key_id: %q, secret_access_key: %q}
tls: {required: false}
tenants:
  acme:
    bucket: %q
    prefix: inbox
    compatibility: {charset: gbk}
    folders: {/archive: {bucket: %q}}
    users: {alice: {password_hash: %q}}
  plain:
    bucket: %[5]q
    prefix: inbox/plain
    hosts: [plain.example]
    users: {bob: {password_hash: %[7]q}}
`, s.Endpoint, s.Region, s.AccessKeyID, s.SecretAccessKey, w.bucket, w.archive, servicetest.PasswordHash().Reveal()))
	for _, key := range keys {
		w.put(t, w.bucket, key)
	}
	return w
}

// put stores an object whose content is its key.
func (w *namesWorld) put(t *testing.T, bucket, key string) {
	t.Helper()
	kind := "text/x-till"
	_, err := w.server.Client().PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: &bucket, Key: &key, Body: strings.NewReader(key), ContentType: &kind,
		Metadata: map[string]string{"mtime": "1600000000.5"},
	})
	must.OK(t, err)
}

// run runs the command for the tenant acme.
func (w *namesWorld) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return output(t, "", append([]string{"names", "acme", "--config", w.config}, args...)...)
}

// TestNames renames files in buckets on real servers. The command shows the list first, never overwrites an
// existing file, and finishes in a second run what the first one could not do.
func TestNames(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		w := newNamesWorld(t, s, "inbox/Ŀ¼/a.txt", "inbox/Ŀ¼/Ŀ¼.txt", "inbox/größe.pdf", "inbox/目录/a.txt", "inbox/plain/Ŀ¼",
			"elsewhere/Ŀ¼")
		w.put(t, w.archive, "Ŀ¼")
		before := s3test.Objects(t, s.Client(), w.bucket)

		code, list, stderr := w.run(t, "--dry-run")
		for _, want := range []string{
			"unsure\tgbk\t1\t/größe.pdf\tgr枚脽e.pdf\t", "rename\tgbk\t2\t/Ŀ¼/\t目录\t", "rename\tgbk\t1\t/Ŀ¼/Ŀ¼.txt\t目录.txt\n",
			"rename\tgbk\t1\t/archive/Ŀ¼\t目录\n",
		} {
			if !strings.Contains(list, want) {
				t.Errorf("missing %q in the list:\n%s", want, list)
			}
		}
		if code != 0 || !strings.HasPrefix(stderr, "3 names to rename, with 3 objects; 1 unsure\n") || strings.Contains(list, "plain") {
			t.Errorf("dry run: exit code %d: %s", code, stderr)
		}
		if got := s3test.Objects(t, s.Client(), w.bucket); !slices.Equal(got, before) {
			t.Errorf("the dry run changed the bucket: %q", got)
		}

		code, _, stderr = w.run(t, "--yes")
		if want := "/Ŀ¼/a.txt not renamed because a file has the new name: /目录/a.txt\n2 objects renamed\n" +
			"babelftp: 1 name not renamed\n"; code != exitFailure || !strings.HasSuffix(stderr, want) {
			t.Errorf("exit code %d: got %s, want %s", code, stderr, want)
		}
		want := []string{"elsewhere/Ŀ¼", "inbox/größe.pdf", "inbox/plain/Ŀ¼", "inbox/Ŀ¼/a.txt", "inbox/目录/a.txt", "inbox/目录/目录.txt"}
		if got := s3test.Objects(t, s.Client(), w.bucket); !slices.Equal(got, want) {
			t.Errorf("the bucket has %q, want %q", got, want)
		}
		if got := s3test.Objects(t, s.Client(), w.archive); !slices.Equal(got, []string{"目录"}) {
			t.Errorf("the folder has %q", got)
		}
		key := "inbox/目录/目录.txt"
		head, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &w.bucket, Key: &key})
		must.OK(t, err)
		if head.Metadata["mtime"] != "1600000000.5" || *head.ContentType != "text/x-till" {
			t.Errorf("the object has the metadata %v and the type %s", head.Metadata, *head.ContentType)
		}

		// An operator edits the list: one file gets another name, and an unsure name is accepted.
		plan := filepath.Join(t.TempDir(), "names.tsv")
		must.WriteFile(t, plan, "rename\tgbk\t1\t/Ŀ¼/a.txt\tb.txt\nrename\tgbk\t1\t/Ŀ¼/\t目录\r\nunsure\tgbk\t1\t/größe.pdf\tx\n")
		if code, _, stderr = w.run(t, "--apply", plan, "--yes"); code != 0 {
			t.Errorf("edited list: exit code %d: %s", code, stderr)
		}
		want = []string{"elsewhere/Ŀ¼", "inbox/größe.pdf", "inbox/plain/Ŀ¼", "inbox/目录/a.txt", "inbox/目录/b.txt", "inbox/目录/目录.txt"}
		if got := s3test.Objects(t, s.Client(), w.bucket); !slices.Equal(got, want) {
			t.Errorf("the bucket has %q, want %q", got, want)
		}
		if code, _, stderr = w.run(t, "--apply", plan, "--yes"); code != 0 || !strings.Contains(stderr, "2 gone") {
			t.Errorf("same list again: exit code %d: %s", code, stderr)
		}
	})
}

// TestNamesUsage checks the errors for invalid command lines and configurations.
func TestNamesUsage(t *testing.T) {
	w := newNamesWorld(t, s3test.Start(t, "sim-aws"))
	broken := filepath.Join(t.TempDir(), "broken.tsv")
	must.OK(t, os.WriteFile(broken, []byte("rename\tgbk\t1\t/a\tb/c\n"), 0o600))
	for name, tc := range map[string]struct {
		args   []string
		code   int
		stderr string
	}{
		"no-tenant":      {[]string{"names"}, 2, "expected one TENANT"},
		"unknown-tenant": {[]string{"names", "acne", "--yes"}, 1, `unknown tenant "acne": want one of acme, plain`},
		"no-charset":     {[]string{"names", "plain", "--yes"}, 1, "tenants.plain: no charset is configured: set compatibility.charset"},
		"charset":        {[]string{"names", "plain", "--yes", "--charset", "gbk"}, 0, "0 names to rename"},
		"wrong-charset":  {[]string{"names", "acme", "--yes", "--charset", "klingon"}, 2, `unknown charset "klingon"`},
		"utf-8":          {[]string{"names", "acme", "--yes", "--charset", "utf-8"}, 2, "invalid --charset utf-8"},
		"nobody":         {[]string{"names", "acme"}, 2, "standard input is not a terminal: use --dry-run or --yes"},
		"both":           {[]string{"names", "acme", "--dry-run", "--yes"}, 2, "--dry-run and --yes cannot be combined"},
		"apply-unsure":   {[]string{"names", "acme", "--apply", broken, "--unsure", "--yes"}, 2, "--apply cannot be combined with"},
		"apply-missing":  {[]string{"names", "acme", "--apply", "nowhere.tsv", "--yes"}, 1, "cannot read --apply nowhere.tsv: no such file"},
		"apply-broken":   {[]string{"names", "acme", "--apply", broken, "--yes"}, 1, "broken.tsv: line 1: new name b/c: write the last segment"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := output(t, "", append(tc.args, "--config", w.config)...)
			if code != tc.code || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d; standard error:\n%s\nwant:\n%s", code, tc.code, stderr, tc.stderr)
			}
		})
	}
}
