package inspect_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// long is a timeout that a working inspector never reaches. short is for inspectors that do not respond.
const (
	long  = time.Minute
	short = 100 * time.Millisecond
)

// mustMake returns a function that returns the inspector, or fails the test if there is an error.
func mustMake(t *testing.T) func(i *inspect.Inspector, err error) *inspect.Inspector {
	return func(i *inspect.Inspector, err error) *inspect.Inspector {
		t.Helper()
		must.OK(t, err)
		return i
	}
}

// verdict inspects a file, which is sent in pieces.
func verdict(t *testing.T, i *inspect.Inspector, content []byte) error {
	t.Helper()
	f := i.Begin(t.Context(), "/invoices/été 1.pdf")
	defer f.Close()
	for len(content) > 0 {
		n, err := f.Write(content[:min(len(content), 100_000)])
		if err != nil {
			return err
		}
		content = content[n:]
	}
	return f.Verdict()
}

// checkVerdicts checks that good files of several sizes are accepted and bad ones refused. For files below maxNamed
// bytes, the refusal must name the signature.
func checkVerdicts(t *testing.T, i *inspect.Inspector, signature string, maxNamed int) {
	t.Helper()
	for _, size := range []int{0, 1, inspect.BufferSize, inspect.BufferSize + 1, 3_000_000} {
		if err := verdict(t, i, bytes.Repeat([]byte("a "), size)[:size]); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if size == 0 {
			continue
		}
		err := verdict(t, i, append([]byte(servicetest.BadFile+"\n"), bytes.Repeat([]byte("a "), size)...)[:size+44])
		refusal, ok := errors.AsType[*inspect.Refusal](err)
		if !ok || (refusal.Reason[""] != signature && size < maxNamed) {
			t.Errorf("%d bad bytes: got verdict %v, want a refusal with %q", size, err, signature)
		}
	}
}

// wantFailure checks that err is not a refusal and contains a text.
func wantFailure(t *testing.T, err error, why string) {
	t.Helper()
	if err == nil || errors.Is(err, inspect.ErrRefused) || !strings.Contains(err.Error(), why) {
		t.Errorf("got verdict %v, want a failure with %q", err, why)
	}
}

func TestClamd(t *testing.T) {
	i := mustMake(t)(inspect.NewClamd("unix:"+servicetest.StartClamd(t), long))
	checkVerdicts(t, i, servicetest.BadSignature, math.MaxInt)
	wantFailure(t, verdict(t, i, make([]byte, 2*servicetest.MaxStream)), "size limit exceeded")
}

func TestCICAP(t *testing.T) {
	address := servicetest.StartCICAP(t, servicetest.StartClamd(t))
	// c-icap begins to return a longer file before clamd has inspected it, so no header can contain the signature.
	const maxNamed = inspect.BufferSize
	checkVerdicts(t, mustMake(t)(inspect.NewICAP("icap://"+address+"/virus_scan", long)), servicetest.BadSignature, maxNamed)
	if err := verdict(t, mustMake(t)(inspect.NewICAP("icap://"+address+"/echo", long)), make([]byte, 3_000_000)); err != nil {
		t.Errorf("echo: %v", err)
	}
	wantFailure(t, verdict(t, mustMake(t)(inspect.NewICAP("icap://"+address+"/none", long)), nil), "404")
}

// listen accepts connections and serves them one after another until the test ends.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// TestICAPResponses checks the verdict for each kind of response (RFC 3507) to REQMOD and RESPMOD.
func TestICAPResponses(t *testing.T) {
	const file = "the file"
	message := func(head, body string) string {
		return fmt.Sprintf("ICAP/1.0 200 OK\r\nISTag: \"1\"\r\nEncapsulated: res-hdr=0, res-body=%d\r\n\r\n%s%x\r\n%s\r\n0\r\n\r\n",
			len(head), head, len(body), body)
	}
	const ok, put, forbidden = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "PUT http://a/ HTTP/1.1\r\n\r\n", "HTTP/1.1 403 No\r\n\r\n"
	for name, test := range map[string]struct{ method, response, want string }{
		"unmodified":     {"REQMOD", "ICAP/1.0 204 No\r\n\r\n", ""},
		"same-request":   {"REQMOD", message(put, file), ""},
		"same-response":  {"RESPMOD", message(ok, file), ""},
		"other-request":  {"REQMOD", message(put, "harmless"), "rejected"},
		"other-response": {"RESPMOD", message(ok, "a page"), "rejected"},
		"forbidden":      {"RESPMOD", message(forbidden, file), "rejected"},
		"page":           {"REQMOD", message(ok, file), "rejected"},
		"threat":         {"REQMOD", "ICAP/1.0 204 No\r\nX-Infection-Found: Type=0; Resolution=2; Threat=Worm;\r\n\r\n", "Worm"},
		"error":          {"REQMOD", "ICAP/1.0 500 Bad\r\n\r\n", "500 Bad"},
		"cut":            {"RESPMOD", message(ok, file)[:100], "EOF"},
		"http":           {"REQMOD", "HTTP/1.1 200 OK\r\n\r\n", "not an ICAP server"},
	} {
		t.Run(name, func(t *testing.T) {
			address := listen(t, func(conn net.Conn) {
				r := bufio.NewReader(conn)
				line, _, err := inspect.ReadHead(r)
				switch {
				case err != nil:
				case strings.HasPrefix(line, "OPTIONS "):
					_, _ = fmt.Fprintf(conn, "ICAP/1.0 200 OK\r\nMethods: %s\r\n\r\n", test.method)
				case !strings.HasPrefix(line, test.method+" icap://"):
					t.Errorf("unexpected request %q", line)
				default:
					for received := ""; err == nil && !strings.HasSuffix(received, "0\r\n\r\n"); received += line {
						line, err = r.ReadString('\n')
					}
					_, _ = io.WriteString(conn, test.response)
				}
			})
			err := verdict(t, mustMake(t)(inspect.NewICAP("icap://"+address+"/service", long)), []byte(file))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("verdict %v, want %q", err, test.want)
			}
		})
	}
}

func TestHook(t *testing.T) {
	secret, name := "s3cret", ""
	respond := func(body []byte) string {
		if bytes.Contains(body, []byte(servicetest.BadFile)) {
			return `{"accept": false, "reason": {"": "bad", "fr": "mauvais"}}`
		}
		return `{"accept": true}`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		want := web.Sign([]byte(secret), r.Header.Get(web.TimestampHeader), body)
		if got := r.Trailer.Get(web.SignatureHeader); err != nil || got != want {
			t.Errorf("signature %q, want %q, %v", got, want, err)
		}
		name = r.Header.Get(inspect.NameHeader)
		_, _ = io.WriteString(w, respond(body))
	}))
	defer server.Close()
	i := mustMake(t)(inspect.NewHook(server.URL, secret, nil, long))
	checkVerdicts(t, i, "bad", math.MaxInt)
	if want := "/invoices/%C3%A9t%C3%A9%201.pdf"; name != want {
		t.Errorf("name %q, want %q", name, want)
	}
	for _, invalid := range []string{
		``, `{}`, `yes`, `{"accept": "true"}`, strings.Repeat(" ", inspect.MaxResponse) + `{"accept": true}`,
	} {
		respond = func([]byte) string { return invalid }
		wantFailure(t, verdict(t, i, []byte("a")), "hook")
	}
}

// TestBrokenHooks checks that an inspection fails if a hook hangs, accepts too early, crashes or redirects.
func TestBrokenHooks(t *testing.T) {
	stop := make(chan struct{})
	for name, test := range map[string]struct {
		timeout time.Duration
		serve   http.HandlerFunc
		want    string
	}{
		"hangs":    {short, func(http.ResponseWriter, *http.Request) { <-stop }, "time"},
		"silent":   {short, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-stop }, "timeout"},
		"early":    {long, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"accept": true}`) }, inspect.ErrEarly.Error()},
		"dies":     {long, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "verdict"},
		"redirect": {long, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusTemporaryRedirect) }, "307"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.serve)
			defer server.Close()
			if test.timeout == short {
				defer func() { stop <- struct{}{} }()
			}
			i := mustMake(t)(inspect.NewHook(server.URL, "", nil, test.timeout))
			wantFailure(t, verdict(t, i, make([]byte, 32<<20)), test.want)
		})
	}
}

// TestManyFiles inspects more files at the same time than clamd accepts connections.
func TestManyFiles(t *testing.T) {
	clamd := servicetest.StartClamd(t)
	icap := servicetest.StartCICAP(t, clamd)
	for name, i := range map[string]*inspect.Inspector{
		"clamd": mustMake(t)(inspect.NewClamd("unix:"+clamd, long)),
		"icap":  mustMake(t)(inspect.NewICAP("icap://"+icap+"/virus_scan", long)),
	} {
		t.Run(name, func(t *testing.T) {
			var work sync.WaitGroup
			for range 1000 {
				work.Go(func() {
					if err := verdict(t, i, make([]byte, 10_000)); err != nil {
						t.Error(err)
					}
				})
			}
			work.Wait()
		})
	}
}

// TestEndedUpload checks that an inspector can tell that an aborted upload is incomplete, and that it is not accepted.
func TestEndedUpload(t *testing.T) {
	received := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		received <- err
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	for _, end := range []func(*inspect.File){(*inspect.File).Close, func(*inspect.File) { cancel() }} {
		f := mustMake(t)(inspect.NewHook(server.URL, "", nil, long)).Begin(ctx, "/a")
		must.Write(t, f, "half")
		end(f)
		if err := f.Verdict(); err == nil {
			t.Error("an ended upload was accepted")
		}
		if err := <-received; err == nil {
			t.Error("the inspector received a complete request")
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "unix:", "unix:a", "tcp://host", "http://host:1", "/run/clamd"} {
		if _, err := inspect.NewClamd(address, long); err == nil {
			t.Errorf("accepted %q as an address of clamd", address)
		}
	}
	for _, address := range []string{"", "host:1344", "icap:///a", "http://host/a"} {
		if _, err := inspect.NewICAP(address, long); err == nil {
			t.Errorf("accepted %q as a URL of an ICAP service", address)
		}
	}
	for _, address := range []string{"", "host", "ftp://host/", "https:///a"} {
		if _, err := inspect.NewHook(address, "", nil, long); err == nil {
			t.Errorf("accepted %q as a URL of a hook", address)
		}
	}
}

// TestRefusalText checks which reason is chosen for a reader, and that it is made printable.
func TestRefusalText(t *testing.T) {
	both := map[string]string{"en": "bad", "fr": "mauvais", "zh-Hant": "不好"}
	for name, test := range map[string]struct {
		reasons      map[string]string
		reader, want string
	}{
		"own":         {both, "fr", "mauvais"},
		"region":      {both, "fr-CA", "mauvais"},
		"script":      {both, "zh-TW", "不好"},
		"english":     {both, "de", "bad"},
		"any":         {map[string]string{"ja": "不可"}, "de", "不可"},
		"signature":   {map[string]string{"": "Eicar", "fr": "mauvais"}, "de", "Eicar"},
		"own-first":   {map[string]string{"": "Eicar", "fr": "mauvais"}, "fr", "mauvais"},
		"no-language": {map[string]string{"no language": "bad"}, "de", ""},
		"none":        {nil, "de", ""},
		"one-line":    {map[string]string{"en": "a\r\n226 \x1b[1mb\u202e\u2066\x00 c\xff"}, "en", "a 226 [1mb c"},
		"joined":      {map[string]string{"fa": "می\u200cشود"}, "fa", "می\u200cشود"},
		"long":        {map[string]string{"en": strings.Repeat("é", 1000)}, "en", strings.Repeat("é", 199) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := inspect.Refusal{Reason: test.reasons}
			if got := refusal.Text(language.MustParse(test.reader)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
