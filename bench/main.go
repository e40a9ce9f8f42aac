// Command bench measures babelftp against its S3 server. In one run, the AWS SDK does the same work
// alternately with S3 and over FTP. The bench prints ratios, because absolute numbers of one machine say
// little about another machine. It requires Linux.
//
//	make bench                                   # everything, against MinIO
//	go run ./bench -short -only "direct: 1"      # works whose name contains the text, with an eighth of the bytes
//	go run ./bench -binary ./before -binary ./after
//	go run ./bench -peer other=ftp://user:password@127.0.0.1:2121/bench
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the parsed command line.
type options struct {
	shrink   int
	short    bool
	only     string
	rounds   int
	json     bool
	page     string // page to write the table to, or empty
	minio    string
	data     string
	binaries []string
	lines    []string
	peers    []peer

	s3Address, slowAddress string
}

// A peer is another FTP server, which the user runs in front of the S3 server of the bench.
type peer struct {
	name string
	urls map[string]string // by link
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{shrink: 1}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.short, "short", false, "use an eighth of the bytes and files")
	f.StringVar(&o.only, "only", "", "only run works whose name contains this `text`")
	f.IntVar(&o.rounds, "rounds", 5, "number of runs of each work by each contender; the table shows the medians")
	f.BoolVar(&o.json, "json", false, "print all values as JSON")
	f.StringVar(
		&o.page, "page", "",
		"also write the table to this `file`, with the date and the machine, for example docs/benchmarks.md")
	f.StringVar(&o.minio, "minio", "", "MinIO's `binary` (default .tools/bin/minio, from make tools)")
	f.StringVar(&o.data, "data", "", "`directory` for MinIO's files (default a temporary one)")
	f.Func(
		"binary", "a `binary` of babelftp to measure, instead of one built from this source; may be repeated",
		func(s string) error {
			name, err := filepath.Abs(s)
			o.binaries = append(o.binaries, name)
			return err
		})
	f.Func(
		"set", "a `line` to add to babelftp's configuration, such as \"memory: 128MiB\"; may be repeated",
		func(s string) error {
			o.lines = append(o.lines, s)
			return nil
		})
	f.Func(
		"peer",
		"another server, as `NAME=URL` or NAME=URL,URL: ftp://user:password@host:port/directory before S3, and "+
			"before the "+
			"slow S3; may be repeated", func(s string) error {
			name, urls, found := strings.Cut(s, "=")
			if !found {
				return errors.New("want NAME=URL")
			}
			p := peer{name: name, urls: map[string]string{}}
			direct, slow, both := strings.Cut(urls, ",")
			if p.urls["direct"] = direct; both {
				p.urls["slow"] = slow
			}
			o.peers = append(o.peers, p)
			return nil
		})
	f.StringVar(&o.s3Address, "s3-address", "", "`address` of MinIO, for peers (default a free port)")
	f.StringVar(&o.slowAddress, "slow-address", "127.0.0.1:0", "`address` of the slow S3, for peers")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.short {
		o.shrink = short
	}
	return o, nil
}

// run executes a command line.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	t, err := measure(ctx, *o, stderr)
	if t == nil {
		return err
	}
	show := t.print
	if o.json {
		show = t.printJSON
	}
	err = errors.Join(show(stdout), err)
	if o.page != "" {
		err = errors.Join(err, t.writePage(o.page, args, time.Now()))
	}
	return err
}

// measure returns a table of the results, and the errors of works that failed.
func measure(ctx context.Context, o options, log io.Writer) (*table, error) {
	dir, err := os.MkdirTemp(o.data, "babelftp-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	root, err := s3test.Repository()
	if err != nil {
		return nil, err
	}
	if o.minio == "" {
		o.minio = filepath.Join(root, ".tools", "bin", "minio")
	}
	if len(o.binaries) == 0 {
		fmt.Fprintln(log, "building babelftp")
		binary, err := build(ctx, root, dir)
		if err != nil {
			return nil, err
		}
		o.binaries = []string{binary}
	}
	b, err := start(ctx, o, dir, log)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	b.addRaw()
	for _, binary := range o.binaries {
		if err := b.addBabelftp(ctx, binary, dir, o.lines); err != nil {
			return nil, err
		}
	}
	for _, p := range o.peers {
		if err := b.addPeer(ctx, p); err != nil {
			return nil, err
		}
	}
	return b.run(ctx, works(sizes{o.shrink}), o.only, o.rounds)
}
