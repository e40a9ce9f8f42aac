package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/account"
	"github.com/babelftp/babelftp/internal/audit"
	"github.com/babelftp/babelftp/internal/config/destination"
	"github.com/babelftp/babelftp/internal/control"
	"github.com/babelftp/babelftp/internal/logline"
	"github.com/babelftp/babelftp/internal/vfs"
	"github.com/babelftp/babelftp/internal/webhook"
	"github.com/babelftp/babelftp/internal/wire"
)

// auditTimeout bounds the wait for the last lines of the audit log when the server stops.
const auditTimeout = 5 * time.Second

// An auditLog is the audit log with its destinations.
type auditLog struct {
	log     *audit.Log
	file    *logline.File     // nil without
	writers []*logline.Writer // none where the configuration asks for no audit log
	endPost context.CancelFunc
}

// newAuditLog opens nothing.
func newAuditLog(ctx context.Context, cfg destination.Audit, stdout io.Writer, lost *prometheus.CounterVec, log *slog.Logger) (*auditLog, error) {
	a := &auditLog{endPost: func() {}}
	var destinations []io.Writer
	add := func(name string, out io.Writer) {
		counter := lost.WithLabelValues(name)
		w := logline.NewWriter(name, out, func(lines int) { counter.Add(float64(lines)) }, log)
		a.writers, destinations = append(a.writers, w), append(destinations, w)
	}
	if cfg.File != "" {
		a.file = logline.NewFile(cfg.File)
		add("file", a.file)
	}
	if cfg.Stdout {
		add("stdout", stdout)
	}
	if cfg.Webhook.URL != "" {
		hook, err := newWebhook(cfg.Webhook)
		if err != nil {
			return nil, fmt.Errorf("audit.webhook.ca_file: %w", err)
		}
		ctx, a.endPost = context.WithCancel(context.WithoutCancel(ctx)) // close ends it
		add("webhook", webhook.NewLines(ctx, hook, log))
	}
	a.log = audit.New(io.MultiWriter(destinations...))
	return a, nil
}

// open opens the file and begins to write.
func (a *auditLog) open() error {
	if a.file != nil {
		if err := a.file.Open(); err != nil {
			return errors.Join(errors.New("audit.file: cannot append to the audit log: correct the path or its permissions"), err)
		}
	}
	for _, w := range a.writers {
		w.Start()
	}
	return nil
}

// close writes the lines that wait.
func (a *auditLog) close(ctx context.Context, log *slog.Logger) {
	defer a.endPost()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	for _, w := range a.writers {
		if err := w.Close(ctx); err != nil {
			log.Error("audit log: the last lines could not be written in time", "err", err)
		}
	}
}

// observer returns the observer of a session: the metrics, and the audit log where there is one.
func (a *auditLog) observer(m *metrics) func(*wire.Conn) control.Observer {
	if len(a.writers) == 0 {
		return func(*wire.Conn) control.Observer { return m }
	}
	return func(conn *wire.Conn) control.Observer { return auditedSession{m, a.log.Session(conn)} }
}

// An auditedSession tells the audit log what it tells the metrics.
type auditedSession struct {
	*metrics
	audit *audit.Session
}

// LoggedIn implements [control.Observer].
func (s auditedSession) LoggedIn(login *account.Login, err error) {
	s.metrics.LoggedIn(login, err)
	s.audit.LoggedIn(login, err)
}

// LoggedOut implements [control.Observer].
func (s auditedSession) LoggedOut() { s.audit.LoggedOut() }

// Refused implements [control.Observer].
func (s auditedSession) Refused(tenant, limit string) {
	s.metrics.Refused(tenant, limit)
	s.audit.Refused(tenant, limit)
}

// Storage implements [control.Observer].
func (s auditedSession) Storage(storage vfs.ObjectStorage) vfs.ObjectStorage {
	return s.audit.Storage(storage)
}

// Replied implements [control.Observer].
func (s auditedSession) Replied(command, argument string, code int) {
	s.metrics.Replied(command, argument, code)
	s.audit.Replied(command, argument, code)
}

// Transferred implements [control.Observer].
func (s auditedSession) Transferred(tenant string, upload bool, bytes int64, complete bool) {
	s.metrics.Transferred(tenant, upload, bytes, complete)
	s.audit.Transferred(bytes)
}
