package query

import (
	"slices"
	"strings"
	"time"

	"github.com/sajou-dev/sajou-go/agents"
	"github.com/sajou-dev/sajou-go/agents/internal/jsonvalue"
	"github.com/sajou-dev/sajou-go/agents/jsondoc"
	"github.com/sajou-dev/sajou-go/agents/view"
	"github.com/sajou-dev/sajou-go/agents/world"
)

// GenerationReport is one generation for a request: its context, the deltas that
// were delivered beyond that, and its end.
type GenerationReport struct {
	Entry uint64 // that began it
	Token agents.Token
	// Settings are those at its end, or the present ones while it runs.
	Settings agents.Settings
	// Later are the deltas beyond the generation's context that were delivered
	// before it ended, in the order of delivery: at most [MaxLater], and always the
	// decisive one. The effect of the accepted request itself is not among them. Count
	// is the number of all.
	Later []LaterDelivery
	Count int

	End       GenerationEnd
	EndEntry  uint64        // that ended it, or the first after its deadline
	EndAt     time.Duration // session time
	Reason    string        // of a cancellation
	Generated uint64        // the entry of the last answer that was recorded for it; 0 if none

	// StaleAt is the time at which a stale generation became stale. PutOff says that
	// the debounce delayed its cancellation, Interrupted and By which interruption did.
	StaleAt     time.Duration
	PutOff      bool
	Interrupted time.Duration // the time of the agent's last interruption before
	By          []string      // the requests that it interrupted
}

// Bounds of reports.
const (
	MaxLater       = 64   // of one generation
	MaxGenerations = 256  // of one request; beyond it the oldest are not reported
	MaxRecalled    = 1024 // deltas before the end of a generation among which the later ones are
	maxRecallBytes = 8 << 20
)

// GenerationEnd says how a generation ended.
type GenerationEnd string

// The ends.
const (
	EndNone      GenerationEnd = "running"
	EndStale     GenerationEnd = "stale"     // cancelled, since its context was out of date
	EndCancelled GenerationEnd = "cancelled" // by the program; Reason says why
	EndReplaced  GenerationEnd = "replaced"  // by another generation for the request
	EndDeadline  GenerationEnd = "deadline"
	EndLeft      GenerationEnd = "left" // with its agent
	EndAccepted  GenerationEnd = "accepted"
	EndRefused   GenerationEnd = "refused"
)

// Cancelled reports whether the generation was stopped before its request was
// answered.
func (e GenerationEnd) Cancelled() bool {
	return e != EndNone && e != EndAccepted && e != EndRefused
}

// LaterDelivery is a delta that was delivered while a generation ran or before it,
// but is not part of its context.
type LaterDelivery struct {
	TracedDelivery
	Own bool // the agent's own effect, which never conflicts
	// Matched lists the conflicts with the generation, for an agent that is
	// interrupted by conflicts only.
	Matched []Match
	// Decisive says that this delta made the generation stale: one that was cancelled
	// as stale, or that runs and will be. A generation that ended otherwise has no
	// decisive delta.
	Decisive bool
}

// Match is one conflict between a delta and a generation: a path that the
// generation reads and one that the effect wrote, a class of both, or Everything if
// the generation names no paths and classes and so depends on all that the agent
// sees.
type Match struct {
	Read, Written string // "/" and so on; both "" if it is no path
	Class         string
	Everything    bool
}

// Ruling is the final answer to a request.
type Ruling struct {
	Entry  uint64
	At     time.Duration
	Answer agents.FinalOutcome
	Effect *world.Effect // of an accepted one
}

// Problems returns the single problems that a recorded refusal names. Records of
// rules 0 have them in the text of the reason only, from which they are parsed as
// far as possible.
func (r *Ruling) Problems() []agents.Problem {
	if len(r.Answer.Problems) > 0 {
		return r.Answer.Problems
	}
	var list []agents.Problem
	for part := range strings.SplitSeq(r.Answer.Reason, "; ") {
		path, reason, ok := strings.Cut(part, ": ")
		switch {
		case ok && (path == "" || path[0] == '/') && !strings.Contains(path, " "):
			list = append(list, agents.Problem{Path: path, Reason: reason})
		case len(list) > 0:
			list[len(list)-1].Reason += "; " + part
		}
	}
	return list
}

// RequestReport is the history of one request.
type RequestReport struct {
	AgentID, ReqID string
	Generations    []GenerationReport // in the order in which they began
	Dropped        int                // number of generations before the first of these
	Ruling         *Ruling            // nil if no answer is recorded
}

// RequestWatch follows one request: the generations for it, and its answer.
type RequestWatch struct {
	report      RequestReport
	settings    agents.Settings // of the agent, after the last entry
	recent      []recalled
	bytes       int
	last, prior interruption // of the agent
	now         time.Duration
	running     bool // whether the last of report.Generations runs
}

// interruption is an interruption of the agent: its time and the requests that it
// stopped, none if the agent was never interrupted.
type interruption struct {
	at time.Duration
	by []string
}

// recalled is a delta with what decides whether it conflicts with a generation.
type recalled struct {
	TracedDelivery
	own     bool
	visible bool
	word    agents.Footprint
}

// NewRequestWatch returns a watch over one request.
func NewRequestWatch(agent, reqID string) *RequestWatch {
	return &RequestWatch{report: RequestReport{AgentID: agent, ReqID: reqID}}
}

// Report returns the history of the request up to the last entry.
func (w *RequestWatch) Report() RequestReport {
	r := w.report
	if w.running {
		r.Generations = slices.Clone(r.Generations)
		last := &r.Generations[len(r.Generations)-1]
		last.Settings = w.settings
		w.later(last)
	}
	return r
}

// Resume says that the entries since the last one were left out, and that c is the world
// after them. The report is the same if they made no delta for the agent that is later than
// the context of a generation for the request, did not end such a generation, interrupt the
// agent or remove it, and were not about the request.
func (w *RequestWatch) Resume(c *agents.Core) {
	w.now = c.Now()
	if settings, ok := c.Settings(w.report.AgentID); ok {
		w.settings = settings
	}
}

// Apply applies an entry that c has folded.
func (w *RequestWatch) Apply(c *agents.Core, s *FoldedEntry) {
	agent, word := w.report.AgentID, s.Record.Word
	for _, gone := range s.Passed {
		w.cancelled(s, gone, "") // by the settings of before
	}
	w.now = s.At
	if settings, ok := c.Settings(agent); ok {
		w.settings = settings
	}
	if n, ok := s.delivery(agent); ok {
		w.recall(n, s)
	}
	if s.Applied.Err != nil {
		return
	}
	gone := s.Applied.Cancellations
	mine := jsonvalue.TextOf(s.Record.Value, "agent_id") == agent && jsonvalue.TextOf(s.Record.Value, "req_id") == w.report.ReqID
	if word == agents.WordToken && mine {
		if len(gone) > 0 && gone[0].Reason == agents.ReasonReplaced {
			w.cancelled(s, gone[0], word)
			gone = gone[1:]
		}
		w.begin(s)
	}
	for _, gone := range gone {
		w.cancelled(s, gone, word)
	}
	if word == agents.WordGenerated && mine && w.running {
		w.newest().Generated = s.Entry
	}
	w.rule(s)
	if s.Dismisses(agent) {
		w.recent, w.bytes, w.last, w.prior = nil, 0, interruption{}, interruption{}
	}
}

// recall keeps a delta for later generations, within MaxRecalled and
// maxRecallBytes.
func (w *RequestWatch) recall(n TracedDelivery, s *FoldedEntry) {
	r := recalled{TracedDelivery: n}
	if e := s.Applied.Effect; e != nil {
		r.own = e.SourceID == w.report.AgentID
		r.visible = len(n.Delivery.Delta.Patches) > 0
		r.word = s.Applied.Footprints[w.report.AgentID]
	}
	w.recent = append(w.recent, r)
	w.bytes += sizeOf(n.Delivery.Delta)
	for len(w.recent) > 1 && (len(w.recent) > MaxRecalled || w.bytes > maxRecallBytes) {
		w.bytes -= sizeOf(w.recent[0].Delivery.Delta)
		w.recent[0] = recalled{}
		w.recent = w.recent[1:]
	}
}

func sizeOf(d view.Delta) int {
	n := 128
	for _, op := range d.Patches {
		n += len(op.Op) + len(op.Path) + len(op.Value) + 64
	}
	return n
}

// begin adds a generation.
func (w *RequestWatch) begin(s *FoldedEntry) {
	t := agents.ParseToken(s.Record.Value)
	t.Issued = s.At
	if len(w.report.Generations) >= MaxGenerations {
		w.report.Generations = slices.Delete(w.report.Generations, 0, 1)
		w.report.Dropped++
	}
	w.report.Generations = append(w.report.Generations, GenerationReport{Entry: s.Entry, Token: t, End: EndNone})
	w.running = true
}

// cancelled notes the cancellation of a generation of the agent, by a record with a
// word or by time.
func (w *RequestWatch) cancelled(s *FoldedEntry, gone agents.Cancellation, word string) {
	if gone.Agent != w.report.AgentID {
		return
	}
	end := endBy(gone, word)
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

// endBy returns the end that a cancellation is, by a record with a word or by time.
func endBy(gone agents.Cancellation, word string) GenerationEnd {
	switch {
	case word == agents.WordCancel:
		return EndCancelled
	case gone.Reason == agents.ReasonReplaced:
		return EndReplaced
	case gone.Reason == agents.ReasonTimeout:
		return EndDeadline
	case gone.Reason == agents.ReasonLeft:
		return EndLeft
	}
	return EndStale
}

// Cancelled calls visit with each generation that the entry, or the time before it, stopped.
func (s *FoldedEntry) Cancelled(visit func(agents.Cancellation, GenerationEnd)) {
	for _, gone := range s.Passed {
		visit(gone, endBy(gone, ""))
	}
	for _, gone := range s.Applied.Cancellations {
		visit(gone, endBy(gone, s.Record.Word))
	}
}

func (w *RequestWatch) newest() *GenerationReport {
	return &w.report.Generations[len(w.report.Generations)-1]
}

// end ends the running generation.
func (w *RequestWatch) end(s *FoldedEntry, at time.Duration, end GenerationEnd) {
	g := w.newest()
	g.End, g.EndEntry, g.EndAt, g.Settings = end, s.Entry, at, w.settings
	w.later(g)
	w.running = false
	if end != EndStale {
		return
	}
	before := w.prior // w.last is this interruption itself
	if len(before.by) > 0 && g.StaleAt < at && g.StaleAt-before.at < g.Settings.Debounce {
		g.PutOff, g.Interrupted, g.By = true, before.at, before.by
	}
}

// rule notes the answer. The first one counts.
func (w *RequestWatch) rule(s *FoldedEntry) {
	agent, reqID, answer, ok := agents.FinalOutcomeOf(s.Record)
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

// later lists the deltas that were delivered beyond a generation's context, and marks
// the one that made the generation stale. It repeats the rule of [agents.Core], which
// keeps only whether the generation is stale.
func (w *RequestWatch) later(g *GenerationReport) {
	t, latest, gap, conflict, stale := &g.Token, g.Token.ContextSeq, uint64(0), false, false
	until := w.now
	if g.End != EndNone {
		until = g.EndAt
	}
	decides := g.End == EndNone || g.End == EndStale
	g.Later, g.Count, g.StaleAt = nil, 0, g.EndAt
	for i := range w.recent {
		r := &w.recent[i]
		seq := r.Delivery.Delta.ViewSeq
		if seq <= t.ContextSeq || r.Delivery.At > until {
			continue // part of the context, or not delivered yet
		}
		if g.End == EndAccepted && r.Entry == g.EndEntry {
			continue // what the generation led to
		}
		h := LaterDelivery{TracedDelivery: r.TracedDelivery, Own: r.own}
		if g.Settings.Interrupt == agents.InterruptConflict && (r.Delivery.At > t.Issued || r.Entry > g.Entry) {
			h.Matched = r.matches(t)
		}
		if seq > latest {
			latest, gap = seq, gap+1 // as [sent.gap] counts
		}
		conflict = conflict || len(h.Matched) > 0
		if decides && !stale && g.Settings.Staleness < agents.MaxSent && gap > g.Settings.Staleness && (g.Settings.Interrupt == agents.InterruptAlways || conflict) {
			stale, h.Decisive = true, true
			g.StaleAt = max(r.Delivery.At, t.Issued)
		}
		g.Count++
		if len(g.Later) < MaxLater || h.Decisive {
			g.Later = append(g.Later, h)
		}
	}
}

// matches returns the conflicts of a delta with a generation. It repeats the rule
// of the core (see conflicts in package agents), which itself keeps only whether
// there is one.
func (r *recalled) matches(t *agents.Token) []Match {
	if r.own || r.Cause.Word != agents.WordEffect {
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
		if slices.Contains(r.word.Classes, class) {
			list = append(list, Match{Class: class})
		}
	}
	for _, path := range t.Reads {
		for _, written := range r.word.Paths {
			if jsondoc.Within(path, written) || jsondoc.Within(written, path) {
				list = append(list, Match{Read: path, Written: written})
			}
		}
	}
	return list
}
