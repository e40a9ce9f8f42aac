package acceptance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestASCII sends a text in TYPE A with each client: lines end with CR LF on the way, and with LF in the bucket and
// in files.
func TestASCII(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "versitygw"))
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d %s%s\n", i, names[i%len(names)], strings.Repeat(".", i%100))
	}
	local := newFolder(t)
	file := local.write("text", []byte(text.String()))
	back := local.file("back")
	for _, tt := range []struct {
		name         string
		there, again func(t *testing.T)
	}{
		{
			"curl",
			func(t *testing.T) {
				c := newCurl(t, s, usual)
				c.run("--use-ascii", "--upload-file", file, c.url("/curl"))
			},
			func(t *testing.T) {
				c := newCurl(t, s, usual)
				c.run("--use-ascii", "--output", back, c.url("/curl"))
			},
		},
		{
			"lftp",
			// lftp believes a session to begin in TYPE A, as RFC 959 5.1 has it, where this server begins in TYPE I.
			func(t *testing.T) {
				newLftp(t, s, usual).run("quote TYPE A", "put -a "+lftpQuote(file)+" -o /lftp")
			},
			func(t *testing.T) {
				newLftp(t, s, usual).run("quote TYPE A", "set xfer:clobber yes", "get -a /lftp -o "+lftpQuote(back))
			},
		},
		{
			"ftplib",
			func(t *testing.T) { newFtplib(t, s, usual).must("upload_text", file, "/ftplib") },
			func(t *testing.T) { newFtplib(t, s, usual).must("download_text", "/ftplib", back) },
		},
		{ // TYPE A is its default
			"perl",
			func(t *testing.T) { runJob(t, s, perlJob, "upload-text", file, "/perl") },
			func(t *testing.T) { runJob(t, s, perlJob, "download-text", "/perl", back) },
		},
		{
			"ruby",
			func(t *testing.T) { runJob(t, s, rubyJob, "upload-text", file, "/ruby") },
			func(t *testing.T) { runJob(t, s, rubyJob, "download-text", "/ruby", back) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.there(t)
			s.mustStore(t, tt.name, []byte(text.String()))
			tt.again(t)
			local.mustHave("back", []byte(text.String()))
		})
	}
}

// runJob lets a script of the folder clients do what a verb says, over the usual connection.
func runJob(
	t *testing.T, s *site,
	job func(c *connection, verb string, names ...string) invocation, verb string, names ...string,
) {
	t.Helper()
	w := &worker{folder: newFolder(t), client: client{job: job}, site: s, connection: s.connection(t)}
	if err := w.run(verb, names...); err != nil {
		t.Fatal(err)
	}
}
