package server

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/configtest"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var (
	mixedSessions = flag.Int(
		"mixed", 0, "how many sessions TestMixedSessions has at the same time; 0 stands for 200, or for 40 with -short")
	manySessions = flag.Int(
		"sessions", 0,
		"how many sessions TestManySessions has one after another; 0 stands for 2,000, or for 300 with -short")
)

// TestMixedSessions lets many sessions store, fetch, list, rename and delete files at the same time, in the clear and
// under TLS, abort uploads, hang up in them and guess passwords. In the end the bucket has all that was acknowledged,
// and nothing else.
//
//	go test ./internal/server -run TestMixedSessions -mixed 2000
func TestMixedSessions(t *testing.T) {
	count := number(*mixedSessions, 200, 40)
	a := newAttacked(t, nil)
	files := make([]map[string]string, count)
	var group errgroup.Group
	for i := range count {
		group.Go(func() error {
			w := &worker{site: a, dir: fmt.Sprintf("/w%d", i), random: rand.New(rand.NewPCG(uint64(i), 0)),
				files: map[string]string{}}
			files[i] = w.files
			if err := w.run(); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if bugs := a.log.taken(); bugs != "" {
		t.Errorf("the log has %s", bugs)
	}
	want := map[string]string{"inbox/bob/proof": "intact"}
	for _, own := range files {
		for name, content := range own {
			want["inbox"+name] = content
		}
	}
	keys := s3test.Objects(t, a.client, a.bucket)
	if wanted := slices.Sorted(maps.Keys(want)); !slices.Equal(keys, wanted) {
		t.Errorf("the bucket has %q, want %q", keys, wanted)
	}
	if uploads := s3test.OpenUploads(t, a.client, a.bucket); len(uploads) > 0 {
		t.Errorf("open multipart uploads %q", uploads)
	}
	const atOnce = 16
	group.SetLimit(atOnce)
	for key, content := range want {
		group.Go(func() error {
			out, err := a.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &a.bucket, Key: aws.String(key)})
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			defer out.Body.Close()
			got, err := io.ReadAll(out.Body)
			if err == nil && string(got) != content {
				err = fmt.Errorf("%s holds %d bytes that are not the %d acknowledged ones", key, len(got), len(content))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func number(given, long, short int) int {
	switch {
	case given > 0:
		return given
	case testing.Short():
		return short
	}
	return long
}

// A worker is a client that works in a directory of its own, and knows what the server has acknowledged.
type worker struct {
	site   *attacked
	dir    string
	random *rand.Rand
	conn   *ftptest.Conn
	files  map[string]string
}

// run does some operations, and a first and a last one that find out what is there.
func (w *worker) run() error {
	if err := w.login(); err != nil {
		return err
	}
	defer func() { w.conn.Close() }()
	operations := []func() error{
		w.store, w.store, w.store, w.large, w.fetch, w.fetch, w.list, w.rename, w.delete, w.abort, w.reset, w.hangUp,
		w.guess,
	}
	const steps = 12
	for range steps {
		if err := operations[w.random.IntN(len(operations))](); err != nil {
			return err
		}
	}
	return w.list()
}

func (w *worker) login() error {
	c, err := ftptest.Open(w.site.srv.Addr().String())
	if err != nil {
		return err
	}
	w.conn = c
	_, err = c.Reply()
	if w.random.IntN(2) == 0 {
		err = errors.Join(
			err, w.command("234", "AUTH TLS"), c.StartTLS(w.site.tls), w.command("200", "PBSZ 0"),
			w.command("200", "PROT P"))
		c.TLS = w.site.tls
	}
	return errors.Join(
		err, w.command("331", "USER carol"), w.command("230", "PASS "+configtest.Password), w.command("200", "TYPE I"))
}

func (w *worker) command(code, line string) error {
	reply, err := w.conn.Send(line)
	return want(code, line, reply, err)
}

func want(code, line, reply string, err error) error {
	if err == nil && !strings.HasPrefix(reply, code) {
		err = fmt.Errorf("%s: %s, want %s", line, reply, code)
	}
	return err
}

func (w *worker) name() string { return fmt.Sprintf("%s/f%d", w.dir, w.random.IntN(4)) }

// content is bytes that no other file has.
func (w *worker) content(size int) string {
	piece := fmt.Sprintf("%s %d\n", w.dir, w.random.Uint64())
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

func (w *worker) store() error { return w.upload(w.content(w.random.IntN(20_000))) }

// large uploads parts, now and then.
func (w *worker) large() error {
	const size = 11 << 20
	if w.random.IntN(64) > 0 {
		return nil
	}
	return w.upload(w.content(size))
}

func (w *worker) upload(content string) error {
	name := w.name()
	reply, err := w.conn.Upload("STOR "+name, content)
	if err = want("226", "STOR "+name, reply, err); err == nil {
		w.files[name] = content
	}
	return err
}

func (w *worker) fetch() error {
	name := w.name()
	got, reply, err := w.conn.Download("RETR " + name)
	content, there := w.files[name]
	code := map[bool]string{true: "226", false: "550"}[there]
	if err = want(code, "RETR "+name, reply, err); err == nil && got != content {
		err = fmt.Errorf("RETR %s: %d bytes that are not the %d stored ones", name, len(got), len(content))
	}
	return err
}

func (w *worker) list() error {
	got, reply, err := w.conn.Download("NLST " + w.dir)
	names := slices.Sorted(maps.Keys(w.files))
	code := "226"
	if len(names) == 0 && strings.HasPrefix(reply, "550") { // else the session has seen the directory
		code = "550"
	}
	if err = want(code, "NLST", reply, err); err == nil && got != strings.Join(append(names, ""), "\r\n") {
		err = fmt.Errorf("NLST: %q, want %q", got, names)
	}
	return err
}

func (w *worker) rename() error {
	from, to := w.name(), w.name()
	content, there := w.files[from]
	if !there {
		return w.command("550", "RNFR "+from)
	}
	err := errors.Join(w.command("350", "RNFR "+from), w.command("250", "RNTO "+to))
	if err == nil {
		delete(w.files, from)
		w.files[to] = content
	}
	return err
}

func (w *worker) delete() error {
	name := w.name()
	code := "550"
	if _, there := w.files[name]; there {
		code = "250"
	}
	delete(w.files, name)
	return w.command(code, "DELE "+name)
}

// begin begins an upload and sends a part of it.
func (w *worker) begin() (net.Conn, error) {
	data, err := w.conn.Data()
	if err != nil {
		return nil, err
	}
	err = w.command("150", "STOR "+w.name())
	if err == nil {
		_, err = io.WriteString(data, w.content(1+w.random.IntN(20_000)))
	}
	return data, err
}

func (w *worker) abort() error {
	data, err := w.begin()
	if err != nil {
		return err
	}
	defer data.Close()
	if err := w.command("426", "ABOR"); err != nil {
		return err
	}
	reply, err := w.conn.Reply()
	return want("226", "ABOR", reply, err)
}

// reset breaks the data connection.
func (w *worker) reset() error {
	data, err := w.begin()
	if err != nil {
		return err
	}
	if under, ok := data.(*tls.Conn); ok {
		data = under.NetConn()
	}
	_ = data.(*net.TCPConn).SetLinger(0)
	_ = data.Close()
	reply, err := w.conn.Reply()
	return want("426", "STOR", reply, err)
}

// hangUp closes the control connection in an upload, and then the data connection.
func (w *worker) hangUp() error {
	data, err := w.begin()
	if err != nil {
		return err
	}
	_ = w.conn.Close()
	_ = data.Close()
	return w.login()
}

// guess logs in with a wrong password, in a session of its own.
func (w *worker) guess() error {
	own := w.conn
	defer func() { w.conn = own }()
	var err error
	if w.conn, err = ftptest.Open(w.site.srv.Addr().String()); err != nil {
		return err
	}
	defer func() { w.conn.Close() }()
	_, err = w.conn.Reply()
	return errors.Join(err, w.command("331", "USER carol"), w.command("530", "PASS wrong"))
}

// TestManySessions has many sessions, a few of them at the same time, which end in each way that there is. Then the
// server uses no more goroutines, descriptors and memory than after the first ones.
//
//	go test ./internal/server -run TestManySessions -sessions 100000
func TestManySessions(t *testing.T) {
	count := number(*manySessions, 2000, 300)
	a := newAttacked(t, nil)
	const atOnce, first = 16, 100 // the first ones allocate what the server needs once
	play := func(from, to int) {
		t.Helper()
		var group errgroup.Group
		group.SetLimit(atOnce)
		for i := from; i < to; i++ {
			group.Go(func() error { return a.short(i) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		a.released(t)
	}
	play(0, first)
	before, early := heap(), used()
	play(first, count)
	// A session that was kept would take some ten thousand bytes.
	const slack, each = 16 << 20, 500
	after := heap()
	late := used()
	slog.New(slog.NewTextHandler(t.Output(), nil)).Info(
		"in use", "sessions", count, "heap_before", before, "heap_after", after,
		"goroutines_before", early.goroutines, "goroutines_after", late.goroutines,
		"descriptors_before", early.descriptors, "descriptors_after", late.descriptors)
	if most := before + slack + uint64(count)*each; after > most {
		t.Errorf("%d bytes are in use after %d sessions, %d before", after, count, before)
	}
}

// short is a session that does little.
func (a *attacked) short(i int) error {
	w := &worker{site: a, dir: "/short", random: rand.New(rand.NewPCG(uint64(i), 1)), files: map[string]string{}}
	if i%8 == 0 {
		return w.guess()
	}
	if err := w.login(); err != nil {
		return err
	}
	defer func() { w.conn.Close() }()
	switch i % 8 {
	case 1:
		return w.command("221", "QUIT")
	case 2:
		w.dir = fmt.Sprintf("/short%d", i%50)
		_, err := w.conn.Upload("STOR "+w.dir, w.content(100))
		return err
	case 3:
		_, _, err := w.conn.Download("NLST /")
		return err
	case 4:
		return w.abort()
	case 5:
		_, err := w.conn.Passive() // to which no client connects
		return err
	case 6:
		return w.hangUp()
	}
	return nil // hangs up
}

// heap is how many bytes are in use.
func heap() uint64 {
	const rounds = 3 // what finalizers and pools hold goes in the second and third one
	var m runtime.MemStats
	for range rounds {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
