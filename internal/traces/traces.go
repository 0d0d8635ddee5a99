// Package traces exports recorded sessions as traces of OpenTelemetry, for the command
// line and the server.
package traces

import (
	"context"
	"iter"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/ingest/otlpexport"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Lines yields the exports of the signals from one Seq to another, as JSON. A line is
// valid until the next one. After an error the sequence ends.
func Lines(ctx context.Context, log *eventlog.SessionReader, from, to eventlog.Seq) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		fork, err := session.ReadFork(ctx, log)
		if err != nil {
			yield(nil, err)
			return
		}
		label := ""
		if fork != nil {
			label = fork.String()
		}
		otlpexport.Lines(log.Name(), label, parsed(session.ExportLines(ctx, log, session.ExportSignals, from, to)))(yield)
	}
}

// parsed yields the signals of lines.
func parsed(lines iter.Seq2[[]byte, error]) iter.Seq2[*signal.Signal, error] {
	return func(yield func(*signal.Signal, error) bool) {
		for line, err := range lines {
			var sig *signal.Signal
			if err == nil {
				sig, err = signal.ParseLenient(line)
			}
			if !yield(sig, err) || err != nil {
				return
			}
		}
	}
}
