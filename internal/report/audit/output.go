package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
)

// closeTimeout limits the wait for the last lines when the server shuts down.
const closeTimeout = 5 * time.Second

// An Output writes the lines of the audit log to the configured destinations: a file, standard output and a webhook.
// Create it with [NewOutput].
type Output struct {
	log      *slog.Logger
	file     *File     // nil without audit.file
	required bool      // set by audit.required
	writers  []*Writer // empty if no audit log is configured
	endPost  context.CancelFunc
}

// NewOutput returns an Output. It opens nothing. lost returns the function that counts the lost lines of a destination
// (file, stdout or webhook).
func NewOutput(
	ctx context.Context, cfg config.Audit, stdout io.Writer,
	lost func(destination string) func(lines int), log *slog.Logger,
) (*Output, error) {
	o := &Output{log: log, required: cfg.Required, endPost: func() {}}
	add := func(name string, out io.Writer) *Writer {
		w := NewWriter(name, out, lost(name), log)
		if cfg.Required {
			w.Require()
		}
		o.writers = append(o.writers, w)
		return w
	}
	switch {
	case cfg.Stdout():
		add("stdout", stdout)
	case cfg.File != "":
		o.file = NewFile(cfg.File)
		add("file", o.file)
	}
	if cfg.Webhook.URL != "" {
		authorities, err := config.Trusted(cfg.Webhook.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		ctx, o.endPost = context.WithCancel(context.WithoutCancel(ctx)) // canceled by Close
		webhook := web.NewWebhook(cfg.Webhook.URL, cfg.Webhook.Secret.Reveal(), authorities, config.ReceiverTimeout)
		add("webhook", &receiver{ctx, webhook}).Keep()
	}
	return o, nil
}

// Add implements [Sink].
func (o *Output) Add(owner report.Owner, line []byte) {
	for _, w := range o.writers {
		w.Add(owner, line)
	}
}

// HasDestinations reports whether there are any destinations.
func (o *Output) HasDestinations() bool { return len(o.writers) > 0 }

// HasRoom reports whether each destination still has room for many lines.
func (o *Output) HasRoom() bool {
	return !slices.ContainsFunc(o.writers, func(w *Writer) bool { return !w.HasRoom() })
}

// Refuses reports whether `audit.required` forbids actions of an owner, because a destination accepts no lines of this
// owner.
func (o *Output) Refuses(owner report.Owner) bool {
	return o.required && slices.ContainsFunc(o.writers, func(w *Writer) bool { return !w.Working(owner) })
}

// Failing returns the destinations that accept no lines: file, stdout or webhook.
func (o *Output) Failing() (destinations []string) {
	for _, w := range o.writers {
		if !w.Working(report.Owner{}) {
			destinations = append(destinations, w.name)
		}
	}
	return destinations
}

// A Backlog describes the waiting lines of a destination.
type Backlog struct {
	Destination string // file, stdout or webhook
	Lines       int
	Delay       time.Duration // age of the oldest waiting line
}

// Backlogs returns the backlog of each destination.
func (o *Output) Backlogs() (all []Backlog) {
	for _, w := range o.writers {
		lines, delay := w.Backlog()
		all = append(all, Backlog{w.name, lines, delay})
	}
	return all
}

// Open opens the file and starts writing.
func (o *Output) Open() error {
	if o.file != nil {
		if err := o.file.Open(); err != nil {
			return errors.Join(
				errors.New("audit.file: cannot append to the audit log; correct the path or its permissions"), err)
		}
	}
	for _, w := range o.writers {
		w.Start()
	}
	return nil
}

// Close writes the waiting lines, even if ctx has ended. After closeTimeout it gives up and logs an error.
func (o *Output) Close(ctx context.Context) {
	defer o.endPost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, w := range o.writers {
		if err := w.Close(ctx); err != nil {
			o.log.Error("audit log: writing the last lines timed out", "err", err)
		}
	}
}
