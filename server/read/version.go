package read

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/replay"
	"github.com/sajou-dev/sajou-go/server/route"
)

// version identifies the content of an answer among all that its URL has ever had.
type version struct {
	tag string // what the answer depends on

	// forever says that the URL never has another content.
	forever bool
}

// headVersion is the version of an answer that depends on the entries up to a head.
func headVersion(h eventlog.Head) version { return version{tag: h.String()} }

// in returns the version in one of several forms of the answer.
func (v version) in(form string) version {
	v.tag += ";" + form
	return v
}

// foreverAge is the lifetime, in seconds, of an answer that never changes.
const foreverAge = "31536000"

// known writes the header of a version, and reports whether the caller has the content
// already; the answer is then complete.
func (q *request) known(v version) bool {
	h := q.w.Header()
	h.Set("Etag", `"`+v.tag+`"`)
	// No cache that several callers share may keep an answer: each caller is checked.
	if v.forever {
		h.Set("Cache-Control", "private, immutable, max-age="+foreverAge)
	} else {
		h.Set("Cache-Control", "private, no-cache")
	}
	if !matches(q.r.Header.Values("If-None-Match"), v.tag) {
		return false
	}
	q.w.WriteHeader(http.StatusNotModified)
	return true
}

// matches reports whether a header If-None-Match names a tag.
func matches(values []string, tag string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			part = strings.TrimSpace(part)
			if part == "*" || strings.TrimPrefix(part, "W/") == `"`+tag+`"` {
				return true
			}
		}
	}
	return false
}

// numbered matches the addresses that name an entry for ever: its number, or its whole
// hash, each with an offset. The beginning of a hash may later fit two entries.
var numbered = regexp.MustCompile(`^([0-9]+|#[0-9a-fA-F]{64})(\+[^+]+)?$`)

// fixed reports whether an address that a session with a head resolves to a moment will
// always resolve to it, with the same state. The state at an entry never changes, but an
// offset behind the last entry ends where the next entry comes.
func fixed(address string, m replay.Moment, head eventlog.Head) bool {
	return numbered.MatchString(address) && (m.Offset == 0 || m.Seq < head.Seq)
}

// resolve returns the moment of a parameter with an address, by default the end, and the
// version of an answer that depends on the entries up to there.
func (q *request) resolve(s *recorded, name string) (replay.Moment, version, error) {
	address := "end"
	if q.has(name) {
		address = q.get(name)
	}
	return q.moment(s, address)
}

// moment is [request.resolve] for an address.
func (q *request) moment(s *recorded, address string) (replay.Moment, version, error) {
	parsed, err := replay.ParseAddress(address)
	if err != nil {
		return replay.Moment{}, version{}, addressProblem(address, err)
	}
	head := s.travel.Head() // before, so that a later one can only make the moment older
	m, err := s.travel.Resolve(q.ctx, parsed)
	if err != nil {
		return m, version{}, err
	}
	at, err := q.headAt(s, m.Seq)
	if err != nil {
		return m, version{}, err
	}
	v := version{tag: at.String(), forever: fixed(address, m, head)}
	if m.Offset > 0 {
		v.tag += fmt.Sprintf("+%v", m.Offset)
	}
	return m, v, nil
}

// headAt returns the head that the session had at an entry.
func (q *request) headAt(s *recorded, seq eventlog.Seq) (eventlog.Head, error) {
	if seq == 0 {
		return eventlog.Head{Hash: s.log.Genesis()}, nil
	}
	e, err := s.travel.Entry(q.ctx, seq)
	return e.Head(), err
}

// addressProblem is the error about a text that is not an address or a range. In a query a +
// stands for a blank, which no address has.
func addressProblem(text string, err error) error {
	if strings.Contains(text, " ") {
		return badRequest("%v; in a query a + is written as %%2B", err)
	}
	return err
}

// span is a range of entries, with the version of an answer about it.
type span struct {
	from, to eventlog.Seq
	version  version
}

// entryRange returns the entries of the parameter range; without it all.
func (q *request) entryRange(s *recorded) (span, error) {
	head := s.travel.Head()
	text := q.get("range")
	if text == "" {
		return span{1, head.Seq, headVersion(head)}, nil
	}
	parsed, err := replay.ParseRange(text)
	if err != nil {
		return span{}, addressProblem(text, err)
	}
	first, last, err := s.travel.ResolveRange(q.ctx, parsed)
	if err != nil {
		return span{}, err
	}
	// A moment between two entries is rounded into the range.
	from := first.Seq
	if first.Offset > 0 {
		from++
	}
	at, err := q.headAt(s, last.Seq)
	if err != nil {
		return span{}, err
	}
	from = max(from, 1)
	v := version{tag: fmt.Sprintf("%v;%d", at, from)} // both ends may depend on the head
	v.forever = (parsed.From == nil || fixed(parsed.From.String(), first, head)) && parsed.To != nil && fixed(parsed.To.String(), last, head)
	return span{from, last.Seq, v}, nil
}

// rangeParam is the range of entries of a request.
func rangeParam() route.Parameter {
	return route.Parameter{Name: "range", Text: "the entries, such as 30..40, 36.. or t:1s..t:2s; all if absent"}
}
