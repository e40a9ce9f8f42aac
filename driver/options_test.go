package driver

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// mustNew is New for valid options.
func mustNew(client Client, opts *Options) *Fs {
	f, err := New(client, "bucket", opts)
	if err != nil {
		panic(err)
	}
	return f
}

// TestOptionOutOfRange checks that New refuses an option that is out of range, and that the error contains the range
// and the unit.
func TestOptionOutOfRange(t *testing.T) {
	t.Parallel()
	const (
		parts   = "want 5242880 to 5368709120 bytes"
		copies  = "want 1 to 5368709120 bytes"
		numbers = "want 1 to 10000 "
	)
	for name, test := range map[string]struct {
		opts Options
		want string
	}{
		"prefix-too-long": {Options{Prefix: strings.Repeat("p", 1025)},
			"option Prefix: 1025 bytes is out of range: want 0 to 1024 bytes"},
		"part-negative": {Options{PartSize: -1}, "option PartSize: -1 bytes is out of range: " + parts},
		"part-too-small": {Options{PartSize: 5<<20 - 1},
			"option PartSize: 5242879 bytes is out of range: " + parts},
		"part-too-large": {Options{PartSize: 5<<30 + 1},
			"option PartSize: 5368709121 bytes is out of range: " + parts},
		"download-concurrency-negative": {Options{DownloadConcurrency: math.MinInt},
			"option DownloadConcurrency: -9223372036854775808 requests is out of range: " + numbers + "requests"},
		"download-concurrency-too-high": {Options{DownloadConcurrency: 10_001},
			"option DownloadConcurrency: 10001 requests is out of range: " + numbers + "requests"},
		"memory-none": {Options{Memory: NewBudget(0)},
			"option Memory: 0 bytes is out of range: want at least 5242880 bytes"},
		"memory-negative": {Options{Memory: NewBudget(-1 << 20)},
			"option Memory: -1048576 bytes is out of range: want at least 5242880 bytes"},
		"memory-too-small": {Options{Memory: NewBudget(4 << 20)},
			"option Memory: 4194304 bytes is out of range: want at least 5242880 bytes"},
		"copy-negative": {Options{CopyLimit: -1}, "option CopyLimit: -1 bytes is out of range: " + copies},
		"copy-too-large": {Options{CopyLimit: 5<<30 + 1},
			"option CopyLimit: 5368709121 bytes is out of range: " + copies},
		"two": {Options{DownloadConcurrency: -1, CopyLimit: -1},
			numbers + "requests\ndriver: option CopyLimit: -1 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New(nil, "bucket", &test.opts)
			if f != nil || err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// TestOptionAtItsBound checks that New accepts the minimum and the maximum of each option, and the zero value.
func TestOptionAtItsBound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts  *Options
		parts int64 // part size in bytes
	}{
		"none":  {nil, s3api.MinPartSize},
		"zero":  {&Options{}, s3api.MinPartSize},
		"least": {&Options{PartSize: 5 << 20, DownloadConcurrency: 1, Memory: NewBudget(5 << 20), CopyLimit: 1}, 5 << 20},
		"greatest": {&Options{Prefix: strings.Repeat("p", 1024), PartSize: 5 << 30, DownloadConcurrency: 10_000,
			CopyLimit: 5 << 30}, 5 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := New(nil, "bucket", test.opts)
			if err != nil || f.uploads.PartSize != test.parts {
				t.Errorf("got %+v, %v; want parts of %d bytes", f, err, test.parts)
			}
		})
	}
}

// A file system of the past lacks some options. The original file system must keep them.
func TestOptionsOfThePast(t *testing.T) {
	t.Parallel()
	f, err := New(nil, "bucket", &Options{Presigner: s3.NewPresignClient(s3.New(s3.Options{}))})
	if err != nil {
		t.Fatal(err)
	}
	past := f.At(Moment{})
	if _, err := past.Presign(t.Context(), "f", time.Minute); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("link to an earlier version: %v", err)
	}
	if f.opts.Presigner == nil {
		t.Error("At changed the presigner of the file system")
	}
}
