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

// inspections returns the function that starts the inspection of a file in dir, which is the path that the user sees.
// It returns nil if the tenant has no inspector.
func (t *Tenant) inspections(dir string, log *slog.Logger) func(context.Context, string) driver.Inspection {
	if t.inspector == nil {
		return nil
	}
	return func(ctx context.Context, name string) driver.Inspection {
		name = path.Join(dir, name)
		return &inspection{
			File: t.inspector.Begin(ctx, name), ctx: ctx, name: name, log: log,
			accepts: t.Inspect.OnFailure == config.AcceptOnFailure, whole: t.Inspect.Quarantine != "",
		}
	}
}

// An inspection applies the rules of a tenant to the result of an inspector.
type inspection struct {
	*inspect.File
	ctx     context.Context
	name    string
	log     *slog.Logger
	accepts bool // accept files that could not be inspected (inspect.on_failure)
	whole   bool // the quarantine needs the whole content of a refused file

	judged bool // the result is known before the last byte
}

// Write passes data to the inspector. It returns an error only if the rest of the file does not matter anymore.
func (i *inspection) Write(p []byte) (int, error) {
	if i.judged {
		return len(p), nil
	}
	n, err := i.File.Write(p)
	switch {
	case err == nil:
	case i.ctx.Err() != nil:
		return n, context.Cause(i.ctx)
	case i.accepts && errors.Is(err, inspect.ErrNotInspected), i.whole && errors.Is(err, inspect.ErrRefused):
		i.judged = true
		return len(p), nil
	}
	return n, err
}

// Verdict accepts a file that could not be inspected if the tenant is configured to do so.
func (i *inspection) Verdict() error {
	err := i.File.Verdict()
	switch {
	case err == nil:
	case i.ctx.Err() != nil:
		return context.Cause(i.ctx)
	case i.accepts && errors.Is(err, inspect.ErrNotInspected):
		i.log.Warn("file accepted without a verdict (inspect.on_failure)", "path", i.name, "err", err)
		return nil
	}
	return err
}
