// Package textsearch finds text in what a session recorded: in the payloads of signals,
// in declarations, in effects of agents and in events and messages of the director.
//
//	q, err := textsearch.Literal("timeout", false) // or textsearch.Expression
//	for hit := range q.Entry(&entry) { … }
//
// Keys and strings are searched line by line, at any depth; a line with several matches
// is one [MatchedLine]. Numbers are not searched, nor are ids, sources, times and metadata
// of signals: what was said is in the payload. Of a signal whose envelope is irregular
// the whole object is searched.
//
// An entry without the text costs little: its bytes are searched before they are decoded.
//
// docs/glossary.md has the nouns of all packages.
package textsearch

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strconv"
	"strings"

	"github.com/sajou-dev/sajou-go/eventlog"
	"github.com/sajou-dev/sajou-go/internal/jsonpointer"
	"github.com/sajou-dev/sajou-go/session"
	"github.com/sajou-dev/sajou-go/signal"
)

// Query is a text or an expression that is searched for. It is immutable and can be used
// concurrently.
type Query struct {
	literal string // of a query that is one
	re      *regexp.Regexp
	needs   []byte // every entry with a match has these bytes
}

// Literal returns the query of a text without line ends.
func Literal(text string, ignoreCase bool) (*Query, error) {
	switch {
	case text == "":
		return nil, errors.New("the text to search for is empty")
	case strings.ContainsAny(text, "\r\n"):
		return nil, errors.New("the text to search for has a line end; lines are searched one by one")
	case ignoreCase:
		return Expression(regexp.QuoteMeta(text), true)
	}
	return &Query{literal: text, needs: []byte(text)}, nil
}

// Expression returns the query of an expression in RE2 syntax. It is matched with single
// lines: ^ and $ are the ends of a line.
func Expression(expr string, ignoreCase bool) (*Query, error) {
	if ignoreCase {
		expr = "(?i:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("not an expression in RE2 syntax: %w", err)
	}
	if re.MatchString("") {
		return nil, fmt.Errorf("the expression %q matches the empty text, and so every line", expr)
	}
	prefix, _ := re.LiteralPrefix()
	return &Query{re: re, needs: []byte(prefix)}, nil
}

// MatchedLine is a line with a match, and its place.
type MatchedLine struct {
	Type    string // of the signal, or the word of the record
	Agent   string // who said or did it; "" if the entry does not say
	Pointer string // JSON pointer from the envelope, or from the record's value
	Key     bool   // the match is in the last name of the pointer, and not in its value
	Line    int    // in the text, from 1
	Text    string // the line, as it was recorded
	From    int    // the first match is Text[From:To]
	To      int
}

// Entry yields the lines of an entry that match, in the order in which they stand.
// Entries that cannot be decoded have none.
func (q *Query) Entry(e *eventlog.Entry) iter.Seq[MatchedLine] {
	return func(yield func(MatchedLine) bool) {
		if len(q.needs) > 0 && !bytes.Contains(e.Data, q.needs) {
			return
		}
		w := walker{query: q, yield: yield}
		if e.Kind != eventlog.KindSignal {
			word, v, err := session.WordOf(e)
			if err != nil {
				return
			}
			w.hit.Type, w.hit.Agent = word, firstText(v, "agentId", "agent", "from")
			w.value(v)
			return
		}
		s, err := signal.Decode(e.Data)
		if err != nil {
			return
		}
		w.hit.Type, w.hit.Agent = s.Type, firstText(s.Payload, "agentId", "from")
		if s.Raw != nil {
			w.value(s.Raw)
			return
		}
		w.path = append(w.path, "payload")
		w.value(s.Payload)
	}
}

func firstText(v signal.Value, names ...string) string {
	for _, name := range names {
		if text := v.TextOf(name); text != "" {
			return text
		}
	}
	return ""
}

// walker goes through a value.
type walker struct {
	query *Query
	yield func(MatchedLine) bool
	path  []string
	hit   MatchedLine // what all occurrences have in common
}

// value searches a value and reports whether to go on.
func (w *walker) value(v signal.Value) bool {
	switch v.Kind() {
	case signal.KindString:
		text, _ := v.Text()
		return w.text(text, false)
	case signal.KindArray:
		i := 0
		for e := range v.Elements() {
			if !w.below(strconv.Itoa(i), func() bool { return w.value(e) }) {
				return false
			}
			i++
		}
	case signal.KindObject:
		for name, m := range v.Members() {
			if !w.below(name, func() bool { return w.text(name, true) && w.value(m) }) {
				return false
			}
		}
	default:
	}
	return true
}

func (w *walker) below(name string, do func() bool) bool {
	w.path = append(w.path, name)
	ok := do()
	w.path = w.path[:len(w.path)-1]
	return ok
}

func (w *walker) text(text string, key bool) bool {
	if w.query.literal != "" && !strings.Contains(text, w.query.literal) {
		return true
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		from, to, ok := w.query.match(line)
		if !ok {
			continue
		}
		hit := w.hit
		hit.Pointer, hit.Key, hit.Line, hit.Text, hit.From, hit.To = jsonpointer.Join(w.path), key, n, line, from, to
		if !w.yield(hit) {
			return false
		}
	}
	return true
}

// match returns the first match in a line.
func (q *Query) match(line string) (from, to int, ok bool) {
	if q.re == nil {
		from = strings.Index(line, q.literal)
		return from, from + len(q.literal), from >= 0
	}
	m := q.re.FindStringIndex(line)
	if m == nil {
		return 0, 0, false
	}
	return m[0], m[1], true
}
