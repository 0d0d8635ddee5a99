package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// EntryText writes an entry as one line of a table.
func EntryText(e *eventlog.Entry) string { return entryText(e, "") }

// entryText writes an entry with a mark before its detail.
func entryText(e *eventlog.Entry, mark string) string {
	const width = 90
	word, detail := "", ""
	switch e.Kind {
	case eventlog.KindSignal:
		sig, err := signal.Decode(e.Data)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word = sig.Type
		if sig.Problem != "" {
			detail = "! " + sig.Problem + " "
		}
		body := sig.Payload
		if sig.Raw != nil {
			body = sig.Raw
		}
		detail += string(body.AppendJSON(nil))
	case eventlog.KindDefine:
		word = "choreography"
		d, err := session.DeclarationOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word = d.Word()
		detail = string(d.Value().AppendJSON(nil))
	case eventlog.KindEffect:
		r, err := session.WorldRecordOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word, detail = worldText(r)
	case eventlog.KindBeat:
		r, err := session.BeatOf(e)
		if err != nil {
			detail = "cannot be read: " + err.Error()
			break
		}
		word, detail = BeatText(r)
	default:
		view := session.EntryView(e)
		member := view[e.Kind.String()]
		if member == nil {
			member = view["data"]
		}
		if data, err := Marshal(member); err == nil {
			detail = string(data)
		}
	}
	return fmt.Sprintf("%6d  %s  %-7s  %-18s  %s", e.Seq, ClockText(e.At), e.Kind, termtext.Clip(termtext.Printable(word), 40), termtext.Clip(mark+termtext.Printable(detail), width))
}

// MarkedItem writes an entry of a session as an item, and marks it as [MarkedEntry] does.
func (o *Output) MarkedItem(ctx context.Context, l *session.Lateness, e *eventlog.Entry) error {
	if o.Format == "text" {
		text, err := markedText(ctx, l, e)
		if err != nil {
			return err
		}
		return o.Item(text, nil)
	}
	line, err := markedJSON(ctx, l, e)
	if err != nil {
		return err
	}
	return o.Item("", line)
}

// MarkedEntry returns the text and the JSON of an entry, both marked if it is a late signal.
// The mark depends on the beginning of the session; if that is damaged, entries have no mark.
func MarkedEntry(ctx context.Context, l *session.Lateness, e *eventlog.Entry) (text string, line []byte, err error) {
	if line, err = markedJSON(ctx, l, e); err != nil {
		return "", nil, err
	}
	text, err = markedText(ctx, l, e)
	return text, line, err
}

func markedText(ctx context.Context, l *session.Lateness, e *eventlog.Entry) (string, error) {
	late, err := l.Of(ctx, e)
	if err != nil && !errors.Is(err, eventlog.ErrCorrupt) {
		return "", err
	}
	if late && err == nil {
		return entryText(e, "late "), nil
	}
	return EntryText(e), nil
}

func markedJSON(ctx context.Context, l *session.Lateness, e *eventlog.Entry) ([]byte, error) {
	line, err := l.AppendEntryJSON(ctx, nil, e)
	if errors.Is(err, eventlog.ErrCorrupt) {
		return session.AppendEntryJSON(nil, e), nil
	}
	return line, err
}

// EntryItem writes an entry as an item.
func (o *Output) EntryItem(e *eventlog.Entry) error {
	if o.Format == "text" {
		return o.Item(EntryText(e), nil)
	}
	return o.Item("", session.AppendEntryJSON(nil, e))
}

// DateText is a time of the wall clock.
func DateText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z07:00") }
