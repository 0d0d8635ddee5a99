package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	sajou "github.com/sajou-dev/sajou-go"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
)

// expressionHelp is part of the help of all commands that take one.
const expressionHelp = `Expressions are CEL (cel.dev) over
  seq, at       the entry's number and session time in ms (a double: at > 1500.0)
  entry         seq, at, kind, hash; of a signal id, type, timestamp, source,
                correlationId, metadata, payload, problem, raw; of the others
                define, effect, beat or session
  state, prev   the states after and before the entry: seq, at, session,
                performances, stage (entities, beams, sounds, diagnostics),
                director (turn, beats, flags, choices_made, directive)
What an entry or a state lacks makes the condition false; has(entry.payload.x)
asks. The names are checked before the first entry is read.`

func (a *app) scanCommand() *cobra.Command {
	var (
		expr                      string
		look                      looks
		conflicts                 bool
		first, last, changes, all bool
	)
	cmd := &cobra.Command{
		Use:   "scan [SESSION] [RANGE] (--where EXPR | --image PNG | --conflicts)",
		Short: "Find the entries where an expression is true, or the picture is another",
		Long: `Scan asks an expression about every entry of a session, in one pass, and lists
those where it is true: all of them, the --first, or the --last. --changes lists
the entries where its value, of any type, becomes another.

` + expressionHelp + `

` + looksHelp + ` An entry is
listed where the stage is another picture than the PNG, or with --same where it
is this picture. Every entry is drawn; where that takes long, bisect draws few.

--conflicts lists the entries after which the stage tells of a new conflict: one
performance takes from another what that is animating.

The exit code is 0 when something was found, 1 when nothing was, and 7 when a
picture cannot be drawn.`,
		Example: `  sajou-replay scan --where 'entry.type == "error"' --first
  sajou-replay scan --where 'state.performances.size() > 3'
  sajou-replay scan --where 'state.performances.size()' --changes
  sajou-replay scan --where 'state.director.beats.salary.status == "detected"' --first
  sajou-replay scan release-42 100..200 --where 'has(entry.problem)' -o jsonl
  sajou-replay scan --where 'state.stage.entities.scout.opacity < 0.5' --first
  sajou-replay scan --image good.png --max-diff 1% --mask clock.png --first
  sajou-replay scan --conflicts`,
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch n := count(expr != "", look.image != "", conflicts); {
			case n == 0:
				return misuse("what is to be found? --where EXPR, --image PNG or --conflicts; for example: --where 'entry.type == \"error\"'")
			case n > 1:
				return misuse("--where, --image and --conflicts exclude each other")
			}
			if err := look.check(cmd); err != nil {
				return err
			}
			if conflicts {
				expr = newConflict
			}
			if n := count(first, last, changes, all); n > 1 {
				return misuse("--first, --last, --changes and --all exclude each other")
			}
			session, rest, err := a.splitArgs(args)
			if err != nil {
				return err
			}
			if len(rest) > 1 {
				return misuse("%q is no range; usage: %s", rest[1], cmd.UseLine())
			}
			mode := replay.All
			switch {
			case first:
				mode = replay.First
			case last:
				mode = replay.Last
			case changes:
				mode = replay.Changes
			}
			find, err := newFinder(expr, mode)
			if look.image != "" {
				find, err = look.finder(mode)
			}
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
			return a.scan(cmd.Context(), t, from, to, find)
		},
	}
	cmd.Flags().StringVar(&expr, "where", "", "the expression")
	look.flags(cmd, "list where the picture is the same")
	cmd.Flags().BoolVar(&conflicts, "conflicts", false, "where the stage tells of a new conflict")
	cmd.Flags().BoolVar(&first, "first", false, "only the first")
	cmd.Flags().BoolVar(&last, "last", false, "only the last")
	cmd.Flags().BoolVar(&changes, "changes", false, "where the value changes")
	cmd.Flags().BoolVar(&all, "all", false, "all of them; this is the default")
	cmd.ValidArgsFunction = a.completeSession
	return cmd
}

func count(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// finder is a scan: what it asks about an entry, and how a hit is written.
type finder struct {
	predicate replay.Predicate
	mode      replay.Mode
	write     func(o *output, e *eventlog.Entry) error
	dear      bool // each answer takes long enough to tell of it
}

// newConflict is true after entries that brought the stage a conflict.
const newConflict = `state.stage.diagnostics.conflicts > prev.stage.diagnostics.conflicts`

func newFinder(expr string, mode replay.Mode) (*finder, error) {
	if mode == replay.Changes {
		return changeFinder(expr)
	}
	p, err := where.Compile(expr, sajou.Projections())
	if err != nil {
		return nil, err
	}
	return &finder{
		mode:  mode,
		write: (*output).entryItem,
		predicate: replay.Predicate{Needs: needs(&p.Expression), Test: func(ctx context.Context, s *replay.Step) (bool, error) {
			return p.Match(ctx, inputOf(s))
		}},
	}, nil
}

// changeFinder finds the entries where a value becomes another. The value that
// is there at first is the first change; one that is missing is null.
func changeFinder(expr string) (*finder, error) {
	x, err := where.CompileValue(expr, sajou.Projections())
	if err != nil {
		return nil, err
	}
	var last []byte
	return &finder{
		mode: replay.All, // the predicate itself says where there is a change
		predicate: replay.Predicate{Needs: needs(x), Test: func(ctx context.Context, s *replay.Step) (bool, error) {
			v, _, err := x.Value(ctx, inputOf(s))
			if err != nil {
				return false, err
			}
			value, err := marshal(v)
			if err != nil {
				return false, err
			}
			if bytes.Equal(value, last) {
				return false, nil
			}
			last = value
			return true, nil
		}},
		write: func(o *output, e *eventlog.Entry) error {
			text := fmt.Sprintf("%6d  %s  %s", e.Seq, clockText(e.At), printable(string(last)))
			line := fmt.Appendf(nil, `{"seq":%d,"at":`, e.Seq)
			at, err := marshal(projection.Millis(e.At))
			if err != nil {
				return err
			}
			line = append(line, at...)
			line = append(line, `,"value":`...)
			line = append(line, last...)
			return o.item(text, append(line, '}'))
		},
	}, nil
}

func (a *app) scan(ctx context.Context, t *target, from, to eventlog.Seq, find *finder) error {
	o := a.output()
	m := newMeter(a.stderr)
	test := find.predicate.Test
	find.predicate.Test = func(ctx context.Context, s *replay.Step) (bool, error) {
		if find.dear || s.Entry.Seq%256 == 0 {
			m.show(fmt.Sprintf("%d of %d entries", s.Entry.Seq, to))
		}
		return test(ctx, s)
	}
	defer m.clear()
	for hit, err := range t.travel.Scan(ctx, from, to, find.predicate, find.mode) {
		if err != nil {
			return scanError(err)
		}
		m.clear()
		if err := find.write(o, &hit.Entry); err != nil {
			return err
		}
	}
	if err := o.end(); err != nil {
		return err
	}
	if o.items == 0 {
		return answerNo
	}
	return nil
}

// scanError leaves of an expression's failure only what it says itself.
func scanError(err error) error {
	if failure, ok := asEvalError(err); ok {
		return failure
	}
	return err
}
