package answer

import (
	"context"
	"iter"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/workspace"
)

// WriterView is the tool call that wrote a line.
type WriterView struct {
	Seq   uint64  `json:"seq"`
	At    float64 `json:"at"`
	Agent string  `json:"agent"`
	Tool  string  `json:"tool"`
}

// LineView is a line of a file, or a gap: lines that the recording does not show.
type LineView struct {
	Line      int         `json:"line,omitempty"`  // from 1; absent behind a gap of unknown length
	Lines     int         `json:"lines,omitempty"` // of a gap of known length
	Certainty string      `json:"certainty"`
	Text      *string     `json:"text"` // null for a gap
	Partial   bool        `json:"partial,omitempty"`
	Call      *WriterView `json:"call,omitempty"`
}

// BlamedLine is a line of a file with the call that wrote it.
type BlamedLine struct {
	workspace.SourceLine
	View LineView
	At   time.Duration // session time of the call
}

// writer is a call that wrote lines.
type writer struct {
	view *WriterView // nil: none
	at   time.Duration
}

// BlameLines yields the lines of a file that has the state of a moment, or with a line above
// 0 that line alone. The error is that of reading the entry of a call.
func BlameLines(ctx context.Context, r *replay.Replay, f *workspace.TrackedFile, line int) iter.Seq2[BlamedLine, error] {
	return func(yield func(BlamedLine, error) bool) {
		writers := map[eventlog.Seq]writer{0: {}}
		for l := range f.Lines() {
			if line > 0 && !atLine(&l, line) {
				continue
			}
			w, err := writerOf(ctx, r, writers, l.By)
			b := BlamedLine{l, LineView{Line: l.Number, Certainty: l.Certainty.String(), Partial: l.Partial, Call: w.view}, w.at}
			if l.Certainty == workspace.Unknown {
				b.View.Lines = max(0, l.Lines)
			} else {
				b.View.Text = &b.Text
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// atLine reports whether a line, or a gap, has a number.
func atLine(l *workspace.SourceLine, number int) bool {
	switch {
	case l.Number == 0 || l.Number > number:
		return false
	case l.Certainty != workspace.Unknown:
		return l.Number == number
	default:
		return l.Lines <= 0 || l.Number+l.Lines > number
	}
}

// writerOf reads the entry of a call, unless it is known.
func writerOf(ctx context.Context, r *replay.Replay, known map[eventlog.Seq]writer, seq eventlog.Seq) (writer, error) {
	if w, ok := known[seq]; ok {
		return w, nil
	}
	e, err := r.Entry(ctx, seq)
	if err != nil {
		return writer{}, err
	}
	w := writer{&WriterView{Seq: uint64(seq), At: projection.Millis(e.At)}, e.At}
	if call := workspace.ToolSignalOf(&e); call != nil {
		w.view.Agent, w.view.Tool = call.Agent, call.Tool
	}
	known[seq] = w
	return w, nil
}
