package statecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sajou-dev/sajou-go/cmd/sajou-replay/internal/cli"
	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
)

// bisection is one search of the command, from its range to its answer.
type bisection struct {
	a        *cli.App
	t        *cli.OpenedSession
	from, to replay.Moment
	test     bisect.Test
	cfg      bisect.Config
}

func (b *bisection) run(ctx context.Context) error {
	meter := cli.NewProgress(b.a.Stderr)
	visited := 0
	b.cfg.Visited = func(m replay.Moment) {
		if visited++; visited%64 == 0 {
			meter.Show(fmt.Sprintf("%v of %v", m, b.to))
		}
	}
	b.cfg.Begin = func(s *bisect.Search) {
		meter.Clear()
		if b.test.Judge == nil || s.Err() != nil {
			return
		}
		n := cli.Plural(len(s.Stretches()), "candidate", "candidates")
		if b.cfg.Goal != bisect.Any {
			fmt.Fprintf(b.a.Stderr, "%s with %s, each of which is judged\n", n, cli.Plural(s.Inputs(), "input", "different inputs"))
			return
		}
		_, steps := s.Left()
		fmt.Fprintf(b.a.Stderr, "%s, about %s\n", n, cli.Plural(min(s.Inputs(), steps+2+b.cfg.Probes), "test", "tests"))
	}
	b.cfg.Judged = func(j bisect.Judged) {
		meter.Clear()
		fmt.Fprintln(b.a.Stderr, judgedText(j, j.Result.String()))
	}
	out, err := bisect.Find(ctx, b.t.Travel, b.from, b.to, b.test, b.cfg)
	meter.Clear()
	if err != nil {
		return b.explain(ctx, out, err)
	}
	view, text, err := b.answer(ctx, out)
	if err != nil {
		return err
	}
	if err := b.a.Output().One(text, view); err != nil {
		return err
	}
	return b.exit(out)
}

// judgedText is a line about a judgment, of which result is the word.
func judgedText(j bisect.Judged, result string) string {
	note := map[bisect.Purpose]string{bisect.ForProbe: "  probe", bisect.ForRecheck: "  again"}[j.Purpose]
	if j.Votes.Mixed() {
		note += fmt.Sprintf("  (%d good, %d bad)", j.Votes.Good, j.Votes.Bad)
	}
	return fmt.Sprintf("%6v  %s  %s%s", j.Moment, cli.ClockText(j.At), result, note)
}

// explain returns the error with which the command ends.
func (b *bisection) explain(ctx context.Context, out *bisect.Findings, err error) error {
	if e, ok := errors.AsType[*cli.ExitError](err); ok {
		return e
	}
	if e, ok := cli.AsEvalError(err); ok {
		return e
	}
	if ctx.Err() != nil {
		if out != nil {
			fmt.Fprintf(b.a.Stderr, "interrupted after %s: %d of %d candidates are judged\n", cli.Plural(out.Judgments, "judgment", "judgments"), out.Judged, out.Candidates)
			if out.Found {
				list := out.Search.Stretches()
				fmt.Fprintf(b.a.Stderr, "known so far: %v is good and %v is bad\n", list[out.Good].Last, list[out.Bad].From)
			}
		}
		return ctx.Err()
	}
	var gaps cli.Unread
	if next, other := gaps.Behind(ctx, b.t, b.from.Seq, b.to.Seq, replay.NeedsState, err); other == nil {
		return b.around(&gaps, next)
	}
	if end, ok := errors.AsType[*bisect.EndpointError](err); ok {
		if end.Got == bisect.Skip {
			return cli.Fail(cli.ExitUntestable, "%w", err)
		}
		if out.Conclusive() {
			// Every candidate was judged nevertheless, so the course of good and bad is known.
			if err := b.a.Output().One(strings.Join(b.certainty(out), "\n"), answer.ViewBisect(out)); err != nil {
				return err
			}
		}
		return cli.Fail(cli.ExitNo, "%w; name another moment with --%v, or judge every candidate with --find all", err, end.Want)
	}
	if errors.Is(err, bisect.ErrAlike) {
		return cli.Fail(cli.ExitNo, "the test sees the same at %v and %v, so one cannot be good and the other bad; name other ends, or judge every candidate with --find all", b.from, b.to)
	}
	return err
}

// around returns the error for a range that cannot be read as a whole, with the parts of it
// that can be searched. An answer over the gap would be none: the transition may lie in it.
func (b *bisection) around(gaps *cli.Unread, next eventlog.Seq) error {
	var remedies []string
	if last := gaps.List[0][0] - 1; last > b.from.Seq {
		remedies = append(remedies, fmt.Sprintf("in front of the gap with --bad %d", last))
	}
	if next > 0 && next > b.from.Seq && next < b.to.Seq {
		remedies = append(remedies, fmt.Sprintf("behind it with --good %d", next))
	}
	if len(remedies) == 0 {
		return gaps.Failure("searched")
	}
	return cli.Fail(cli.ExitLoss, "%w; search %s", gaps.Failure("searched"), strings.Join(remedies, ", or "))
}

// exit returns the exit code of an answer.
func (b *bisection) exit(out *bisect.Findings) error {
	if len(out.Conflicts) > 0 {
		return nondeterministic(out.Conflicts[0], out.Search.Stretches()[out.Conflicts[0].Index].From.String())
	}
	return exitOf(out.Conclusion, out.Conclusive())
}

// nondeterministic is the error for a test that contradicts itself at a candidate.
func nondeterministic(c bisect.Conflict, at string) error {
	return cli.Fail(cli.ExitInconclusive, "the test is nondeterministic: for the same input at %s it said %v, then %v; make it depend on its input alone, or use --repeat or --confidence", at, c.Was, c.Now)
}

// exitOf returns the exit code of a conclusion, of which whole says that every candidate that
// can be judged was judged.
func exitOf(c bisect.Conclusion, whole bool) error {
	switch {
	case whole && c.Exact(), c.Goal == bisect.Any && c.Exact() && len(c.Islands()) == 0:
		return nil
	case whole && !anyBad(c.Phases):
		return cli.AnswerNo
	case whole && !c.Found:
		return nil // bad from the beginning of the range
	}
	return &cli.ExitError{Code: cli.ExitInconclusive}
}

func anyBad(phases []bisect.Phase) bool {
	for _, p := range phases {
		if p.Result == bisect.Bad {
			return true
		}
	}
	return false
}

// answer returns what a search found, as JSON and as text.
func (b *bisection) answer(ctx context.Context, out *bisect.Findings) (view answer.BisectView, text string, err error) {
	list := out.Search.Stretches()
	view = answer.ViewBisect(out)
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if out.Found {
		good, bad := list[out.Good], list[out.Bad]
		kind, name := "entry", bad.From
		if bad.From.Offset > 0 {
			kind = "moment"
			if out.Onset != nil {
				name = out.Onset.Bad // what moves turned bad before the boundary
			}
		}
		switch tests := cli.Plural(out.Tests, "test", "tests"); {
		case !out.Exact():
			say("the first bad moment after %v is one of %v..%v, the others were skipped (%s)", good.Last, list[out.Good+1].From, bad.From, tests)
		case view.Conclusive && answer.BeginsGood(out.Conclusion):
			say("%v is the first bad %s%s", name, kind, counted(b.test, out))
		default:
			say("%v is a bad %s after a good one, %v: a transition%s", name, kind, good.Last, counted(b.test, out))
		}
		if out.Exact() && bad.From.Seq > 0 {
			e, err := b.t.Travel.Entry(ctx, bad.From.Seq)
			if err != nil {
				return view, "", err
			}
			lines = append(lines, cli.EntryText(&e))
		}
	}
	if on := out.Onset; on != nil {
		lines = append(lines, onsetText(on, list[out.Bad], bisect.Bad.String()))
	}
	lines = append(lines, b.certainty(out)...)
	return view, strings.Join(lines, "\n"), nil
}

// onsetText says where between its two sides a transition is. The bad side begins a stretch,
// and bad is the word for it.
func onsetText(on *bisect.Onset, side bisect.Stretch, bad string) string {
	switch {
	case on.Skipped:
		return fmt.Sprintf("the state became %s between %v and %v; moments between them were skipped", bad, on.Good, on.Bad)
	case on.ByEntry:
		return fmt.Sprintf("the entry itself makes the state %s, at %s", bad, cli.ClockText(on.At))
	case on.Bad.Seq < side.From.Seq:
		return fmt.Sprintf("the state is %s before the entry, from %v on (%s)", bad, on.Bad, cli.ClockText(on.At))
	default:
		return fmt.Sprintf("the state is %s from %v on (%s)", bad, on.Bad, cli.ClockText(on.At))
	}
}

// certainty says how much of the range an answer covers.
func (b *bisection) certainty(out *bisect.Findings) (lines []string) {
	list := out.Search.Stretches()
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case out.Conclusive():
		bad := 0
		for _, p := range answer.ViewPhases(list, out.Phases) {
			if p.Result != bisect.Bad.String() {
				continue
			}
			bad++
			if len(out.Phases) > 2 || out.Goal != bisect.Any || out.Search.Err() != nil {
				say("%s", p)
			}
		}
		if bad == 0 {
			say("nothing is bad in %v..%v", b.from, b.to)
		}
		if b.test.Judge == nil {
			say("exact: the expression was evaluated at every moment of %v..%v at which something changes", b.from, b.to)
		} else {
			say("conclusive: every candidate was judged, %d in all", out.Candidates)
		}
	case out.Goal != bisect.Any:
		for _, p := range answer.ViewPhases(list, out.Phases) {
			if p.Result == bisect.Bad.String() {
				say("%s", p)
			}
		}
		say("not conclusive: %d of %s were skipped", out.Skipped, cli.Plural(out.Candidates, "candidate", "candidates"))
	default:
		islands := answer.ViewIslands(list, out)
		for _, i := range islands {
			say("island: %s", i)
		}
		if len(islands) > 0 {
			say("one transition was assumed, which the islands refute; --find all judges all %s", cli.Plural(out.Inputs, "input", "different inputs"))
		} else {
			say("assumes: one transition; %d of %s were judged", out.Judged, cli.Plural(out.Candidates, "candidate", "candidates"))
		}
	}
	return lines
}

// counted tells how many tests were run.
func counted(test bisect.Test, out *bisect.Findings) string {
	if test.Judge == nil {
		return ""
	}
	return fmt.Sprintf(" (%s)", cli.Plural(out.Tests, "test", "tests"))
}
