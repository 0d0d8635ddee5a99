package read

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/projection"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/replay/where"
	"github.com/sajou-dev/sajou-go/server/access"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/workspace"
)

// The bounds of a page of entries.
const (
	defaultPage = 1000
	maxPage     = 10_000
	pageBytes   = 8 << 20
)

func (room *Library) entryRoutes() []route.Endpoint {
	filter := []route.Parameter{
		rangeParam(),
		{Name: "kind", Repeated: true, Enum: []string{"signal", "effect", "beat", "define", "session"}, Text: "select entries of this kind"},
		{Name: "type", Repeated: true, Text: "select signals of this type"},
		{Name: "corr", Repeated: true, Text: "select signals with this correlation id"},
		{Name: "where", Text: "select entries for which this expression is true"},
	}
	return []route.Endpoint{
		room.streamed("GET /api/v1/sessions/{session}/entries", access.ScopeRead, route.Doc{
			Summary: "The entries of a session",
			Text: "As JSON, a page of them, with the member next if there may be more: the value of the parameter cursor of the next page. " +
				"As lines without a limit, all of them, sent while they are read. The header Sajou-Next of a page of lines has the cursor.",
			Params: append(filter,
				route.Parameter{Name: "limit", Type: "integer", Text: "the most entries of a page, 1 to 10000"},
				route.Parameter{Name: "cursor", Type: "integer", Text: "where the page begins, as the page before tells"},
				formatParam()),
			Success: []route.Success{{Status: 200, Content: listed("entries", "entry")}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment, problem.NotAcceptable, problem.Invalid},
		}, (*request).entries),
		room.computed("GET /api/v1/sessions/{session}/entries/{address}", access.ScopeRead, route.Doc{
			Summary: "One entry",
			Params:  []route.Parameter{{Name: "address", In: "path", Text: "the address of the entry, such as 36, end or %239f3ab2c1"}},
			Success: []route.Success{{Status: 200, Content: route.JSON("entry")}},
			Errors:  []problem.ErrorCode{problem.NoSession, problem.NoMoment},
		}, (*request).entry),
	}
}

// page is what a request wants of the entries of a range.
type page struct {
	span
	filter answer.EntryFilter
	limit  int  // 0: all
	lines  bool // one entry a line
	pred   replay.EntryPredicate
}

// page reads the parameters of a list of entries.
func (q *request) page(s *recorded) (p page, err error) {
	if p.span, err = q.entryRange(s); err != nil {
		return p, err
	}
	format, err := q.format([2]string{"json", route.MediaJSON}, [2]string{"ndjson", route.MediaNDJSON})
	if err != nil {
		return p, err
	}
	p.lines = format == "ndjson"
	if p.lines {
		p.version = p.version.in("lines")
	} else {
		p.limit = defaultPage
	}
	if p.limit, err = q.whole("limit", p.limit, 1, maxPage); err != nil {
		return p, err
	}
	if text := q.get("cursor"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || n == 0 {
			return p, badRequest("cursor=%.80s: must be the cursor of the page before", text)
		}
		p.from = max(p.from, eventlog.Seq(n))
	}
	p.filter = answer.EntryFilter{Types: q.query["type"], Corrs: q.query["corr"], Where: q.get("where")}
	for _, name := range q.query["kind"] {
		kind, err := eventlog.ParseKind(name)
		if err != nil {
			return p, badRequest("kind=%.80s: %v", name, err)
		}
		p.filter.Kinds = append(p.filter.Kinds, kind)
	}
	var x *where.Expression
	if p.pred, x, err = p.filter.Compile(); err != nil {
		return p, err
	}
	return p, q.foldFor(s, x)
}

// foldFor makes the states of a session have what an expression reads, which may be nil:
// the files of the workspace, if it names them.
func (q *request) foldFor(s *recorded, x *where.Expression) error {
	if x == nil || !x.Reads(workspace.Name) {
		return nil
	}
	set := append(append(projection.Set(nil), q.room.engine.Projections()...), workspace.Projection())
	travel, err := q.room.engine.ReplayWith(s.travel.Name(), set)
	if err != nil {
		return err
	}
	travel.Anchor(anchors{q.room, s.travel.Name()})
	s.travel = travel
	return nil
}

// entries answers with entries.
func (q *request) entries() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	p, err := q.page(s)
	if err != nil {
		return err
	}
	if q.known(p.version) {
		return nil
	}
	if p.limit > 0 {
		return q.entryPage(s, p)
	}
	return q.entryLines(s, p)
}

// entryPage answers with one page. It examines a bounded number of entries, so that a
// filter that selects few gives a short page and a cursor.
func (q *request) entryPage(s *recorded, p page) error {
	last := p.to
	if most := eventlog.Seq(q.room.cfg.MaxExamined); !p.filter.IsZero() && p.from <= p.to && p.to-p.from >= most {
		last = p.from + most - 1
	}
	next := last + 1
	l, late := &list{q: q, lines: p.lines}, session.NewLateness(s.travel.Entries)
	err := q.eachEntry(s, p, last, func(e *eventlog.Entry) (bool, error) {
		if l.n == p.limit || len(l.data) >= pageBytes {
			next = e.Seq
			return false, nil
		}
		text, err := late.AppendEntryJSON(q.ctx, nil, e)
		if err != nil {
			return false, err
		}
		return true, l.add(text)
	})
	if err != nil {
		return err
	}
	more := ""
	if next <= p.to {
		more = strconv.FormatUint(uint64(next), 10)
	}
	if p.lines {
		if more != "" {
			q.w.Header().Set("Sajou-Next", more)
		}
		return l.send()
	}
	body := append([]byte(`{"entries":`), l.data...)
	if l.n == 0 {
		body = append(body, '[')
	}
	body = append(body, ']')
	if more != "" {
		body = append(append(append(body, `,"next":"`...), more...), '"')
	}
	return q.send(route.MediaJSON, append(body, "}\n"...))
}

// eachEntry visits the selected entries of a page up to one, until visit returns false.
func (q *request) eachEntry(s *recorded, p page, last eventlog.Seq, visit func(*eventlog.Entry) (bool, error)) error {
	if p.from > last {
		return nil
	}
	if p.filter.IsZero() {
		for e, err := range s.travel.Entries(q.ctx, p.from) {
			if err != nil || e.Seq > last {
				return err
			}
			if on, err := visit(&e); err != nil || !on {
				return err
			}
		}
		return q.ctx.Err()
	}
	for hit, err := range s.travel.Scan(q.ctx, p.from, last, p.pred, replay.All) {
		if err != nil {
			if e, ok := errors.AsType[*where.EvalError](err); ok {
				return e // without the errors around it, which repeat the entry
			}
			return err
		}
		if on, err := visit(&hit.Entry); err != nil || !on {
			return err
		}
	}
	return q.ctx.Err()
}

// entryLines sends the selected entries of a range, one a line.
func (q *request) entryLines(s *recorded, p page) error {
	q.w.Header().Set("Content-Type", route.MediaNDJSON)
	if q.r.Method == http.MethodHead {
		q.w.WriteHeader(http.StatusOK)
		return nil
	}
	out, late := q.stream(), session.NewLateness(s.travel.Entries)
	return out.end(q.eachEntry(s, p, p.to, func(e *eventlog.Entry) (bool, error) {
		text, err := late.AppendEntryJSON(q.ctx, nil, e)
		if err == nil {
			_, err = out.Write(append(termtext.PrintableJSON(text), '\n'))
		}
		return true, err
	}))
}

// entry answers with one entry.
func (q *request) entry() error {
	s, err := q.session()
	if err != nil {
		return err
	}
	m, v, err := q.moment(s, q.r.PathValue("address"))
	if err != nil {
		return err
	}
	if m.Offset != 0 {
		return badRequest("%v is a moment between two entries; name an entry", m)
	}
	e, err := s.travel.Entry(q.ctx, m.Seq)
	if err != nil {
		return err
	}
	if q.known(v) {
		return nil
	}
	text, err := session.NewLateness(s.travel.Entries).AppendEntryJSON(q.ctx, nil, &e)
	if err != nil {
		return err
	}
	return q.send(route.MediaJSON, append(termtext.PrintableJSON(text), '\n'))
}
