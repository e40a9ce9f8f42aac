package driver_test

import (
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// presigningFs returns a file system that supports links, in a new bucket on a server that every HTTP client can reach.
func presigningFs(t *testing.T, s *s3test.Server, prefix string) *drivertest.Fs {
	t.Helper()
	client := s.Client()
	return drivertest.MustNew(
		t.Context(), client, s.Bucket(t), &driver.Options{Prefix: prefix, Presigner: s3.NewPresignClient(client)})
}

// fetch follows a link as a browser does.
func fetch(t *testing.T, link string) (status int, name, content string) {
	t.Helper()
	response, err := http.Get(link)
	must.OK(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.OK(t, err)
	if _, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Disposition")); err == nil {
		name = parameters["filename"]
	}
	return response.StatusCode, name, string(body)
}

// A link returns the bytes and the name of a file, whatever the name is, to a client that does not know S3.
func TestPresign(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"minio", "versitygw"} {
		t.Run(server, func(t *testing.T) {
			s := s3test.Start(t, server)
			f := presigningFs(t, s, "in box/")
			limited := limits(s)
			for _, n := range drivertest.Names() {
				if slices.ContainsFunc(n.Needs, func(l drivertest.Limit) bool {
					_, cannot := limited[l]
					return cannot
				}) {
					continue
				}
				t.Run(n.Label, func(t *testing.T) {
					must.OK(t, afero.WriteFile(f, n.Path, []byte(n.Label), 0))
					link, err := f.Presign(t.Context(), n.Path, time.Minute)
					must.OK(t, err)
					status, name, content := fetch(t, link)
					if status != http.StatusOK || name != path.Base(n.Path) || content != n.Label {
						t.Errorf("%s: got status %d, content %q, file name %q", link, status, content, name)
					}
				})
			}
		})
	}
}

// A link is only valid for its own file and for its own time.
func TestPresignedLinkIsSigned(t *testing.T) {
	t.Parallel()
	f := presigningFs(t, s3test.Start(t, "minio"), "")
	for _, name := range []string{"mine", "yours"} {
		must.OK(t, afero.WriteFile(f, name, []byte(name), 0))
	}
	link, err := f.Presign(t.Context(), "mine", time.Hour)
	must.OK(t, err)
	for _, tc := range []struct {
		label, old, new string
		want            int
	}{
		{"itself", "", "", http.StatusOK},
		{"another-file", "/mine?", "/yours?", http.StatusForbidden},
		{"longer", "X-Amz-Expires=3600", "X-Amz-Expires=7200", http.StatusForbidden},
		{"expired", "X-Amz-Expires=3600", "X-Amz-Expires=0", http.StatusForbidden},
		{"another-name", "attachment", "inline", http.StatusForbidden},
	} {
		t.Run(tc.label, func(t *testing.T) {
			if !strings.Contains(link, tc.old) {
				t.Fatalf("%s has no %s", link, tc.old)
			}
			if status, _, _ := fetch(t, strings.Replace(link, tc.old, tc.new, 1)); status != tc.want {
				t.Errorf("status %d, want %d", status, tc.want)
			}
		})
	}
}

func TestPresignErrors(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "sim-aws")
	const maxLifetime = 7 * 24 * time.Hour // the limit of S3
	f := presigningFs(t, s, "")
	for _, name := range []string{"file", "dir/file"} {
		must.OK(t, afero.WriteFile(f, name, []byte("x"), 0))
	}
	for _, tc := range []struct {
		label, name string
		valid       time.Duration
		want        error
	}{
		{"file", "/file", maxLifetime, nil},
		{"missing", "/nothing", time.Hour, fs.ErrNotExist},
		{"directory", "/dir", time.Hour, fs.ErrNotExist},
		{"root", "/", time.Hour, syscall.EISDIR},
		{"not-utf-8", "/caf\xe9", time.Hour, syscall.EILSEQ},
		{"too-long", "/file", maxLifetime + time.Second, fs.ErrInvalid},
		{"too-short", "/file", time.Millisecond, fs.ErrInvalid},
	} {
		t.Run(tc.label, func(t *testing.T) {
			link, err := f.Presign(t.Context(), tc.name, tc.valid)
			if !errors.Is(err, tc.want) || (link == "") != (tc.want != nil) {
				t.Errorf("got %q, %v; want %v", link, err, tc.want)
			}
		})
	}
	t.Run("without-presigner", func(t *testing.T) {
		f := drivertest.MustNew(t.Context(), s.Client(), s.Bucket(t), nil)
		if _, err := f.Presign(t.Context(), "/file", time.Hour); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
}

// A URI names the object in characters that every tool accepts, and an RFC 3986 parser finds the key in it.
func TestURI(t *testing.T) {
	t.Parallel()
	f := drivertest.MustNew(t.Context(), nil, "acme-data", &driver.Options{Prefix: "in box/"})
	for _, n := range drivertest.Names() {
		t.Run(n.Label, func(t *testing.T) {
			uri := f.URI("/" + n.Path)
			parsed, err := url.Parse(uri)
			if err != nil || parsed.Scheme != "s3" || parsed.Host != "acme-data" || parsed.Path != "/in box/"+n.Path ||
				parsed.RawQuery != "" {
				t.Errorf("Parse(%s) = %+v, %v", uri, parsed, err)
			}
		})
	}
	for name, want := range map[string]string{
		"/":                "s3://acme-data/in%20box/",
		"/a+b/cafe\u0301":  "s3://acme-data/in%20box/a%2Bb/cafe%CC%81",
		"/caf\u00e9":       "s3://acme-data/in%20box/caf%C3%A9",
		"/a/../b.tar~1_-.": "s3://acme-data/in%20box/b.tar~1_-.",
		"/caf\xe9":         "",
	} {
		if got := f.URI(name); got != want {
			t.Errorf("URI(%q) = %s, want %s", name, got, want)
		}
	}
}
