package acceptance_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

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
