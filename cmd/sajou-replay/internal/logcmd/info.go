package logcmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/choreography"
	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
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

func showInfo(a *cli.App, cmd *cobra.Command, t *cli.OpenedSession, short bool) error {
	ctx := cmd.Context()
	v, fold, label, err := answer.Info(ctx, t.Log, t.Travel, short)
	if err != nil {
		return err
	}
	head := fold.Head()
	var digests []string
	for _, d := range fold.Digests() {
		digests = append(digests, d.String())
	}
	if v.Bytes, err = t.Engine.Log().DiskSize(ctx, t.Name); err != nil {
		return err
	}
	usage, err := t.Engine.Log().DiskUsage()
	if err != nil {
		return err
	}
	v.Store = answer.ViewUsage(usage)
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
