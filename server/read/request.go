package read

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/answer"
	"github.com/sajou-dev/sajou-go/internal/termtext"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/problem"
	"github.com/sajou-dev/sajou-go/server/route"
)

// request is one request and its answer.
type request struct {
	room  *Library
	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context
	query url.Values
}

// atMoment answers with what give makes of the moment of the parameter at, unless the
// caller has the answer already. Form tells the answers about one moment apart; it may be
// empty.
func (q *request) atMoment(form string, give func(s *recorded, m replay.Moment) error) error {
	s, err := q.session()
	if err != nil {
		return err
	}
	m, v, err := q.resolve(s, "at")
	if err != nil {
		return err
	}
	if form != "" {
		v = v.in(form)
	}
	if q.known(v) {
		return nil
	}
	return give(s, m)
}

// listAtMoment answers with the list that give fills, of the moment of the parameter at.
func (q *request) listAtMoment(give func(s *recorded, m replay.Moment, l *list) error) error {
	l, err := q.newList()
	if err != nil {
		return err
	}
	form := ""
	if l.lines {
		form = "lines"
	}
	return q.atMoment(form, func(s *recorded, m replay.Moment) error {
		if err := give(s, m, l); err != nil {
			return err
		}
		return l.send()
	})
}

// newRequest reads the query of a request. Parameters that the description does not have
// are refused, because a misspelled one would change the meaning of the answer.
func newRequest(room *Library, w http.ResponseWriter, r *http.Request, doc *route.Doc) (*request, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the query cannot be read: %v", err)
	}
	for name, values := range query {
		i := slices.IndexFunc(doc.Params, func(p route.Parameter) bool { return p.Name == name && (p.In == "" || p.In == "query") })
		if i < 0 {
			return nil, badRequest("there is no parameter %.80q; %s", name, parametersText(doc))
		}
		if p := &doc.Params[i]; len(values) > 1 && !p.Repeated {
			return nil, badRequest("the parameter %q is given %d times; give it once", name, len(values))
		} else if len(p.Enum) > 0 && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(p.Enum, v) }) {
			return nil, badRequest("%s=%.80s: must be one of %s", name, values[0], strings.Join(p.Enum, ", "))
		}
	}
	for i := range doc.Params {
		if p := &doc.Params[i]; p.Required && (p.In == "" || p.In == "query") && query.Get(p.Name) == "" {
			return nil, badRequest("the parameter %q is missing: %s", p.Name, p.Text)
		}
	}
	return &request{room, w, r, r.Context(), query}, nil
}

func parametersText(doc *route.Doc) string {
	var names []string
	for i := range doc.Params {
		if p := &doc.Params[i]; p.In == "" || p.In == "query" {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return "the request takes none"
	}
	return "the request takes " + strings.Join(names, ", ")
}

func badRequest(format string, args ...any) *problem.Details {
	return problem.New(problem.BadRequest, fmt.Sprintf(format, args...))
}

// get returns a parameter, or "".
func (q *request) get(name string) string { return q.query.Get(name) }

// has reports whether a parameter is given, also as the empty text.
func (q *request) has(name string) bool { return q.query.Has(name) }

// flag returns a parameter that is true or false, by default false.
func (q *request) flag(name string) (bool, error) {
	if !q.has(name) {
		return false, nil
	}
	yes, err := strconv.ParseBool(q.get(name))
	if err != nil {
		return false, badRequest("%s=%.80s: must be true or false", name, q.get(name))
	}
	return yes, nil
}

// whole returns a parameter that is a whole number in bounds, or what stands for none.
func (q *request) whole(name string, none, low, high int) (int, error) {
	if !q.has(name) {
		return none, nil
	}
	n, err := strconv.Atoi(q.get(name))
	if err != nil || n < low || n > high {
		return 0, badRequest("%s=%.80s: must be a whole number from %d to %d", name, q.get(name), low, high)
	}
	return n, nil
}

// recorded is the session of a request.
type recorded struct {
	travel *replay.Replay
	log    *eventlog.SessionReader
}

// session opens the session in the path.
func (q *request) session() (*recorded, error) {
	name := route.Session(q.r)
	travel, err := q.room.engine.Replay(name)
	if errors.Is(err, eventlog.ErrInvalid) {
		return nil, &problem.Details{Code: problem.NoSession, Detail: fmt.Sprintf("there is no session %.80q", name), Err: err}
	}
	if err != nil {
		return nil, err
	}
	log, err := q.room.engine.Log().Session(name)
	if err != nil {
		return nil, err
	}
	travel.Anchor(anchors{q.room, name})
	return &recorded{travel, log}, nil
}

// format chooses the form of an answer: the one of the parameter format, or the first of
// the offered media types that the header Accept prefers. Offers are pairs of a format
// and its media type.
func (q *request) format(offers ...[2]string) (format string, err error) {
	q.w.Header().Add("Vary", "Accept")
	if name := q.get("format"); name != "" {
		for _, o := range offers {
			if o[0] == name {
				return name, nil
			}
		}
	}
	accept := q.r.Header.Values("Accept")
	if len(accept) == 0 {
		return offers[0][0], nil
	}
	best, quality := "", 0.0
	for _, o := range offers {
		if n := accepted(strings.Join(accept, ","), o[1]); n > quality {
			best, quality = o[0], n
		}
	}
	if best == "" {
		var types []string
		for _, o := range offers {
			types = append(types, o[1])
		}
		return "", problem.New(problem.NotAcceptable, "the answer can be "+strings.Join(types, ", "))
	}
	return best, nil
}

// accepted returns how much a header Accept prefers a media type, from 0 to 1: the
// quality of the most specific range that has the type.
func accepted(accept, media string) (quality float64) {
	major, _, _ := strings.Cut(media, "/")
	specific := 0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil {
			continue
		}
		rank := map[string]int{"*/*": 1, major + "/*": 2, media: 3}[name]
		if rank <= specific {
			continue
		}
		specific, quality = rank, 1
		if text, ok := params["q"]; ok {
			if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n <= 1 {
				quality = n
			}
		}
	}
	return quality
}

// send answers with a whole body.
func (q *request) send(media string, body []byte) error {
	if len(body) > q.room.cfg.MaxBytes {
		return tooMuch(q.room.cfg.MaxBytes)
	}
	h := q.w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	q.w.WriteHeader(http.StatusOK)
	if q.r.Method != http.MethodHead {
		_, _ = q.w.Write(body) // the caller may be gone
	}
	return nil
}

func tooMuch(limit int) *problem.Details {
	return problem.New(problem.OverBudget, fmt.Sprintf("the answer has more than %d bytes; ask for a part", limit))
}

// one answers with one JSON value.
func (q *request) one(view any) error {
	data, err := answer.Marshal(view)
	if err != nil {
		return err
	}
	return q.send(route.MediaJSON, append(termtext.PrintableJSON(data), '\n'))
}

// list is a list of JSON values that is built: an array, or one value a line.
type list struct {
	q     *request
	lines bool
	data  []byte
	n     int
}

// add adds a value.
func (l *list) add(value any) error {
	data, ok := value.([]byte)
	if !ok {
		var err error
		if data, err = answer.Marshal(value); err != nil {
			return err
		}
	}
	data = termtext.PrintableJSON(data)
	if len(l.data)+len(data) > l.q.room.cfg.MaxBytes {
		return tooMuch(l.q.room.cfg.MaxBytes)
	}
	switch {
	case l.lines:
	case l.n == 0:
		l.data = append(l.data, "[\n"...)
	default:
		l.data = append(l.data, ",\n"...)
	}
	l.n++
	l.data = append(l.data, data...)
	if l.lines {
		l.data = append(l.data, '\n')
	}
	return nil
}

// send answers with the list.
func (l *list) send() error {
	switch {
	case l.lines:
		return l.q.send(route.MediaNDJSON, l.data)
	case l.n == 0:
		return l.q.send(route.MediaJSON, []byte("[]\n"))
	}
	return l.q.send(route.MediaJSON, append(l.data, "\n]\n"...))
}

// newList returns an empty list in the form that the request accepts.
func (q *request) newList() (*list, error) {
	format, err := q.format([2]string{"json", route.MediaJSON}, [2]string{"ndjson", route.MediaNDJSON})
	return &list{q: q, lines: format == "ndjson"}, err
}

// formatParam chooses between an array and lines.
func formatParam() route.Parameter {
	return route.Parameter{Name: "format", Enum: []string{"json", "ndjson"}, Text: "an array, or one value a line; instead of the header Accept"}
}

// listed is the content of a list whose values have a schema.
func listed(array, value string) []route.Content {
	return []route.Content{{Type: route.MediaJSON, Schema: array}, {Type: route.MediaNDJSON, Schema: value}}
}

// atParam is the moment that a request is about.
func atParam() route.Parameter {
	return route.Parameter{Name: "at", Text: "the address of the moment, such as 36+50ms or t:1.5s; the end if absent. A + is written as %2B"}
}
