package answer

import (
	"context"
	"fmt"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/session/summary"
	"github.com/sajou-dev/sajou-go/signal"
)

// InfoView is the summary of a session.
type InfoView struct {
	Session   string            `json:"session"`
	Entries   uint64            `json:"entries"`
	Kinds     map[string]int    `json:"kinds"` // entries by kind
	Types     map[string]int    `json:"types"` // signals by type
	Flagged   int               `json:"flagged"`
	Late      int               `json:"out_of_order"`
	Refused   uint64            `json:"definitions_over_budget,omitempty"`
	Skipped   uint64            `json:"performances_over_budget,omitempty"`
	At        float64           `json:"at"`
	Began     string            `json:"began,omitempty"`
	Head      session.HeadView  `json:"head"`
	Genesis   string            `json:"genesis"`
	Bytes     uint64            `json:"bytes"`
	Store     UsageView         `json:"store"`
	Snapshots int               `json:"snapshots"`
	Index     int64             `json:"index_bytes,omitempty"`
	Digests   map[string]string `json:"digests"`
	Summary   *summary.Summary  `json:"summary,omitempty"`
	Fork      *ForkView         `json:"fork,omitempty"`
}

// UsageView is the space that a store takes on the disk.
type UsageView struct {
	Bytes         uint64 `json:"bytes"`
	Tables        uint64 `json:"tables"`
	WriteAheadLog uint64 `json:"write_ahead_log"`
	Snapshots     uint64 `json:"snapshots"`
	Other         uint64 `json:"other"`
}

// ViewUsage returns the view of the space of a store.
func ViewUsage(u eventlog.DiskUsage) UsageView {
	return UsageView{Bytes: u.Total(), Tables: u.Tables, WriteAheadLog: u.Logs, Snapshots: u.Snapshots, Other: u.Other}
}

func (u UsageView) String() string {
	return fmt.Sprintf("%d bytes (tables %d, write-ahead log %d, snapshots %d, other %d)", u.Bytes, u.Tables, u.WriteAheadLog, u.Snapshots, u.Other)
}

// Info reads a session up to its head and returns its summary, the state at the head, and
// its label if it is a fork. Short leaves out what the agents did. The caller adds what
// only the store knows: Bytes, Store, Snapshots and Index.
func Info(ctx context.Context, log *eventlog.SessionReader, travel *replay.Replay, short bool) (v InfoView, fold *projection.Fold, label *session.Fork, err error) {
	head := log.Head()
	v = InfoView{
		Session: log.Name(), Entries: uint64(head.Seq), Head: session.ViewHead(head), Genesis: log.Genesis().String(),
		At: projection.Millis(log.At()), Kinds: map[string]int{}, Types: map[string]int{}, Digests: map[string]string{},
	}
	if fold, err = travel.At(ctx, replay.Moment{Seq: head.Seq}); err != nil {
		return v, nil, nil, err
	}
	var times session.Time
	if state := session.StateOf(fold); state != nil {
		times, label = state.Time(), state.Fork()
		v.Fork = ViewFork(label, head)
	}
	if err := v.count(ctx, travel, head.Seq, times, short); err != nil {
		return v, nil, nil, err
	}
	if p, ok := fold.State(session.ProjectionPerformances).(replay.Choreographer); ok {
		v.Refused, v.Skipped = p.Scheduler().Refused()
	}
	for _, d := range fold.Digests() {
		v.Digests[d.Name] = fmt.Sprintf("%016x", d.Sum)
	}
	return v, fold, label, nil
}

// count counts the entries up to one.
func (v *InfoView) count(ctx context.Context, travel *replay.Replay, to eventlog.Seq, times session.Time, short bool) error {
	var origin time.Time
	counter := summary.NewCounter()
	for e, err := range travel.Entries(ctx, 1) {
		if err != nil {
			return err
		}
		if e.Seq > to {
			break
		}
		v.Kinds[e.Kind.String()]++
		if e.Kind != eventlog.KindSignal {
			continue
		}
		sig, err := signal.Decode(e.Data)
		if err != nil {
			continue // a signal that does not decode has no type; the fold ignores it too
		}
		v.Types[sig.Type]++
		if !short {
			counter.Add(e.At, &sig)
		}
		if sig.Problem != "" {
			v.Flagged++
		}
		if times.Late(&sig, e.At) {
			v.Late++
		}
		if ns, ok := sig.Timestamp.Nanos(); ok && sig.Timestamp.IsSet() && origin.IsZero() {
			origin = time.Unix(0, ns-int64(e.At)).UTC()
		}
	}
	if !origin.IsZero() {
		v.Began = origin.Format("2006-01-02T15:04:05.000Z07:00")
	}
	if !short {
		v.Summary = counter.Summary()
	}
	return ctx.Err()
}
