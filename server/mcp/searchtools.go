package mcp

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/bisect"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/session"
)

type scanArgs struct {
	Session string  `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Where   string  `json:"where" jsonschema:"the expression (CEL); true or false, or with mode changes of any type"`
	Range   string  `json:"range,omitempty" jsonschema:"the entries A..B, both included; default all"`
	Mode    string  `json:"mode,omitempty" jsonschema:"all (default), first, last, changes (where the value changes) or count"`
	Moments bool    `json:"moments,omitempty" jsonschema:"look between entries too, and return the intervals at which it is true"`
	EveryMS float64 `json:"every_ms,omitempty" jsonschema:"with moments, look also at the multiples of so many milliseconds, for values that move"`
	Cursor  string  `json:"cursor,omitempty" jsonschema:"the cursor of the answer before"`
}

type bisectArgs struct {
	Session string `json:"session,omitempty" jsonschema:"the name of the session; default the one that was begun last"`
	Where   string `json:"where" jsonschema:"the expression (CEL) that is true when the state is bad"`
	Good    string `json:"good,omitempty" jsonschema:"the address of a moment that is good; default 0, the beginning"`
	Bad     string `json:"bad,omitempty" jsonschema:"the address of a later moment that is bad; default end"`
	Find    string `json:"find,omitempty" jsonschema:"any (default: one transition), first, last or all"`
}

func searchTools() []*tool {
	return []*tool{
		newTool("scan", "Search with an expression",
			"Evaluate an expression at every entry and return the entries at which it is true. "+exprHelp+" With moments it is evaluated between entries too, where steps of choreographies begin and end, and the answer has intervals: from, until (not included), value.",
			scan),
		newTool("bisect", "Find where it went wrong",
			"Find the moment at which a session turns from good to bad. The expression is evaluated at every moment between the ends at which something changes, so the answer is exact: firstBad is the first bad moment, lastGood the one before, byEntry says whether the entry itself made it bad. "+exprHelp,
			bisectState),
	}
}

// modes are the modes of scan that return entries.
var modes = map[string]replay.Mode{"": replay.All, "all": replay.All, "first": replay.First, "last": replay.Last, "changes": replay.Changes, "count": replay.All}

func scan(ctx context.Context, c *call, args scanArgs) (*reply, error) {
	mode, ok := modes[args.Mode]
	if !ok {
		return nil, badArgument(errors.New("mode: must be all, first, last, changes or count"))
	}
	if args.EveryMS < 0 || args.EveryMS > 0 && args.EveryMS < 1 || args.EveryMS > 1e9 {
		return nil, badArgument(errors.New("every_ms: must be 1 to 1e9"))
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	if args.Moments || args.EveryMS > 0 {
		return s.scanMoments(ctx, args, mode)
	}
	if mode == replay.Changes {
		return s.scanValues(ctx, args)
	}
	p, err := answer.Compile(args.Where)
	if err != nil {
		return nil, err
	}
	if err := s.readFor(&p.Expression); err != nil {
		return nil, err
	}
	from, to, err := s.rest(ctx, args, mode == replay.Last)
	if err != nil {
		return nil, err
	}
	list, late := items{c: c}, session.NewLateness(s.travel.Entries)
	hits, next := 0, eventlog.Seq(0)
	rest, err := c.stretches(ctx, from, to, mode == replay.Last, func(ctx context.Context, a, b eventlog.Seq) (bool, error) {
		for hit, err := range s.travel.Scan(ctx, a, b, answer.Matching(p, nil), mode) {
			if err != nil {
				return false, err
			}
			if hits++; args.Mode == "count" {
				continue
			}
			line, err := late.AppendEntryJSON(ctx, nil, &hit.Entry)
			if err != nil {
				return false, err
			}
			if ok, err := list.add(verbatim(line), briefEntry(&hit.Entry)); err != nil || !ok {
				next = hit.Entry.Seq
				return false, err
			}
		}
		return mode == replay.All || hits == 0, nil
	})
	if err != nil {
		return nil, err
	}
	if args.Mode != "count" {
		return list.continued(next, rest), nil
	}
	r, err := c.whole(struct {
		Count int `json:"count"`
	}{hits}, "")
	if err == nil && rest > 0 {
		r.next = c.cursor(strconv.FormatUint(uint64(rest), 10))
		r.notes = append(r.notes, ended+" Add the counts.")
	}
	return r, err
}

// rest returns the entries of the range that are left to search.
func (s *opened) rest(ctx context.Context, args scanArgs, backwards bool) (from, to eventlog.Seq, err error) {
	if from, to, err = answer.EntryRange(ctx, s.travel, args.Range); err != nil || args.Cursor == "" {
		return from, to, err
	}
	n, err := s.c.number(args.Cursor, 0)
	if backwards {
		return from, min(to, eventlog.Seq(n)), err
	}
	return max(from, eventlog.Seq(n)), to, err
}

// scanValues returns the entries at which the value of an expression changes.
func (s *opened) scanValues(ctx context.Context, args scanArgs) (*reply, error) {
	x, err := answer.CompileValue(args.Where)
	if err != nil {
		return nil, err
	}
	if err := s.readFor(x); err != nil {
		return nil, err
	}
	from, to, err := s.rest(ctx, args, false)
	if err != nil {
		return nil, err
	}
	list := items{c: s.c}
	next, began := eventlog.Seq(0), args.Cursor != ""
	rest, err := s.c.stretches(ctx, from, to, false, func(ctx context.Context, a, b eventlog.Seq) (bool, error) {
		skip := eventlog.Seq(0)
		if began && a > 1 {
			a-- // the first value is that of the entry before, which was told already
			skip = a
		}
		began = true
		for v, err := range replay.ScanValues(ctx, s.travel, a, b, answer.Valuing(x, nil)) {
			if err != nil {
				return false, err
			}
			if v.Entry.Seq == skip {
				continue
			}
			if ok, err := list.add(answer.ViewValue(&v.Entry, v.Value), briefEntry(&v.Entry)); err != nil || !ok {
				next = v.Entry.Seq
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	return list.continued(next, rest), nil
}

// valuation returns the value that a search of moments follows.
func valuation(args scanArgs, mode replay.Mode) (replay.Valuation[string], *where.Expression, error) {
	if mode == replay.Changes {
		x, err := answer.CompileValue(args.Where)
		if err != nil {
			return replay.Valuation[string]{}, nil, err
		}
		return answer.Valuing(x, nil), x, nil
	}
	p, err := answer.Compile(args.Where)
	if err != nil {
		return replay.Valuation[string]{}, nil, err
	}
	return answer.Truth(answer.Matching(p, nil)), &p.Expression, nil
}

// scanMoments returns intervals.
func (s *opened) scanMoments(ctx context.Context, args scanArgs, mode replay.Mode) (*reply, error) {
	values, x, err := valuation(args, mode)
	if err != nil {
		return nil, err
	}
	if err := s.readFor(x); err != nil {
		return nil, err
	}
	over, err := answer.MomentRange(ctx, s.travel, args.Range)
	if err != nil {
		return nil, err
	}
	over.Every = time.Duration(args.EveryMS * float64(time.Millisecond))
	place, err := s.c.place(args.Cursor)
	if err != nil {
		return nil, err
	}
	if place != "" {
		if over.From, err = s.placed(ctx, place); err != nil {
			return nil, err
		}
	}
	var seen atomic.Int64
	inner := values.Value
	values.Value = func(ctx context.Context, step *replay.ScanStep) (string, error) {
		if n := seen.Add(1); n > int64(s.c.box.cfg.MaxEntries) || n > 1 && s.c.late() {
			return "", errSteps
		}
		return inner(ctx, step)
	}
	values.Copy = nil // the steps are counted in order
	list := items{c: s.c}
	hits := 0
	var begin *replay.Moment                     // of the first interval
	var last, open *replay.ValueInterval[string] // the last that matches, and the one under way
	matches := func(iv *replay.ValueInterval[string]) bool {
		return mode == replay.Changes || iv.Value == answer.True
	}
	for iv, err := range replay.Intervals(ctx, s.travel, over, values) {
		if errors.Is(err, errSteps) {
			if open == nil || open.From.Moment == *begin || mode == replay.Last || args.Mode == "count" {
				return nil, errSteps
			}
			r := list.reply(placeOf(open.From.Moment))
			r.notes = append(r.notes, ended)
			return r, nil
		}
		if err != nil {
			return nil, err
		}
		if begin == nil {
			begin = &iv.From.Moment
		}
		if iv.Open {
			open = &iv // the end of the range, or of the budget
			continue
		}
		if !matches(&iv) {
			continue
		}
		if hits++; args.Mode == "count" {
			continue
		}
		if last = &iv; mode == replay.Last {
			continue
		}
		if ok, err := list.add(answer.ViewInterval(&iv), nil); err != nil || !ok {
			return list.reply(placeOf(iv.From.Moment)), err
		}
		if mode == replay.First {
			return list.reply(""), nil
		}
	}
	if open != nil && matches(open) {
		last, hits = open, hits+1
	} else if mode != replay.Last {
		last = nil // it is in the list
	}
	if args.Mode == "count" {
		return s.c.whole(struct {
			Count int `json:"count"`
		}{hits}, "")
	}
	if last != nil {
		if ok, err := list.add(answer.ViewInterval(last), nil); err != nil || !ok {
			return list.reply(placeOf(last.From.Moment)), err
		}
	}
	return list.reply(""), nil
}

// placeOf returns the place of a moment: its entry and its offset in nanoseconds.
func placeOf(m replay.Moment) string {
	return strconv.FormatUint(uint64(m.Seq), 10) + "-" + strconv.FormatInt(int64(m.Offset), 10)
}

// placed returns the moment of a place, which the session must have.
func (s *opened) placed(ctx context.Context, place string) (replay.Moment, error) {
	seq, offset, ok := strings.Cut(place, "-")
	n, err := strconv.ParseUint(seq, 10, 64)
	d, err2 := strconv.ParseInt(offset, 10, 64)
	if !ok || err != nil || err2 != nil || d < 0 {
		return replay.Moment{}, badCursor()
	}
	m := replay.Moment{Seq: eventlog.Seq(n), Offset: time.Duration(d)}
	if _, err := s.travel.At(ctx, m); err != nil {
		return m, badCursor()
	}
	return m, nil
}

func bisectState(ctx context.Context, c *call, args bisectArgs) (*reply, error) {
	goal, ok := bisect.GoalByName(args.Find)
	if !ok {
		return nil, badArgument(errors.New("find: must be any, first, last or all"))
	}
	p, err := answer.Compile(args.Where)
	if err != nil {
		return nil, err
	}
	s, err := c.open(args.Session)
	if err != nil {
		return nil, err
	}
	if err := s.readFor(&p.Expression); err != nil {
		return nil, err
	}
	if args.Good == "" {
		args.Good = "0"
	}
	from, err := s.moment(ctx, args.Good)
	if err != nil {
		return nil, err
	}
	to, err := s.moment(ctx, args.Bad)
	if err != nil {
		return nil, err
	}
	if to.Seq > from.Seq && to.Seq-from.Seq > eventlog.Seq(c.box.cfg.MaxEntries) {
		return nil, errSteps
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	visited := 0
	out, err := bisect.Find(ctx, s.travel, from, to, answer.BadIf(p), bisect.Config{
		Options: bisect.Options{Goal: goal},
		Visited: func(replay.Moment) {
			if visited++; visited > c.box.cfg.MaxEntries {
				cancel(errSteps)
			}
		},
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if errors.Is(err, replay.ErrSyntax) {
		return nil, refuse(problem.BadRequest, "good must be before bad.", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return c.whole(answer.ViewBisect(out), "")
}
