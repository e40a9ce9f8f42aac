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

// closeTimeout bounds the wait for the last lines when the server stops.
const closeTimeout = 5 * time.Second

// An Output writes the lines of the audit log to where a configuration wants them: a file, standard output and a
// webhook. Make one with [NewOutput].
type Output struct {
	log     *slog.Logger
	file    *File     // nil without
	needed  bool      // by audit.required
	writers []*Writer // none where the configuration asks for no audit log
	endPost context.CancelFunc
}

// NewOutput opens nothing. lost returns for a destination (file, stdout or webhook) what counts the lines that it did
// not get.
func NewOutput(
	ctx context.Context, cfg config.Audit, stdout io.Writer,
	lost func(destination string) func(lines int), log *slog.Logger,
) (*Output, error) {
	o := &Output{log: log, needed: cfg.Required, endPost: func() {}}
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
		ctx, o.endPost = context.WithCancel(context.WithoutCancel(ctx)) // Close ends it
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

// Given reports whether there are destinations.
func (o *Output) Given() bool { return len(o.writers) > 0 }

// Roomy reports whether each destination has room for many lines still.
func (o *Output) Roomy() bool {
	return !slices.ContainsFunc(o.writers, func(w *Writer) bool { return !w.Roomy() })
}

// Refuses reports whether `audit.required` refuses an action of an owner, because a destination takes no lines of the
// owner.
func (o *Output) Refuses(owner report.Owner) bool {
	return o.needed && slices.ContainsFunc(o.writers, func(w *Writer) bool { return !w.Working(owner) })
}

// A Backlog describes the lines that wait for a destination.
type Backlog struct {
	Destination string // file, stdout or webhook
	Lines       int
	Delay       time.Duration // how long the oldest line has been waiting
}

// Backlogs returns the backlog of each destination.
func (o *Output) Backlogs() (all []Backlog) {
	for _, w := range o.writers {
		lines, delay := w.Backlog()
		all = append(all, Backlog{w.name, lines, delay})
	}
	return all
}

// Open opens the file and begins to write.
func (o *Output) Open() error {
	if o.file != nil {
		if err := o.file.Open(); err != nil {
			return errors.Join(
				errors.New("audit.file: cannot append to the audit log: correct the path or its permissions"), err)
		}
	}
	for _, w := range o.writers {
		w.Start()
	}
	return nil
}

// Close writes the lines that wait, also when ctx has ended. It gives up after some seconds, and logs that.
func (o *Output) Close(ctx context.Context) {
	defer o.endPost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, w := range o.writers {
		if err := w.Close(ctx); err != nil {
			o.log.Error("audit log: the last lines could not be written in time", "err", err)
		}
	}
}
