package account

import (
	"context"
	"errors"
	"log/slog"
	"path"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/config"
)

// inspections begins the judgement of files below a directory, as a user sees it. It is nil for a tenant without an
// inspector.
func (t *Tenant) inspections(dir string, log *slog.Logger) func(context.Context, string) driver.Inspection {
	if t.inspector == nil {
		return nil
	}
	return func(ctx context.Context, name string) driver.Inspection {
		name = path.Join(dir, name)
		return &inspection{
			File: t.inspector.Begin(ctx, name), ctx: ctx, name: name, log: log,
			accepts: t.Inspect.OnFailure == config.AcceptUnjudged, whole: t.Inspect.Quarantine != "",
		}
	}
}

// An inspection is the judgement of a file by the rules of a tenant.
type inspection struct {
	*inspect.File
	ctx     context.Context
	name    string
	log     *slog.Logger
	accepts bool // a file that could not be judged
	whole   bool // the quarantine takes all of a refused file

	judged bool // before the last byte
}

// Write passes bytes on. It fails only where no further byte counts.
func (i *inspection) Write(p []byte) (int, error) {
	if i.judged {
		return len(p), nil
	}
	n, err := i.File.Write(p)
	switch {
	case err == nil:
	case i.ctx.Err() != nil:
		return n, context.Cause(i.ctx)
	case i.accepts && errors.Is(err, inspect.ErrUnjudged), i.whole && errors.Is(err, inspect.ErrRefused):
		i.judged = true
		return len(p), nil
	}
	return n, err
}

// Verdict accepts a file that could not be judged, if the tenant wants it.
func (i *inspection) Verdict() error {
	err := i.File.Verdict()
	switch {
	case err == nil:
	case i.ctx.Err() != nil:
		return context.Cause(i.ctx)
	case i.accepts && errors.Is(err, inspect.ErrUnjudged):
		i.log.Warn("file accepted without a verdict (inspect.on_failure)", "path", i.name, "err", err)
		return nil
	}
	return err
}
