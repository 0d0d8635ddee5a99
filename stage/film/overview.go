package film

import (
	"context"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/signal"
	"github.com/sajou-dev/sajou-go/stage/overview"
)

// Overview reads the signals of an interval for a timeline or a sequence diagram. An entry
// that is no signal is not read.
func (r *Reel) Overview(ctx context.Context, over Interval) (*overview.Overview, error) {
	o := new(overview.Overview)
	for e, err := range r.log.Entries(ctx, max(over.First.Seq, 1)) {
		if err != nil {
			return nil, err
		}
		if e.Seq > over.Last.Seq {
			break
		}
		if e.Kind != eventlog.KindSignal {
			continue
		}
		sig, err := signal.Decode(e.Data)
		if err != nil {
			return nil, err
		}
		o.Add(e.At, &sig)
	}
	return o, nil
}
