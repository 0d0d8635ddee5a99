package logcmd

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/spelling"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Cat returns the command "cat".
func Cat(a *cli.App) *cobra.Command {
	var filter entryFilter
	cmd := &cobra.Command{
		Use:   "cat [SESSION] [RANGE]",
		Short: "List the entries of a session",
		Long: `Cat lists the entries of a session, or of a range of it. A line has the entry's
number, its session time, its kind, its type, and the beginning of its payload;
-o jsonl writes entries in full. A signal is late if its timestamp is before the
session time at which it takes effect; "late" stands before its payload, and the
JSON has "late":true.

The flags --kind, --type and --corr select entries by value. Each can be
repeated, and an entry needs one of its values. --where selects entries by an
expression; "sajou-replay help scan" describes expressions. An entry is listed
if every given flag selects it. If none is, and no signal has a --type, stderr
names the type.

In a damaged recording the entries in front of and behind what cannot be read are
listed; the others are named on stderr, and the exit code is 3.`,
		Example: `  sajou-replay cat
  sajou-replay cat night-shift 30..40
  sajou-replay cat --type tool_call --type tool_result -o jsonl
  sajou-replay cat --where 'entry.payload.toolName == "grind"'`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			keep, err := filter.compile()
			if err != nil {
				return err
			}
			t, err := a.OpenSession(name)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := t.FoldFor(filter.expression); err != nil {
				return err
			}
			from, to, err := t.ResolveRange(cmd.Context(), over)
			if err != nil {
				return err
			}
			o, late := a.Output(), session.NewLateness(t.Log.Entries)
			first, listed := from, false
			list := func(from eventlog.Seq) error {
				for hit, err := range t.Travel.Scan(cmd.Context(), from, to, keep, replay.All) {
					if err != nil {
						return err
					}
					listed = true
					if err := o.MarkedItem(cmd.Context(), late, &hit.Entry); err != nil {
						return err
					}
				}
				return nil
			}
			var gaps cli.Unread
			for from > 0 {
				err := list(from)
				if err == nil {
					break
				}
				if from, err = gaps.Behind(cmd.Context(), t, from, to, keep.Needs, err); err != nil {
					return err
				}
			}
			if err := o.End(); err != nil {
				return err
			}
			if !listed {
				filter.remarkTypes(cmd.Context(), a, t, first, to)
			}
			return gaps.Failure("listed")
		},
	}
	filter.flags(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// entryFilter selects entries by the flags of cat and tail.
type entryFilter struct {
	kinds, types, corrs []string
	expr                string

	expression *where.Expression // expr compiled; nil without one
}

func (f *entryFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "select entries of this `KIND`: signal, effect, beat, define or session")
	cmd.Flags().StringSliceVar(&f.types, "type", nil, "select signals of this `TYPE`")
	cmd.Flags().StringSliceVar(&f.corrs, "corr", nil, "select signals with this correlation `ID`")
	cmd.Flags().StringVar(&f.expr, "where", "", "select entries for which `EXPR` is true")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"signal", "effect", "beat", "define", "session"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(signal.WellKnownTypes(), cobra.ShellCompDirectiveNoFileComp))
}

// remarkTypes names, after nothing was listed, a type of --type that no signal of the range
// has, with the nearest type that one has.
func (f *entryFilter) remarkTypes(ctx context.Context, a *cli.App, t *cli.OpenedSession, from, to eventlog.Seq) {
	if len(f.types) == 0 || from == 0 {
		return
	}
	types := map[string]bool{}
	note := replay.EntryPredicate{Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
		if s.Entry.Kind == eventlog.KindSignal {
			if sig, err := signal.Decode(s.Entry.Data); err == nil {
				types[sig.Type] = true
			}
		}
		return false, nil
	}}
	for _, err := range t.Travel.Scan(ctx, from, to, note, replay.All) {
		if err != nil {
			return // the listing has reported it
		}
	}
	for _, name := range f.types {
		if types[name] {
			continue
		}
		hint := ""
		if meant, ok := spelling.Nearest(name, slices.Sorted(maps.Keys(types))); ok {
			hint = fmt.Sprintf("; did you mean %s?", termtext.Quote(meant))
		}
		fmt.Fprintf(a.Stderr, "sajou-replay: no signal of %d..%d has the type %s%s\n", from, to, termtext.Quote(name), hint)
		return
	}
}

func (f *entryFilter) compile() (replay.EntryPredicate, error) {
	filter := answer.EntryFilter{Types: f.types, Corrs: f.corrs, Where: f.expr}
	for _, name := range f.kinds {
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return replay.EntryPredicate{}, cli.Misuse("--kind: %w", err)
		}
		filter.Kinds = append(filter.Kinds, kind)
	}
	p, expression, err := filter.Compile()
	f.expression = expression
	return p, err
}
