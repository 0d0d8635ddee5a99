package logcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/wording"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// leap is the signal behind which the first late one of an import stands: it moved session
// time ahead of that.
type leap struct {
	id  string
	seq eventlog.Seq
	by  time.Duration // from the timestamp of the late signal to its own
}

// leapOf returns the leap among the entries from a Seq on. It is zero if the time had been
// reached before them.
func leapOf(ctx context.Context, log *eventlog.SessionReader, from eventlog.Seq) (leap, error) {
	late := session.NewLateness(log.Entries)
	var ahead eventlog.Entry // the last one that moved session time
	for e, err := range log.Entries(ctx, from) {
		if err != nil {
			return leap{}, err
		}
		is, err := late.Of(ctx, &e)
		if err != nil {
			return leap{}, err
		}
		if is {
			return leapBetween(&ahead, &e), nil
		}
		if e.Kind == eventlog.KindSignal && (ahead.Seq == 0 || e.At > ahead.At) {
			ahead = e
		}
	}
	return leap{}, ctx.Err()
}

func leapBetween(ahead, late *eventlog.Entry) leap {
	moved, err := signal.Decode(ahead.Data)
	behind, err2 := signal.Decode(late.Data)
	to, ok := moved.Timestamp.Nanos()
	from, ok2 := behind.Timestamp.Nanos()
	if ahead.Seq == 0 || err != nil || err2 != nil || !ok || !ok2 {
		return leap{}
	}
	return leap{moved.ID, ahead.Seq, time.Duration(to - from)}
}

// String names the signal in a message, or is empty.
func (l leap) String() string {
	if l.seq == 0 {
		return ""
	}
	return fmt.Sprintf(", the first behind signal %s (entry %d), which is %s ahead of it", wording.Quoted(l.id), l.seq, wording.Span(l.by))
}
