package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The latency and bandwidth of the slow S3 link.
const (
	slowLatency   = 20 * time.Millisecond
	slowBandwidth = 25 << 20
)

const bucket = "bench"

// The links are the connections to the S3 server: direct, with the latency and bandwidth of a distant server,
// and through a proxy that counts requests.
const (
	direct  = "direct"
	slow    = "slow"
	counted = "counted"
)

// A bench holds the state that all works share: the S3 server, the links and the contenders.
type bench struct {
	server     *s3test.Server
	client     *s3.Client
	distance   *distantServer
	proxy      *s3test.Proxy
	contenders []*contender
	content    content
	log        io.Writer

	names int            // number of names given out
	dirs  map[int]string // directories to list, by number of files
	stops []func()
}

// errNoTarget reports that a contender does not support a link.
var errNoTarget = errors.New("link not supported")

// A contender is a column of the table: the raw S3 client, babelftp or another server.
type contender struct {
	name    string
	targets map[string]target // by link
	own     *babelftp         // nil if the bench does not run the server
}

// start starts the S3 server and the links. data is the directory for its files.
func start(ctx context.Context, o options, data string, log io.Writer) (b *bench, err error) {
	b = &bench{content: newContent(), log: log, dirs: map[int]string{}}
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	program := s3test.Program{
		Binary: o.minio, Data: data, Address: o.s3Address, AccessKeyID: "bench", SecretAccessKey: "bench-secret",
	}
	s, stop, err := program.Start(ctx, "minio")
	if err != nil {
		return b, err
	}
	b.server = s
	b.stops = append(b.stops, func() { _ = stop() })
	b.client = s.Client()
	if _, err := b.client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: new(bucket)}); err != nil {
		return b, err
	}
	if b.distance, err = newDistantServer(
		s, o.slowAddress, distance{slowLatency, slowBandwidth}); err != nil {
		return b, err
	}
	b.stops = append(b.stops, func() { _ = b.distance.close() })
	if b.proxy, err = s3test.NewProxy(s); err != nil {
		return b, err
	}
	b.stops = append(b.stops, func() { _ = b.proxy.Close() })
	return b, nil
}

func (b *bench) stop() {
	for _, stop := range slices.Backward(b.stops) {
		stop()
	}
}

// endpoints returns the URLs of the S3 server by link.
func (b *bench) endpoints() map[string]string {
	return map[string]string{direct: b.server.Endpoint, slow: b.distance.endpoint(), counted: b.proxy.Server().Endpoint}
}

// addRaw adds the raw S3 client.
func (b *bench) addRaw() {
	c := &contender{name: "raw S3", targets: map[string]target{}}
	for link, endpoint := range b.endpoints() {
		s := *b.server
		s.Endpoint = endpoint
		c.targets[link] = &rawS3{client: s.Client(), bucket: bucket, content: b.content, whole: link == direct}
	}
	b.contenders = append(b.contenders, c)
}

// addBabelftp adds a binary of babelftp. dir is for its logs, and lines are appended to its configuration.
func (b *bench) addBabelftp(ctx context.Context, binary, dir string, lines []string) error {
	own := &babelftp{binary: binary, lines: lines, server: b.server, content: b.content, dir: dir,
		running: map[string]*running{}}
	c := &contender{name: filepath.Base(binary), targets: map[string]target{}, own: own}
	b.contenders = append(b.contenders, c)
	b.stops = append(b.stops, c.own.stopAll)
	for link, endpoint := range b.endpoints() {
		server, err := c.own.start(ctx, link, endpoint)
		if err != nil {
			return err
		}
		c.targets[link] = server
	}
	return nil
}

// addPeer adds a server that the user runs, and waits until it accepts connections.
func (b *bench) addPeer(ctx context.Context, p peer) error {
	c := &contender{name: p.name, targets: map[string]target{}}
	b.contenders = append(b.contenders, c)
	for link, text := range p.urls {
		server, err := parseFTP(text, b.content)
		if err != nil {
			return err
		}
		c.targets[link] = server
		fmt.Fprintf(b.log, "waiting for %s at %s, before S3 at %s, bucket %s, access key %s, secret key %s\n",
			p.name, server.address, b.endpoints()[link], bucket, b.server.AccessKeyID, b.server.SecretAccessKey)
		for {
			conn, err := net.Dial("tcp", server.address)
			if err == nil {
				_ = conn.Close()
				break
			}
			select {
			case <-time.After(time.Second / 4):
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// open opens a session of the contender.
func (j *job) open(ctx context.Context, link string) (session, error) {
	t := j.contender.targets[link]
	if t == nil {
		return nil, errNoTarget
	}
	return t.open(ctx)
}

// process returns the contender's server, or nil if it does not run on this machine.
func (j *job) process(link string) (*process, error) {
	server, ok := j.contender.targets[link].(*ftpServer)
	if !ok {
		return nil, nil
	}
	_, port, err := net.SplitHostPort(server.address)
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	return listening(n)
}

// freshProcess returns the contender's server, restarted if the bench runs it.
func (j *job) freshProcess(ctx context.Context) (*process, error) {
	if j.contender.own != nil {
		server, err := j.contender.own.start(ctx, direct, j.endpoints()[direct])
		if err != nil {
			return nil, err
		}
		j.contender.targets[direct] = server
	}
	return j.process(direct)
}

// cpu returns the CPU time that the contender's server has used, or 0 without a server.
func (j *job) cpu(link string) (time.Duration, error) {
	p, err := j.process(link)
	if p == nil || err != nil {
		return 0, err
	}
	return p.cpu()
}

// cpuOf returns the CPU time that the contender's server uses during work, or 0 without a server.
func (j *job) cpuOf(link string, work func() error) (time.Duration, error) {
	before, err := j.cpu(link)
	if err != nil {
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	after, err := j.cpu(link)
	return after - before, err
}

// newName returns an unused name.
func (b *bench) newName() string {
	b.names++
	return fmt.Sprintf("work-%d", b.names)
}

// remove removes a file, or all files in a directory if the name ends with a slash.
func (b *bench) remove(ctx context.Context, name string) {
	if err := b.tryRemove(ctx, name); err != nil {
		fmt.Fprintf(b.log, "remove %s: %v\n", name, err)
	}
}

func (b *bench) tryRemove(ctx context.Context, name string) error {
	pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: new(bucket), Prefix: &name})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		var keys []types.ObjectIdentifier
		for _, o := range page.Contents {
			keys = append(keys, types.ObjectIdentifier{Key: o.Key})
		}
		if len(keys) == 0 {
			return nil
		}
		_, err = b.client.DeleteObjects(
			ctx, &s3.DeleteObjectsInput{Bucket: new(bucket), Delete: &types.Delete{Objects: keys}})
		if err != nil {
			return err
		}
	}
	return nil
}

// directory returns the name of a directory with this number of small files, which it creates on the first
// call.
func (b *bench) directory(ctx context.Context, entries int) (string, error) {
	if dir, made := b.dirs[entries]; made {
		return dir, nil
	}
	const atOnce = 16
	dir := "many-" + strconv.Itoa(entries)
	fmt.Fprintf(b.log, "making a directory of %d files\n", entries)
	raw := rawSession{&rawS3{client: b.client, bucket: bucket, content: b.content}}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range entries {
		group.Go(func() error { return raw.store(groupCtx, path.Join(dir, fmt.Sprintf("file-%06d.txt", i)), 1) })
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	b.dirs[entries] = dir
	return dir, nil
}

// run runs all works whose name contains only. Each round runs all contenders. The error joins the errors of
// failed works; the table has the results of the others.
func (b *bench) run(ctx context.Context, all []work, only string, rounds int) (*table, error) {
	t := &table{}
	for _, c := range b.contenders {
		t.contenders = append(t.contenders, c.name)
	}
	var errs []error
	for _, w := range all {
		if !strings.Contains(w.name, only) {
			continue
		}
		for round := range rounds {
			for i := range b.contenders {
				c := b.contenders[(i+round)%len(b.contenders)] // a different contender starts each round
				err := w.run(ctx, &job{bench: b, contender: c, report: func(r row, value float64) {
					t.add(r, c.name, round, value)
					fmt.Fprintf(
						b.log, "%d/%d  %-12s %-50s %8s %s\n", round+1, rounds, c.name, r.name, number(value), r.unit)
				}})
				if ctx.Err() != nil {
					return t, errors.Join(append(errs, ctx.Err())...)
				}
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %s: %w", w.name, c.name, err))
					fmt.Fprintln(b.log, errs[len(errs)-1])
				}
			}
		}
	}
	return t, errors.Join(errs...)
}
