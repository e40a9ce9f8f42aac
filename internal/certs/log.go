package certs

import (
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap/zapcore"
)

// A core is a zap core that writes the log of certmagic to a slog.Logger. Info messages become debug messages,
// because the ACME logs important events itself.
type core struct {
	log    *slog.Logger
	fields []zapcore.Field
}

// Enabled implements [zapcore.Core]. Levels are filtered by the logger.
func (c *core) Enabled(zapcore.Level) bool { return true }

// With implements [zapcore.Core].
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{c.log, append(slices.Clip(c.fields), fields...)}
}

// Check implements [zapcore.Core].
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return checked.AddCore(entry, c)
}

// Write implements [zapcore.Core].
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, field := range append(slices.Clip(c.fields), fields...) {
		field.AddTo(values)
	}
	var args []any
	for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
		args = append(args, key, values.Fields[key])
	}
	message := "ACME: " + entry.Message
	switch {
	case entry.Level >= zapcore.ErrorLevel:
		c.log.Error(message, args...)
	case entry.Level == zapcore.WarnLevel:
		c.log.Warn(message, args...)
	default:
		c.log.Debug(message, args...)
	}
	return nil
}

// Sync implements [zapcore.Core].
func (c *core) Sync() error { return nil }
