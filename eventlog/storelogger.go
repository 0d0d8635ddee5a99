package eventlog

import (
	"context"
	"fmt"
	"log/slog"
)

// storeLogger hands Pebble's messages to the log's own logger.
//
// Pebble calls Fatalf when it cannot go on, and expects the process to end.
// It does not end here: the log is marked failed, which prevents every later write,
// and Pebble's caller returns the error it had. That is sound because the log never
// uses Pebble's broken state again. Failed writes, the common reason, do not arrive here: [storefile.FreezeFS]
// keeps them from Pebble.
type storeLogger struct {
	log *Log
}

func (s *storeLogger) Infof(format string, args ...any) {
	s.message(slog.LevelDebug, format, args)
}

func (s *storeLogger) Errorf(format string, args ...any) {
	s.message(slog.LevelWarn, format, args)
}

func (s *storeLogger) Fatalf(format string, args ...any) {
	s.log.fail(fmt.Errorf(format, args...))
	s.log.fatal.Store(true)
}

func (s *storeLogger) message(level slog.Level, format string, args []any) {
	ctx := context.Background()
	if s.log.cfg.Logger.Enabled(ctx, level) {
		s.log.cfg.Logger.Log(ctx, level, "store", slog.String("message", fmt.Sprintf(format, args...)))
	}
}
