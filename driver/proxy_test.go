package driver_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
)

// A repeatingProxy sends each PUT and DELETE, and the POST that completes an upload, twice, and returns the second
// response, as if the connection to S3 had failed before the first one.
type repeatingProxy struct{ s3.HTTPClient }

// Do implements [s3.HTTPClient].
func (p repeatingProxy) Do(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	completes := request.Method == http.MethodPost && query.Has("uploadId")
	if request.Method != http.MethodPut && request.Method != http.MethodDelete && !completes ||
		query.Has("partNumber") {
		return p.HTTPClient.Do(request)
	}
	var content []byte
	if request.Body != nil {
		var err error
		if content, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	for first := true; ; first = false {
		again := request.Clone(request.Context())
		again.Body = io.NopCloser(bytes.NewReader(content))
		response, err := p.HTTPClient.Do(again)
		if err != nil || !first {
			return response, err
		}
		_ = response.Body.Close()
	}
}

// TestRepeatingProxy works through a proxy that repeats requests. S3 refuses the second request, because the first one
// has changed what its condition requires.
func TestRepeatingProxy(t *testing.T) {
	t.Parallel()
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, server := simulated(t, name)
			client := server.Client(nil, func(o *s3.Options) { o.HTTPClient = repeatingProxy{o.HTTPClient} })
			x := &journalTest{t, server, p}
			files := func(opts driver.Options) *drivertest.Fs { return x.files(t.Context(), client, opts) }
			f := files(driver.Options{})
			journal := driver.NewEndpoint().NewJournal(client, "bucket", "", p, driver.Objects{}, nil)
			recorded := files(driver.Options{Journal: journal, Owner: "alice"})
			large := patterned(journalPart + 1)
			deny := files(driver.Options{NoOverwrite: true})
			add := func() error { return drivertest.WriteAt(f, "file", os.O_APPEND, 0, []byte("more")) }
			for _, step := range []struct {
				name string
				do   func() error
			}{
				{"MKD", func() error { return f.Mkdir("dir", 0) }},
				{"STOR", func() error { return afero.WriteFile(deny, "file", []byte("content"), 0) }},
				{"APPE", add},
				{"RNTO", func() error { return deny.Rename("file", "dir/file") }},
				{"RNTO-of-a-directory", func() error { return f.Rename("dir", "moved") }},
				{"DELE", func() error { return f.RemoveFile("moved/file") }},
				{"RMD", func() error { return f.RemoveDir("moved") }},
				{"STOR-of-parts", func() error { return afero.WriteFile(f, "large", large, 0) }},
				{"STOR-of-parts-with-a-record", func() error { return afero.WriteFile(recorded, "large", large, 0) }},
				{"DELE-of-parts", func() error { return f.RemoveFile("large") }},
			} {
				if err := step.do(); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if step.name != "RNTO-of-a-directory" {
					continue
				}
				if content, err := afero.ReadFile(f, "moved/file"); err != nil || string(content) != "contentmore" {
					t.Errorf("the file has %q, %v", content, err)
				}
			}
			if left := server.Objects("bucket"); len(left) > 0 {
				t.Errorf("%d objects are left", len(left))
			}
		})
	}
}
