package statecmd

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/stage/imagetest"
)

// Scan returns the command "scan".
func Scan(a *cli.App) *cobra.Command {
	var (
		expr                      string
		look                      imageTest
		conflicts                 bool
		first, last, changes, all bool
		count                     bool
	)
	var defines cli.Definitions
	cmd := &cobra.Command{
		Use:   "scan [SESSION] [RANGE] (--where EXPR | --image PNG | --conflicts)",
		Short: "Find entries by an expression or a picture",
		Long: `Scan evaluates an expression at every entry of a session, in one pass, and lists
the entries where it is true: all of them, the --first, or the --last. --changes
lists the entries where its value, of any type, changes. --count tells
their number instead.

` + cli.ExpressionHelp + `

` + imageTestHelp + ` Scan
lists the entries where the picture differs, or with --same where it is equal. It
draws every entry; bisect draws only a few.

--conflicts lists the entries after which the stage reports a new conflict: a
performance takes an entity that another performance is animating.

` + cli.DefinitionsHelp + `

The exit code is 0 if an entry was found, 1 if not, and 7 if a picture could not
be drawn or the expression exceeded its budget at an entry.`,
		Example: `  sajou-replay scan --where 'entry.type == "tool_result" && !entry.payload.success' --first
  sajou-replay scan --where 'entry.type == "tool_call"' --count
  sajou-replay scan --where 'state.performances.size() > 3'
  sajou-replay scan --where 'state.performances.size()' --changes
  sajou-replay scan night-shift 30..40 --where 'state.stage.entities.smith.strength > 0.5' -o jsonl
  sajou-replay scan --where 'state.workspace["main.go"].text.contains("panic(")' --first
  sajou-replay scan --image good.png --max-diff 1% --mask mask.png --first
  sajou-replay scan --conflicts`,
		Args: cli.Between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch n := cli.Count(expr != "", look.image != "", conflicts); {
			case n == 0:
				return cli.Misuse("scan needs --where EXPR, --image PNG or --conflicts; for example: --where 'entry.type == \"error\"'")
			case n > 1:
				return cli.Misuse("--where, --image and --conflicts exclude each other")
			}
			if err := look.check(cmd); err != nil {
				return err
			}
			if conflicts {
				expr = newConflict
			}
			if n := cli.Count(first, last, changes, all); n > 1 {
				return cli.Misuse("--first, --last, --changes and --all exclude each other")
			}
			if count && (first || last) {
				return cli.Misuse("--count counts all entries that are found; omit --first and --last")
			}
			session, over, err := a.SplitRange(cmd, args)
			if err != nil {
				return err
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
			find, err := NewFinder(expr, mode)
			if look.image != "" {
				find, err = look.finder(cmd.Context(), mode)
			}
			if err != nil {
				return err
			}
			t, err := a.OpenSession(session)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.SeeThrough(cmd.Context(), t, defines); err != nil {
				return err
			}
			if err := t.FoldFor(find.expression); err != nil {
				return err
			}
			from, to, err := t.ResolveRange(cmd.Context(), over)
			if err != nil {
				return err
			}
			find.count = count
			return runScan(cmd.Context(), a, t, from, to, find)
		},
	}
	cmd.Flags().StringVar(&expr, "where", "", "find entries where `EXPR` is true")
	look.flags(cmd, "find entries where the picture equals the PNG")
	cmd.Flags().BoolVar(&conflicts, "conflicts", false, "find entries with a new conflict on the stage")
	cmd.Flags().BoolVar(&first, "first", false, "list the first entry only")
	cmd.Flags().BoolVar(&last, "last", false, "list the last entry only")
	cmd.Flags().BoolVar(&changes, "changes", false, "list the entries where the value changes")
	cmd.Flags().BoolVar(&all, "all", false, "list every entry; the default")
	cmd.Flags().BoolVar(&count, "count", false, "tell the number of entries instead of listing them")
	defines.Flag(cmd)
	cmd.ValidArgsFunction = a.CompleteSession
	return cmd
}

// Finder is a scan: its test of an entry, and the way it writes a hit.
type Finder struct {
	Predicate replay.EntryPredicate
	Mode      replay.Mode
	write     func(o *cli.Output, e *eventlog.Entry) error
	expensive bool // show progress at each entry

	expression *where.Expression // nil for a picture
	count      bool              // write only how many hits there are
}

// newConflict is true after an entry that caused a conflict on the stage.
const newConflict = `state.stage.diagnostics.conflicts > prev.stage.diagnostics.conflicts`

// NewFinder compiles an expression into a search of the given mode.
func NewFinder(expr string, mode replay.Mode) (*Finder, error) {
	if mode == replay.Changes {
		return changeFinder(expr)
	}
	p, err := cli.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &Finder{
		Mode:       mode,
		expression: &p.Expression,
		write:      (*cli.Output).EntryItem,
		Predicate: replay.EntryPredicate{Needs: cli.Needs(&p.Expression), Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
			return p.Match(ctx, cli.InputOf(s))
		}},
	}, nil
}

// changeFinder finds the entries where a value changes. Its first value counts as a
// change; a missing value is null.
func changeFinder(expr string) (*Finder, error) {
	x, err := cli.CompileValue(expr)
	if err != nil {
		return nil, err
	}
	var last []byte
	return &Finder{
		Mode:       replay.All, // the predicate is true at a change
		expression: x,
		Predicate: replay.EntryPredicate{Needs: cli.Needs(x), Test: func(ctx context.Context, s *replay.ScanStep) (bool, error) {
			v, _, err := x.Value(ctx, cli.InputOf(s))
			if err != nil {
				return false, err
			}
			value, err := cli.Marshal(v)
			if err != nil {
				return false, err
			}
			if bytes.Equal(value, last) {
				return false, nil
			}
			last = value
			return true, nil
		}},
		write: func(o *cli.Output, e *eventlog.Entry) error {
			text := fmt.Sprintf("%6d  %s  %s", e.Seq, cli.ClockText(e.At), termtext.Printable(string(last)))
			line := fmt.Appendf(nil, `{"seq":%d,"at":`, e.Seq)
			at, err := cli.Marshal(projection.Millis(e.At))
			if err != nil {
				return err
			}
			line = append(line, at...)
			line = append(line, `,"value":`...)
			line = append(line, last...)
			return o.Item(text, append(line, '}'))
		},
	}, nil
}

// finder returns a scan by picture. A hit is written with its share of differing
// pixels and its greatest color distance.
func (l *imageTest) finder(ctx context.Context, mode replay.Mode) (*Finder, error) {
	c, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	var now, hit imagetest.Measurement // of the last tested entry, and of the last hit
	return &Finder{
		Mode:      mode,
		expensive: true,
		Predicate: replay.EntryPredicate{Needs: replay.NeedsState, Test: func(_ context.Context, s *replay.ScanStep) (bool, error) {
			m, err := c.measure(s.Fold)
			if err != nil {
				return false, err
			}
			now = m
			if c.Wrong(m) {
				hit = m
				return true, nil
			}
			return false, nil
		}},
		write: func(o *cli.Output, e *eventlog.Entry) error {
			m := now
			if mode == replay.Last {
				m = hit
			}
			share, err := cli.Marshal(m.Share)
			if err != nil {
				return err
			}
			line := session.AppendEntryJSON(nil, e)
			line = append(line[:len(line)-1], `,"differs":`...)
			line = append(line, share...)
			line = fmt.Appendf(line, `,"color":%d}`, m.Color)
			return o.Item(cli.EntryText(e)+"  "+c.Text(m), line)
		},
	}, nil
}

func runScan(ctx context.Context, a *cli.App, t *cli.OpenedSession, from, to eventlog.Seq, find *Finder) error {
	o := a.Output()
	m := cli.NewProgress(a.Stderr)
	test := find.Predicate.Test
	find.Predicate.Test = func(ctx context.Context, s *replay.ScanStep) (bool, error) {
		if find.expensive || s.Entry.Seq%256 == 0 {
			m.Show(fmt.Sprintf("%d of %d entries", s.Entry.Seq, to))
		}
		return test(ctx, s)
	}
	defer m.Clear()
	hits := 0
	for hit, err := range t.Travel.Scan(ctx, from, to, find.Predicate, find.Mode) {
		if err != nil {
			return cli.ScanError(err)
		}
		if hits++; find.count {
			continue
		}
		m.Clear()
		if err := find.write(o, &hit.Entry); err != nil {
			return err
		}
	}
	if find.count {
		m.Clear()
		err := o.One(strconv.Itoa(hits), struct {
			Count int `json:"count"`
		}{hits})
		if err != nil {
			return err
		}
	} else if err := o.End(); err != nil {
		return err
	}
	if hits == 0 {
		return cli.AnswerNo
	}
	return nil
}
