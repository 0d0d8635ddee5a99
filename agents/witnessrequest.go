package agents

import (
	"slices"
	"strings"
	"time"
)

// GenerationReport is one generation for a request: what it went by, what the
// agent was told beyond that, and how it ended.
type GenerationReport struct {
	Entry uint64 // by which it began
	Token Token
	// Settings were in force when it ended, or are if it runs.
	Settings Settings
	// Newer is what the agent was told beyond the generation's context before it
	// ended, in the order in which that came, at most [MaxNewer] of it and the
	// decisive always. Count is how much there was.
	Newer []Newer
	Count int

	End       GenerationEnd
	EndEntry  uint64        // by which it ended, or that showed that time had
	EndAt     time.Duration // session time
	Reason    string        // of a cancellation
	Generated uint64        // the entry of the last answer that was recorded for it; 0 if none

	// Of a stale one: since when it was in vain, and if its cancellation was put
	// off, the interruption before it that made it wait.
	StaleAt     time.Duration
	PutOff      bool
	Interrupted time.Duration // when the agent was interrupted before
	By          []string      // of which requests
}

// Bounds of reports.
const (
	MaxNewer       = 64   // of one generation
	MaxGenerations = 256  // of one request; beyond it the oldest are not reported
	maxRecalled    = 1024 // news that is kept for generations to come
	maxRecallBytes = 8 << 20
)

// GenerationEnd says how a generation ended.
type GenerationEnd string

// The ends.
const (
	EndNone      GenerationEnd = "running"
	EndStale     GenerationEnd = "stale"     // cancelled, since what it went by was out of date
	EndCancelled GenerationEnd = "cancelled" // by whoever ran it; Reason says why
	EndReplaced  GenerationEnd = "replaced"  // by another generation for the request
	EndDeadline  GenerationEnd = "deadline"
	EndLeft      GenerationEnd = "left" // with its agent
	EndAccepted  GenerationEnd = "accepted"
	EndRefused   GenerationEnd = "refused"
)

// Cancelled reports whether the generation was stopped, rather than answered.
func (e GenerationEnd) Cancelled() bool {
	return e != EndNone && e != EndAccepted && e != EndRefused
}

// Newer is something that the agent was told while a generation ran or before
// it, but beyond what that went by.
type Newer struct {
	News
	Own bool // its own effect, which conflicts with nothing
	// Matched says, of an agent that only conflicts interrupt, what of it
	// conflicts with the generation.
	Matched []Match
	// Decisive says that by it the generation was in vain.
	Decisive bool
}

// Match is one thing by which news conflicts with a generation: a path that it
// reads and one that was written, a class, or nothing of these if the generation
// names none and so goes by all that the agent sees.
type Match struct {
	Read, Written string // "/" and so on; both "" if it is no path
	Class         string
	Everything    bool
}

// Ruling is the answer that a request got for ever.
type Ruling struct {
	Entry  uint64
	At     time.Duration
	Answer Answer
	Effect *Effect // of an accepted one
}

// Problems returns what a recorded refusal says of the single faults that were
// found, as far as its text shows them.
func (r *Ruling) Problems() []Problem {
	var list []Problem
	for part := range strings.SplitSeq(r.Answer.Reason, "; ") {
		path, reason, ok := strings.Cut(part, ": ")
		switch {
		case ok && (path == "" || path[0] == '/') && !strings.Contains(path, " "):
			list = append(list, Problem{path, reason})
		case len(list) > 0:
			list[len(list)-1].Reason += "; " + part
		}
	}
	return list
}

// RequestReport is what is known of one request.
type RequestReport struct {
	AgentID, ReqID string
	Generations    []GenerationReport // in the order in which they began
	Dropped        int                // generations before the first of these
	Ruling         *Ruling            // nil: nothing is recorded that answers it
}

// RequestWatch finds out what became of a request: of the generations for it,
// and of the answer.
type RequestWatch struct {
	report      RequestReport
	settings    Settings // of the agent, after the last entry
	recent      []recalled
	bytes       int
	last, prior interruption // of the agent
	now         time.Duration
	running     bool // the last of report.Generations
}

// interruption is when an agent was interrupted: which of its requests; none
// if it never was.
type interruption struct {
	at time.Duration
	by []string
}

// recalled is news as it bears on generations.
type recalled struct {
	News
	own     bool
	visible bool
	word    word
}

// NewRequestWatch returns a watch over one request.
func NewRequestWatch(agent, reqID string) *RequestWatch {
	return &RequestWatch{report: RequestReport{AgentID: agent, ReqID: reqID}}
}

// Report returns what is known of the request after the last entry.
func (w *RequestWatch) Report() RequestReport {
	r := w.report
	if w.running {
		r.Generations = slices.Clone(r.Generations)
		last := &r.Generations[len(r.Generations)-1]
		last.Settings = w.settings
		w.hear(last)
	}
	return r
}

// Step takes in an entry that c has folded.
func (w *RequestWatch) Step(c *Core, s *Step) {
	agent, word := w.report.AgentID, s.Record.Word
	for _, gone := range s.Passed {
		w.cancelled(s, gone, "") // by the settings of before
	}
	w.now = s.At
	if settings, ok := c.Settings(agent); ok {
		w.settings = settings
	}
	if n, ok := s.news(agent); ok {
		w.recall(n, s)
	}
	if s.Applied.Err != nil {
		return
	}
	gone := s.Applied.Cancellations
	mine := textOf(s.Record.Value, "agent_id") == agent && textOf(s.Record.Value, "req_id") == w.report.ReqID
	if word == WordToken && mine {
		if len(gone) > 0 && gone[0].Reason == ReasonReplaced {
			w.cancelled(s, gone[0], word)
			gone = gone[1:]
		}
		w.begin(s)
	}
	for _, gone := range gone {
		w.cancelled(s, gone, word)
	}
	if word == WordGenerated && mine && w.running {
		w.newest().Generated = s.Entry
	}
	w.rule(s)
	if s.dismisses(agent) {
		w.recent, w.bytes, w.last, w.prior = nil, 0, interruption{}, interruption{}
	}
}

// recall keeps news for generations to come.
func (w *RequestWatch) recall(n News, s *Step) {
	r := recalled{News: n}
	if e := s.Applied.Effect; e != nil {
		r.own = e.SourceID == w.report.AgentID
		r.visible = len(n.Delivery.Delta.Patches) > 0
		r.word = wordOf(*e, s.Applied.Changes)
	}
	w.recent = append(w.recent, r)
	w.bytes += sizeOf(n.Delivery.Delta)
	for len(w.recent) > 1 && (len(w.recent) > maxRecalled || w.bytes > maxRecallBytes) {
		w.bytes -= sizeOf(w.recent[0].Delivery.Delta)
		w.recent[0] = recalled{}
		w.recent = w.recent[1:]
	}
}

func sizeOf(d Delta) int {
	n := 128
	for _, op := range d.Patches {
		n += len(op.Op) + len(op.Path) + len(op.Value) + 64
	}
	return n
}

// begin takes in a new generation.
func (w *RequestWatch) begin(s *Step) {
	t := tokenOf(s.Record.Value)
	t.Issued = s.At
	if len(w.report.Generations) >= MaxGenerations {
		w.report.Generations = slices.Delete(w.report.Generations, 0, 1)
		w.report.Dropped++
	}
	w.report.Generations = append(w.report.Generations, GenerationReport{Entry: s.Entry, Token: t, End: EndNone})
	w.running = true
}

// cancelled takes in that a generation of the agent was stopped, by a record of
// a word or by time.
func (w *RequestWatch) cancelled(s *Step, gone Cancellation, word string) {
	if gone.Agent != w.report.AgentID {
		return
	}
	end := EndStale
	switch {
	case word == WordCancel:
		end = EndCancelled
	case gone.Reason == ReasonReplaced:
		end = EndReplaced
	case gone.Reason == ReasonTimeout:
		end = EndDeadline
	case gone.Reason == ReasonLeft:
		end = EndLeft
	}
	if end == EndStale {
		if len(w.last.by) == 0 || w.last.at != gone.At {
			w.prior, w.last = w.last, interruption{at: gone.At}
		}
		w.last.by = append(w.last.by, gone.ReqID)
	}
	if gone.ReqID == w.report.ReqID && w.running {
		w.newest().Reason = gone.Reason
		w.end(s, gone.At, end)
	}
}

func (w *RequestWatch) newest() *GenerationReport {
	return &w.report.Generations[len(w.report.Generations)-1]
}

// end ends the generation that runs.
func (w *RequestWatch) end(s *Step, at time.Duration, end GenerationEnd) {
	g := w.newest()
	g.End, g.EndEntry, g.EndAt, g.Settings = end, s.Entry, at, w.settings
	w.hear(g)
	w.running = false
	if end != EndStale {
		return
	}
	before := w.prior // the last one is this
	if len(before.by) > 0 && g.StaleAt < at && g.StaleAt < after(before.at, g.Settings.Debounce) {
		g.PutOff, g.Interrupted, g.By = true, before.at, before.by
	}
}

// rule takes in the answer, of which the first counts.
func (w *RequestWatch) rule(s *Step) {
	agent, reqID, answer, ok := s.Record.Answer()
	if !ok || agent != w.report.AgentID || reqID != w.report.ReqID {
		return
	}
	if w.report.Ruling == nil {
		w.report.Ruling = &Ruling{Entry: s.Entry, At: s.At, Answer: answer, Effect: s.Applied.Effect}
	}
	if w.running {
		end := EndRefused
		if answer.GlobalSeq != 0 {
			end = EndAccepted
		}
		w.end(s, s.At, end)
	}
}

// hear goes over what the agent was told beyond a generation's context, and
// says which of it put the generation in vain: by the rules of [Core], which
// itself keeps only that it is.
func (w *RequestWatch) hear(g *GenerationReport) {
	t, latest, conflict, stale := &g.Token, g.Token.ContextSeq, false, false
	until := w.now
	if g.End != EndNone {
		until = g.EndAt
	}
	g.Newer, g.Count, g.StaleAt = nil, 0, g.EndAt
	for i := range w.recent {
		r := &w.recent[i]
		seq := r.Delivery.Delta.ViewSeq
		if seq <= t.ContextSeq || r.Delivery.At > until {
			continue // in the context, or not told yet
		}
		h := Newer{News: r.News, Own: r.own}
		if g.Settings.Interrupt == InterruptConflict && (r.Delivery.At > t.Issued || r.Entry > g.Entry) {
			h.Matched = r.matches(t)
		}
		latest, conflict = max(latest, seq), conflict || len(h.Matched) > 0
		if !stale && behind(latest, t.ContextSeq, g.Settings.Staleness) && (g.Settings.Interrupt == InterruptAlways || conflict) {
			stale, h.Decisive = true, true
			g.StaleAt = max(r.Delivery.At, t.Issued)
		}
		g.Count++
		if len(g.Newer) < MaxNewer || h.Decisive {
			g.Newer = append(g.Newer, h)
		}
	}
}

// matches returns by what news conflicts with a generation, as
// [arrival.conflicts] asks it.
func (r *recalled) matches(t *Token) []Match {
	if r.own || r.Cause.Word != WordEffect {
		return nil
	}
	if len(t.Reads) == 0 && len(t.Classes) == 0 {
		if r.visible {
			return []Match{{Everything: true}}
		}
		return nil
	}
	var list []Match
	for _, class := range t.Classes {
		if slices.Contains(r.word.classes, class) {
			list = append(list, Match{Class: class})
		}
	}
	for _, path := range t.Reads {
		for _, written := range r.word.writes {
			if within(path, written) || within(written, path) {
				list = append(list, Match{Read: path, Written: written})
			}
		}
	}
	return list
}
