package logcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
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
-o jsonl writes entries in full.

The flags --kind, --type and --corr select entries by value. Each can be
repeated, and an entry needs one of its values. --where selects entries by an
expression; "sajou-replay help scan" describes expressions. An entry is listed
if every given flag selects it.`,
		Example: `  sajou-replay cat
  sajou-replay cat night-shift 30..40
  sajou-replay cat --type tool_call --type tool_result -o jsonl
  sajou-replay cat --where 'entry.payload.toolName == "grind"'`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
			}
			keep, err := filter.compile()
			if err != nil {
				return err
			}
			t, err := a.OpenSession(session)
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
			o := a.Output()
			for hit, err := range t.Travel.Scan(cmd.Context(), from, to, keep, replay.All) {
				if err != nil {
					return err
				}
				if err := o.EntryItem(&hit.Entry); err != nil {
					return err
				}
			}
			return o.End()
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

func (f *entryFilter) compile() (replay.EntryPredicate, error) {
	kinds := map[eventlog.Kind]bool{}
	for _, name := range f.kinds {
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return replay.EntryPredicate{}, cli.Misuse("--kind: %w", err)
		}
		kinds[kind] = true
	}
	types, corrs := setOf(f.types), setOf(f.corrs)
	plain := func(e *eventlog.Entry) bool {
		if len(kinds) > 0 && !kinds[e.Kind] {
			return false
		}
		if len(types) == 0 && len(corrs) == 0 {
			return true
		}
		if e.Kind != eventlog.KindSignal {
			return false
		}
		sig, err := signal.Decode(e.Data)
		if err != nil || len(types) > 0 && !types[sig.Type] {
			return false
		}
		return len(corrs) == 0 || sig.CorrelationID != nil && corrs[*sig.CorrelationID]
	}
	if f.expr == "" {
		return replay.EntryPredicate{Test: func(_ context.Context, s *replay.ScanStep) (bool, error) { return plain(s.Entry), nil }}, nil
	}
	p, err := cli.Compile(f.expr)
	if err != nil {
		return replay.EntryPredicate{}, err
	}
	f.expression = &p.Expression
	return replay.EntryPredicate{Needs: cli.Needs(&p.Expression), Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		if !plain(s.Entry) {
			return false, nil
		}
		return p.Match(ctx, cli.InputOf(s))
	}}, nil
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}
