package logcmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/session/summary"
	"github.com/sajou-dev/sajou-go/signal"
)

// Info returns the command "info".
func Info(a *cli.App) *cobra.Command {
	var short bool
	cmd := &cobra.Command{
		Use:   "info [SESSION]",
		Short: "Summarize a session",
		Long: `Info summarizes a session: its entries by kind, its signals by type, when it
began and how long it lasts, of a fork its label, its head and genesis hashes, its
size in the tables of the store, its snapshots and index, the space that the
whole store takes on the disk, and the digest of each projection at its end.
Sessions with equal entries have equal digests on every machine.

Entries of a program that did not close the store are in the write-ahead log. They
count for the store, and not for the session, until the store is next closed.

Of a session of agents it tells the activity over time as one line of blocks,
the prompts, texts, calls of tools, failures, errors, tokens and costs, by agent
and by tool, and what its import noted: the origin, remarks, times that were
moved, records that could not be read, and what was redacted or removed. The
times of tools are those between a call and its result. The member "summary" of
-o json has all of it with exact numbers. This reads every signal, a microsecond
each; --short leaves it out.`,
		Example: `  sajou-replay info
  sajou-replay info --short
  sajou-replay info night-shift -o json`,
		Args: cli.Between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.OpenArgSession(args)
			if err != nil {
				return err
			}
			defer t.Close()
			return showInfo(a, cmd, t, short)
		},
	}
	cmd.Flags().BoolVar(&short, "short", false, "leave out the summary of what the agents did")
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

type infoView struct {
	Session   string            `json:"session"`
	Entries   uint64            `json:"entries"`
	Kinds     map[string]int    `json:"kinds"`
	Types     map[string]int    `json:"types"`
	Flagged   int               `json:"flagged"`
	Late      int               `json:"out_of_order"`
	Refused   uint64            `json:"definitions_over_budget,omitempty"`
	Skipped   uint64            `json:"performances_over_budget,omitempty"`
	At        float64           `json:"at"`
	Began     string            `json:"began,omitempty"`
	Head      cli.HeadView      `json:"head"`
	Genesis   string            `json:"genesis"`
	Bytes     uint64            `json:"bytes"`
	Store     usageView         `json:"store"`
	Snapshots int               `json:"snapshots"`
	Index     int64             `json:"index_bytes,omitempty"`
	Digests   map[string]string `json:"digests"`
	Summary   *summary.Summary  `json:"summary,omitempty"`
	Fork      *cli.ForkView     `json:"fork,omitempty"`
}

// usageView is an [eventlog.DiskUsage].
type usageView struct {
	Bytes         uint64 `json:"bytes"`
	Tables        uint64 `json:"tables"`
	WriteAheadLog uint64 `json:"write_ahead_log"`
	Snapshots     uint64 `json:"snapshots"`
	Other         uint64 `json:"other"`
}

func viewUsage(u eventlog.DiskUsage) usageView {
	return usageView{Bytes: u.Total(), Tables: u.Tables, WriteAheadLog: u.Logs, Snapshots: u.Snapshots, Other: u.Other}
}

func (u usageView) String() string {
	return fmt.Sprintf("%d bytes (tables %d, write-ahead log %d, snapshots %d, other %d)", u.Bytes, u.Tables, u.WriteAheadLog, u.Snapshots, u.Other)
}

func showInfo(a *cli.App, cmd *cobra.Command, t *cli.OpenedSession, short bool) error {
	ctx := cmd.Context()
	head := t.Log.Head()
	v := infoView{
		Session: t.Name, Entries: uint64(head.Seq), Head: cli.ViewHead(head), Genesis: t.Log.Genesis().String(),
		At: projection.Millis(t.Log.At()), Kinds: map[string]int{}, Types: map[string]int{}, Digests: map[string]string{},
	}
	fold, err := t.Travel.At(ctx, cli.MomentOf(head.Seq))
	if err != nil {
		return err
	}
	var times session.Time
	var label *session.Fork
	if state, ok := fold.State(session.ProjectionSession).(*session.State); ok {
		times, label = state.Time(), state.Fork()
		v.Fork = cli.ViewFork(label, head)
	}
	var origin time.Time
	counter := summary.NewCounter()
	err = t.Each(ctx, 1, head.Seq, func(e *eventlog.Entry) error {
		v.Kinds[e.Kind.String()]++
		if e.Kind != eventlog.KindSignal {
			return nil
		}
		sig, err := signal.Decode(e.Data)
		if err != nil {
			return nil //nolint:nilerr // a signal that does not decode has no type; the fold ignores it too
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
		return nil
	})
	if err != nil {
		return err
	}
	if !origin.IsZero() {
		v.Began = origin.Format("2006-01-02T15:04:05.000Z07:00")
	}
	if p, ok := fold.State(session.ProjectionPerformances).(cli.Scheduling); ok {
		v.Refused, v.Skipped = p.Scheduler().Refused()
	}
	if !short {
		v.Summary = counter.Summary()
	}
	var digests []string
	for _, d := range fold.Digests() {
		v.Digests[d.Name] = fmt.Sprintf("%016x", d.Sum)
		digests = append(digests, d.String())
	}
	if v.Bytes, err = t.Engine.Log().DiskSize(ctx, t.Name); err != nil {
		return err
	}
	usage, err := t.Engine.Log().DiskUsage()
	if err != nil {
		return err
	}
	v.Store = viewUsage(usage)
	if snaps := t.Engine.Snapshots(); snaps != nil {
		list, err := snaps.List(t.Name)
		if err != nil {
			return err
		}
		v.Snapshots = len(list)
	}
	if _, v.Index, err = t.Engine.IndexUsage(t.Name); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session    %s\n", termtext.Printable(t.Name))
	if label != nil {
		fmt.Fprintf(&b, "fork       %s\n", cli.ForkText(label, head))
	}
	if v.Began != "" {
		fmt.Fprintf(&b, "began      %s\n", v.Began)
	}
	fmt.Fprintf(&b, "lasts      %s\n", cli.ClockText(t.Log.At()))
	fmt.Fprintf(&b, "entries    %d (%s)\n", v.Entries, countsText(v.Kinds))
	if len(v.Types) > 0 {
		fmt.Fprintf(&b, "signals    %s\n", countsText(v.Types))
	}
	if v.Flagged > 0 {
		fmt.Fprintf(&b, "flagged    %d violate the schema; list them with: sajou-replay cat --where 'has(entry.problem)'\n", v.Flagged)
	}
	if v.Late > 0 {
		fmt.Fprintf(&b, "late       %s before the session time that earlier entries had reached\n", cli.Plural(v.Late, "timestamp is", "timestamps are"))
	}
	if v.Refused > 0 {
		fmt.Fprintf(&b, "refused    %s over the budget and not in force; list them with: sajou-replay define ls\n", cli.Plural(int(v.Refused), "definition is", "definitions are"))
	}
	if v.Skipped > 0 {
		fmt.Fprintf(&b, "skipped    %s not begun: at most %d can run at a time, children of parallel groups included\n",
			cli.Plural(int(v.Skipped), "performance was", "performances were"), choreography.MaxUnderWay)
	}
	if !short {
		writeSummary(&b, v.Summary)
	}
	fmt.Fprintf(&b, "head       %v\n", head)
	fmt.Fprintf(&b, "genesis    %s\n", v.Genesis)
	fmt.Fprintf(&b, "on disk    %d bytes in tables, %s", v.Bytes, cli.Plural(v.Snapshots, "snapshot", "snapshots"))
	if v.Index > 0 {
		fmt.Fprintf(&b, ", an index of %d bytes", v.Index)
	}
	b.WriteByte('\n')
	fmt.Fprintf(&b, "store      %v\n", v.Store)
	fmt.Fprintf(&b, "digests    %s\n", strings.Join(digests, ", "))
	return a.Output().One(b.String(), v)
}

// countsText lists counts in descending order.
func countsText(counts map[string]int) string {
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if d := counts[y] - counts[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	const most = 12
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(", %d more", len(names)-most)
		names = names[:most]
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", termtext.Printable(name), counts[name])
	}
	return strings.Join(names, ", ") + more
}
