package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/signal"
)

func (a *app) infoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "info [SESSION]",
		Short: "Tell what a session holds",
		Long: `Info tells what a session holds: its entries by kind and its signals by type, how
long it lasts and when it began, its head and genesis hashes, its size on disk,
its snapshots, and the digest of each projection at its end. Two sessions that
were recorded alike have the same digests on every machine.`,
		Example: `  sajou-replay info
  sajou-replay info release-42 -o json`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.argTarget(args)
			if err != nil {
				return err
			}
			defer t.Close()
			return a.info(cmd, t)
		},
	}
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

type infoView struct {
	Session   string            `json:"session"`
	Entries   uint64            `json:"entries"`
	Kinds     map[string]int    `json:"kinds"`
	Types     map[string]int    `json:"types"`
	Flagged   int               `json:"flagged"`
	At        float64           `json:"at"`
	Began     string            `json:"began,omitempty"`
	Head      headView          `json:"head"`
	Genesis   string            `json:"genesis"`
	Bytes     uint64            `json:"bytes"`
	Snapshots int               `json:"snapshots"`
	Digests   map[string]string `json:"digests"`
}

func (a *app) info(cmd *cobra.Command, t *target) error {
	ctx := cmd.Context()
	head := t.log.Head()
	v := infoView{
		Session: t.name, Entries: uint64(head.Seq), Head: viewHead(head), Genesis: t.log.Genesis().String(),
		At: projection.Millis(t.log.At()), Kinds: map[string]int{}, Types: map[string]int{}, Digests: map[string]string{},
	}
	var origin time.Time
	err := t.each(ctx, 1, head.Seq, func(e *eventlog.Entry) error {
		v.Kinds[e.Kind.String()]++
		if e.Kind != eventlog.KindSignal {
			return nil
		}
		sig, err := signal.Decode(e.Data)
		if err != nil {
			return nil //nolint:nilerr // what cannot be read has no type; the fold ignores it too
		}
		v.Types[sig.Type]++
		if sig.Problem != "" {
			v.Flagged++
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
	fold, err := t.travel.At(ctx, momentOf(head.Seq))
	if err != nil {
		return err
	}
	var digests []string
	for _, d := range fold.Digests() {
		v.Digests[d.Name] = fmt.Sprintf("%016x", d.Sum)
		digests = append(digests, d.String())
	}
	if v.Bytes, err = t.engine.Log().DiskSize(ctx, t.name); err != nil {
		return err
	}
	if snaps := t.engine.Snapshots(); snaps != nil {
		list, err := snaps.List(t.name)
		if err != nil {
			return err
		}
		v.Snapshots = len(list)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "session    %s\n", printable(t.name))
	if v.Began != "" {
		fmt.Fprintf(&b, "began      %s\n", v.Began)
	}
	fmt.Fprintf(&b, "lasts      %s\n", clockText(t.log.At()))
	fmt.Fprintf(&b, "entries    %d (%s)\n", v.Entries, countsText(v.Kinds))
	if len(v.Types) > 0 {
		fmt.Fprintf(&b, "signals    %s\n", countsText(v.Types))
	}
	if v.Flagged > 0 {
		fmt.Fprintf(&b, "flagged    %d break the schema; list them with: sajou-replay cat --where 'has(entry.problem)'\n", v.Flagged)
	}
	fmt.Fprintf(&b, "head       %v\n", head)
	fmt.Fprintf(&b, "genesis    %s\n", v.Genesis)
	fmt.Fprintf(&b, "on disk    %d bytes, %s\n", v.Bytes, plural(v.Snapshots, "snapshot", "snapshots"))
	fmt.Fprintf(&b, "digests    %s\n", strings.Join(digests, ", "))
	return a.output().one(b.String(), v)
}

// countsText lists counts, great ones first.
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
		names[i] = fmt.Sprintf("%s %d", printable(name), counts[name])
	}
	return strings.Join(names, ", ") + more
}
