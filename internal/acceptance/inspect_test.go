package acceptance_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A badHook is an inspector that refuses bad files, and those of some names in ways of their own.
type badHook struct {
	waiting chan struct{} // a file waits for its verdict
	let     chan struct{} // closed when files may have their verdicts
}

// hookSettings are the lines of acme's configuration with a hook.
func hookSettings(t *testing.T, h *badHook, timeout string) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return fmt.Sprintf("    inspect: {timeout: %s, hook: {url: %q, secret: %q}}", timeout, server.URL, webhookSecret)
}

func (h *badHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const accepted = `{"accept": true}`
	name := r.Header.Get("Babelftp-Name")
	switch {
	case strings.Contains(name, "early"):
		_, _ = io.WriteString(w, accepted)
		return
	case strings.Contains(name, "dies"):
		_, _ = io.CopyN(io.Discard, r.Body, 10)
		panic(http.ErrAbortHandler)
	}
	content, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
	case strings.Contains(name, "hangs"):
		<-r.Context().Done()
	case strings.Contains(name, "lies"):
		_, _ = io.WriteString(w, `{"accept": "yes"}`)
	case strings.Contains(name, "waits"):
		h.waiting <- struct{}{}
		select {
		case <-h.let:
			_, _ = io.WriteString(w, accepted)
		case <-r.Context().Done():
		}
	case strings.Contains(string(content), servicetest.BadFile):
		_, _ = io.WriteString(w, `{"accept": false, "reason": {"": "Test.Bad.UNOFFICIAL"}}`)
	default:
		_, _ = io.WriteString(w, accepted)
	}
}

// watch asks S3 for the files of acme until the function that it returns is called. It fails the test if one of these
// names is there, or if the good file is bad.
func (s *site) watch(t *testing.T, names []string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	bucket := s.buckets[acme]
	var ended sync.WaitGroup
	looks := 0
	ended.Go(func() {
		for ctx.Err() == nil {
			page, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &bucket})
			if err != nil {
				break
			}
			for _, o := range page.Contents {
				if slices.Contains(names, strings.TrimPrefix(*o.Key, prefix)) {
					t.Errorf("the listing shows %s", *o.Key)
				}
			}
			looks++
		}
	})
	ended.Go(func() {
		for ctx.Err() == nil {
			for _, name := range append(names, "good") {
				out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: aws.String(prefix + name)})
				if err != nil {
					continue
				}
				content, _ := io.ReadAll(out.Body)
				_ = out.Body.Close()
				if name != "good" || strings.Contains(string(content), servicetest.BadFile) {
					t.Errorf("S3 returns %d bytes of %s", len(content), name)
				}
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
		t.Logf("looked %d times", looks)
	}
}

// TestRefusedFilesNeverExist has several sessions store bad files in each way, with real inspectors, while another
// client of S3 looks for them. None is ever there, and nothing of them stays. Good files are stored.
func TestRefusedFilesNeverExist(t *testing.T) {
	t.Parallel()
	for inspector, settings := range map[string]func(t *testing.T) string{
		"clamd": func(t *testing.T) string {
			return fmt.Sprintf("    inspect: {clamd: %q}", "unix:"+servicetest.StartClamd(t))
		},
		"icap": func(t *testing.T) string {
			address := servicetest.StartCICAP(t, servicetest.StartClamd(t))
			return fmt.Sprintf("    inspect: {icap: %q}", "icap://"+address+"/virus_scan")
		},
		"hook": func(t *testing.T) string { return hookSettings(t, &badHook{}, "1m") },
	} {
		t.Run(inspector, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, s3test.Start(t, "minio"), settings(t), "commit_delay: 10ms")
			const sessions, large = 3, 11 << 19 // two of them are less than clamd takes
			var bad []string
			for i := range sessions {
				for _, kind := range []string{"small", "large", "begins", "resumed"} {
					bad = append(bad, fmt.Sprintf("%s-%d", kind, i))
				}
			}
			padding := strings.Repeat("0123456789abcdef", large/16)
			virus := servicetest.BadFile + "\n"
			owner := ftptest.Dial(t, s.address)
			owner.Login("alice@acme", password)
			owner.Store("good", padding)
			stop := s.watch(t, bad)
			var work sync.WaitGroup
			for i := range sessions {
				work.Go(func() {
					c := ftptest.Dial(t, s.address)
					c.Login("alice@acme", password)
					refused := func(command, content string) {
						reply := s.send(t, c, command, content)
						if !strings.HasPrefix(reply, "550 ") {
							t.Errorf("%s: %q", command, reply)
						}
					}
					refused(fmt.Sprintf("STOR small-%d", i), virus)
					refused(fmt.Sprintf("STOR large-%d", i), padding+virus)
					refused(fmt.Sprintf("STOR begins-%d", i), virus+padding)
					// half of the virus is there, and the other one comes
					name := fmt.Sprintf("half-%d", i)
					c.Store(name, padding+virus[:10])
					refused("APPE "+name, virus[10:])
					c.Command(350, fmt.Sprintf("REST %d", len(padding)+10))
					refused("STOR "+name, virus[10:])
					// an interrupted upload is resumed by another session
					name, whole := fmt.Sprintf("resumed-%d", i), virus+padding+padding
					data := c.Data()
					c.Command(150, "STOR "+name)
					if _, err := io.WriteString(data, whole[:len(whole)-1000]); err != nil {
						t.Error(err)
					}
					other := ftptest.Dial(t, s.address)
					other.Login("alice@acme", password)
					_, _ = c.Send("ABOR")
					_ = data.Close()
					size := ""
					waitUntil(t, func() bool {
						reply, err := other.Send("SIZE " + name)
						size, _ = strings.CutPrefix(reply, "213 ")
						return err == nil && size != reply
					}, func() { t.Error("no upload can be resumed") })
					var from int
					_, _ = fmt.Sscan(size, &from)
					other.Command(350, "REST "+size)
					if reply := s.send(t, other, "STOR "+name, whole[from:]); !strings.HasPrefix(reply, "550 ") {
						t.Errorf("a resumed upload: %q", reply)
					}
					if reply, _ := other.Send("SIZE " + name); !strings.HasPrefix(reply, "550 ") {
						t.Errorf("SIZE of a refused upload: %q", reply)
					}
				})
			}
			work.Wait()
			owner.Store("stored", padding+padding[:1000])
			stop()
			if open := s.uploads(t, ""); len(open) > 0 {
				t.Errorf("open uploads: %q", open)
			}
			if got, want := s.files(t), []string{"good", "half-0", "half-1", "half-2", "stored"}; !slices.Equal(got, want) {
				t.Errorf("the bucket has %q, want %q", got, want)
			}
			s.mustStore(t, "half-0", []byte(padding+virus[:10]))
		})
	}
}

// send sends a file that the server may refuse before its end, and returns the reply.
func (s *site) send(t *testing.T, c *ftptest.Client, command, content string) string {
	t.Helper()
	data := c.Data()
	defer data.Close()
	c.Command(150, command)
	_, _ = io.WriteString(data, content)
	_ = data.Close()
	reply, err := c.Conn.Reply()
	if err != nil {
		t.Error(err)
	}
	return reply
}

// TestBadInspectors has a hook that hangs, lies or dies. No file is stored without a verdict, and the client learns
// that it may try again.
func TestBadInspectors(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), hookSettings(t, &badHook{}, "1s"), "commit_delay: 10ms")
	c := ftptest.Dial(t, s.address)
	c.Login("alice@acme", password)
	c.Command(200, "LANG en")
	for _, size := range []int{1000, 12 << 20} {
		for _, kind := range []string{"hangs", "lies", "dies", "early"} {
			if kind == "early" && size < onePart { // the hook has all of it
				continue
			}
			name := fmt.Sprintf("%s-%d", kind, size)
			stop := s.watch(t, []string{name})
			reply := s.send(t, c, "STOR "+name, strings.Repeat("x", size))
			stop()
			if !strings.HasPrefix(reply, "451 "+name+": The file could not be checked. Please try again.") {
				t.Errorf("%s: %q", name, reply)
			}
			c.Command(250, "DELE "+name) // what is kept
		}
	}
	c.Store("good", "good")
	if got := s.files(t); !slices.Equal(got, []string{"good"}) || len(s.uploads(t, "")) > 0 {
		t.Errorf("the bucket has %q and the uploads %q, want one file", got, s.uploads(t, ""))
	}
}

// TestEndsWhileJudged ends uploads that wait for their verdicts: by ABOR, by a client that hangs up, and by the end of
// the server. None of the files is there.
func TestEndsWhileJudged(t *testing.T) {
	t.Parallel()
	for label, size := range map[string]int{"small": 1000, "large": 7 << 20} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			h := &badHook{waiting: make(chan struct{}, 10), let: make(chan struct{})}
			s := newSite(t, s3test.Start(t, "minio"), hookSettings(t, h, "1m"), "commit_delay: 10ms", "drain_timeout: 1s")
			names := []string{"waits-abort", "waits-hang-up", "waits-end"}
			stop := s.watch(t, names)
			begin := func(name string) *ftptest.Client {
				t.Helper()
				c := ftptest.Dial(t, s.address)
				c.Login("alice@acme", password)
				data := c.Data()
				c.Command(150, "STOR "+name)
				if _, err := io.WriteString(data, strings.Repeat("x", size)); err != nil {
					t.Fatal(err)
				}
				_ = data.Close()
				<-h.waiting
				return c
			}
			c := begin(names[0])
			c.Command(426, "ABOR")
			c.Reply(226)
			_ = begin(names[1]).Close()
			s.awaitMetric(t, "babelftp_sessions", 1)
			_ = begin(names[2])
			s.server.signal(syscall.SIGTERM)
			<-s.server.done
			stop()
			for _, name := range s.files(t) {
				if !strings.HasPrefix(name, ".babelftp/uploads/") { // what can be resumed
					t.Errorf("the bucket has %q", name)
				}
			}
		})
	}
}
