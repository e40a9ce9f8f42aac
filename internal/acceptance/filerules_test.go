package acceptance_test

import (
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// curl gets a refusal for what the rules of files exclude, also when it resumes an upload, and nothing of it is
// in the bucket.
func TestFileRules(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "sim-aws"), `    files: {deny: ["*.exe"], max_size: 6MiB}`)
	f := newFolder(t)
	small, large := f.write("small", content(1000)), f.write("large", content(7<<20))
	c := newCurl(t, s, usual)
	c.run("--upload-file", small, c.url("/a.txt"))
	for _, args := range [][]string{
		{"--upload-file", small, "--ftp-create-dirs", c.url("/dir/a.exe")},
		{"--upload-file", small, "--append", c.url("/a.exe")},
		{"--upload-file", large, c.url("/large")},
		{"--upload-file", large, "--append", c.url("/a.txt")},
		{"--upload-file", large, "--continue-at", "1000", c.url("/a.txt")},
	} {
		p := c.start(args...)
		if p.wait() == 0 {
			t.Errorf("curl %q succeeds", args)
		}
	}
	if files := s.files(t); len(files) != 1 || files[0] != "a.txt" {
		t.Errorf("the bucket has %q", files)
	}
}
