package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/signal"
)

func momentOf(seq eventlog.Seq) replay.Moment { return replay.Moment{Seq: seq} }

func (a *app) catCommand() *cobra.Command {
	var filter entryFilter
	cmd := &cobra.Command{
		Use:   "cat [SESSION] [RANGE]",
		Short: "List entries",
		Long: `Cat lists the entries of a session or of a range of it: number, session time,
kind, type, and the beginning of the payload; with -o jsonl the whole of it.

--kind, --type and --corr choose entries that have one of the given values;
they can be repeated. --where takes an expression as scan does. All that is
given must hold.`,
		Example: `  sajou-replay cat
  sajou-replay cat release-42 100..120
  sajou-replay cat --type error --type completion -o jsonl
  sajou-replay cat --where 'entry.payload.toolName == "web_search"'`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) > 1 {
				return misuse("%q is no range; usage: %s", rest[1], cmd.UseLine())
			}
			keep, err := filter.compile()
			if err != nil {
				return err
			}
			t, err := a.target(session)
			if err != nil {
				return err
			}
			defer t.Close()
			from, to, err := t.resolveRange(cmd.Context(), strings.Join(rest, ""))
			if err != nil {
				return err
			}
			o := a.output()
			for hit, err := range t.travel.Scan(cmd.Context(), from, to, keep, replay.All) {
				if err != nil {
					return err
				}
				if err := o.entryItem(&hit.Entry); err != nil {
					return err
				}
			}
			return o.end()
		},
	}
	filter.flags(cmd)
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

// entryFilter chooses entries by the flags of cat and tail.
type entryFilter struct {
	kinds, types, corrs []string
	expr                string
}

func (f *entryFilter) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "signal, effect, beat, define or session")
	cmd.Flags().StringSliceVar(&f.types, "type", nil, "type of a signal")
	cmd.Flags().StringSliceVar(&f.corrs, "corr", nil, "correlation id of a signal")
	cmd.Flags().StringVar(&f.expr, "where", "", "expression that must be true")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"signal", "effect", "beat", "define", "session"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(signal.WellKnownTypes(), cobra.ShellCompDirectiveNoFileComp))
}

func (f *entryFilter) compile() (replay.Predicate, error) {
	kinds := map[eventlog.Kind]bool{}
	for _, name := range f.kinds {
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return replay.Predicate{}, misuse("--kind: %w", err)
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
		return replay.Predicate{Test: func(_ context.Context, s *replay.Step) (bool, error) { return plain(s.Entry), nil }}, nil
	}
	p, err := where.Compile(f.expr, sajou.Projections())
	if err != nil {
		return replay.Predicate{}, err
	}
	return replay.Predicate{Needs: needs(&p.Expression), Test: func(ctx context.Context, s *replay.Step) (bool, error) {
		if !plain(s.Entry) {
			return false, nil
		}
		return p.Match(ctx, inputOf(s))
	}}, nil
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// needs translates what an expression reads.
func needs(x *where.Expression) replay.Needs {
	n := replay.NeedsEntry
	if x.NeedsState() {
		n |= replay.NeedsState
	}
	if x.NeedsPrev() {
		n |= replay.NeedsPrev
	}
	return n
}

func inputOf(s *replay.Step) where.Input {
	return where.Input{Entry: s.Entry, State: s.Fold, Prev: s.Prev()}
}
