package acceptance_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestRefusedChecksums uses an S3 server that does not identify itself and rejects every request with a checksum.
// Users can upload, append, resume, download and hash files as on any other server.
//
// Reported for Backblaze B2: vatesfr/xen-orchestra#8358
func TestRefusedChecksums(t *testing.T) {
	t.Parallel()
	storage := s3test.Start(t, "minio")
	to, err := url.Parse(storage.Endpoint)
	must.OK(t, err)
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // the signature covers it
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del("Server")
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if strings.Contains(name, "Checksum") || name == "X-Amz-Trailer" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = fmt.Fprintf(w, "<Error><Code>InvalidArgument</Code><Message>Unsupported header '%s' received for "+
					"this API call.</Message></Error>", strings.ToLower(name))
				return
			}
		}
		pass.ServeHTTP(w, r)
	}))
	defer server.Close()
	through := *storage
	through.Endpoint = server.URL
	s := new(site)
	s.storage, s.client = &through, storage.Client()
	s.buckets = map[string]string{acme: storage.Bucket(t), umbrella: storage.Bucket(t)}
	s.start(t, s.configure(t))
	c := s.alice(t)
	for name, size := range map[string]int{"/small": smallSize, "/large": 6 << 20} {
		whole := string(content(size))
		c.Store(name, whole[:size/2])
		if reply, err := c.Upload("APPE "+name, whole[size/2:]); err != nil || reply[:3] != "226" {
			t.Errorf("APPE %s: %q, %v", name, reply, err)
		}
		if got, reply, err := c.Download("RETR " + name); err != nil || got != whole {
			t.Errorf("RETR %s: %q, %v, %d bytes", name, reply, err, len(got))
		}
		for _, command := range []string{"HASH ", "XMD5 ", "XCRC ", "SIZE ", "MDTM "} {
			if reply, err := c.Send(command + name); err != nil || reply[0] != '2' {
				t.Errorf("%s%s: %q, %v", command, name, reply, err)
			}
		}
	}
	for _, lines := range [][]string{{"RNFR /small", "RNTO /moved"}, {"MKD /dir"}, {"RMD /dir"}, {"DELE /moved"},
		{"DELE /large"}} {
		for _, line := range lines {
			if reply, err := c.Send(line); err != nil || reply[0] != '2' && reply[0] != '3' {
				t.Errorf("%s: %q, %v", line, reply, err)
			}
		}
	}
}
